"""Options of generation that fairseq takes and a search here cannot follow are refused in one line."""

from dataclasses import fields

import pytest
from fairseq.dataclass.configs import GenerationConfig
from omegaconf import OmegaConf

from fairseq_plugins.generation_checks import check_generation
from unified.errors import UnifiedError

NO_ALIGNMENT = "does not work here: the model reports no attention from its texts to their sources; leave it out"
ONE_PASS = "is for models that refine a whole text step by step, as non-autoregressive ones do; leave it out"
REFUSED = [
    ({"print_alignment": "hard"}, f"--print-alignment {NO_ALIGNMENT}"),
    ({"replace_unk": ""}, f"--replace-unk {NO_ALIGNMENT}"),
    ({"constraints": "ordered"}, "--constraints does not work here: the search cannot be made to write given words; "),
    ({"match_source_len": True}, "--match-source-len does not work here: lengths are chosen by --min-len and "),
    ({"lm_path": "lm.pt"}, "--lm-path does not work here: no language model joins the search; --path FIRST:SECOND "),
    ({"retain_dropout": True}, "--retain-dropout does not work here: dropout is off in generation; leave it out"),
    ({"print_step": True}, f"--print-step {ONE_PASS}"),
    ({"iter_decode_max_iter": 3}, f"--iter-decode-max-iter {ONE_PASS}"),
    ({"beam_mt": 2}, "--beam-mt is for models with two decoders, as of speech translation; leave it out"),
    ({"beam": 0}, "--beam must be at least 1, got 0"),
    ({"nbest": 0}, "--nbest must be at least 1, got 0"),
    ({"nbest": 6}, "--nbest 6 exceeds --beam 5; there are no more hypotheses"),
    ({"sampling": True, "sampling_topk": 0}, "--sampling-topk must be at least 1, got 0"),
    ({"sampling": True, "sampling_topp": 1.5}, "--sampling-topp must be above 0 and at most 1, got 1.5"),
    ({"sampling_topp": 0.5}, "--sampling-topp chooses what is drawn; it needs --sampling"),
    (
        {"sampling": True, "diverse_beam_groups": 5},
        "--sampling and --diverse-beam-groups are different searches; choose one",
    ),
    ({"diverse_beam_groups": 2}, "--beam 5 must be a multiple of --diverse-beam-groups 2"),
]


@pytest.mark.parametrize(("options", "says"), REFUSED, ids=[says.split()[0] for _, says in REFUSED])
def test_an_option_without_meaning_is_refused_by_its_name(options, says):
    """Each one ended in a traceback, or was passed by."""
    with pytest.raises(UnifiedError) as raised:
        check_generation(options)
    assert str(raised.value).startswith(says)


def test_fairseqs_defaults_and_what_the_search_follows_pass():
    check_generation({})
    check_generation(OmegaConf.structured(GenerationConfig()))
    check_generation({field.name: field.default for field in fields(GenerationConfig)})
    check_generation({"beam": 4, "nbest": 4, "sampling": True, "sampling_topk": 1})
    check_generation({"beam": 4, "diverse_beam_groups": 2, "lenpen": 0.5, "unkpen": 2.0, "prefix_size": 3})
    check_generation({"sampling": True, "sampling_topp": 1.0, "diversity_rate": 0.0})
