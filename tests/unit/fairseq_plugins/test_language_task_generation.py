"""Generation in the task of language modelling: what cannot write is refused, and which options the search gets."""

from argparse import Namespace

import pytest
import torch
from fairseq.dataclass.configs import GenerationConfig
from omegaconf import OmegaConf

from fairseq_plugins.generator import ForcedScorer, UnifiedSequenceGenerator
from fairseq_plugins.models.unified_lm import UnifiedLMModel
from fairseq_plugins.tasks.unified_lm import vars_of
from tests.support.language_tasks import WORDS, document_folder, language_task, pair_folder
from unified.generation.lengths import PairLengths
from unified.model import TransformerConfig, UnifiedModel

SHAPE = {"vocabulary_size": len(WORDS), "layers": 1, "width": 16, "heads": 2, "max_positions": 32}


@pytest.fixture
def pairs(tmp_path):
    """The task on two pairs, with these options."""

    def make(**options):
        return language_task(pair_folder(tmp_path / "pairs", [(3, 2), (20, 6)]), **options)

    return make


def model_of(task, writes="cloze", **changes) -> UnifiedLMModel:
    return UnifiedLMModel(UnifiedModel.for_language(TransformerConfig(**SHAPE, **changes)), task, writes)


def generator_of(task, options=None, **keywords):
    return task.build_generator([model_of(task)], Namespace(**options or {}), **keywords)


REFUSED = {
    "entities": ({"sublayers": "entity,feed_forward"}, "nothing", "the model has entity-aware attention ('entity' "),
    "no token head": ({"token_head": "none"}, "nothing", "the model has no token head (token_head 'none'), so it "),
    "nothing": ({}, "nothing", "the model does not generate (writes nothing): "),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_model_that_cannot_write_is_refused_in_one_line(pairs, kind):
    """Also where another model of the ensemble can."""
    changes, writes, says = REFUSED[kind]
    task = pairs()
    models = [model_of(task), model_of(task, writes, **changes)]
    for some in (models, models[::-1]):
        with pytest.raises(SystemExit) as raised:
            task.build_generator(some, Namespace())
        assert str(raised.value).startswith(f"unified_lm: error: {says}")


@pytest.mark.parametrize("score_reference", [False, True])
def test_an_option_that_means_nothing_here_is_refused_in_one_line(pairs, score_reference):
    """``fairseq-generate --print-alignment hard`` wrote lines without an alignment."""
    with pytest.raises(SystemExit, match="^unified_lm: error: --print-alignment does not work here: "):
        generator_of(pairs(), {"print_alignment": "hard", "score_reference": score_reference})


@pytest.mark.parametrize("score_reference", [False, True])
def test_models_of_different_decoding_schemes_are_refused(pairs, score_reference):
    task = pairs()
    shape = {"token_types": 6}
    same = [model_of(task, **shape), model_of(task, **shape)]
    options = Namespace(score_reference=score_reference)
    assert task.build_generator(same, options) is not None
    with pytest.raises(SystemExit) as raised:
        task.build_generator([*same, model_of(task, "left_to_right", **shape)], options)
    assert str(raised.value) == (
        "unified_lm: error: --path: models of different decoding schemes (cloze, left_to_right) cannot write together"
    )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"temperature": 0.0}, "--temperature must be above 0, got 0.0; for the most probable use beam=1"),
        ({"temperature": float("nan")}, "--temperature must be a finite number, got nan"),
        ({"temperature": float("inf")}, "--temperature must be a finite number, got inf"),
        ({"temperature": 1e-30}, "--temperature must be at least 1e-20, got 1e-30; for the most probable use beam=1"),
        ({"lenpen": 1e308}, "--lenpen 1e+308: a text of 2 tokens has no such length penalty"),
        ({"lenpen": float("-inf")}, "--lenpen -inf: a text of 2 tokens has no such length penalty"),
    ],
)
@pytest.mark.parametrize("length_penalty", ["fairseq", "unilm"])
def test_numbers_by_which_nothing_can_be_divided_are_refused_in_one_line(pairs, length_penalty, options, says):
    with pytest.raises(SystemExit) as raised:
        generator_of(pairs(length_penalty=length_penalty), options)
    assert str(raised.value) == f"unified_lm: error: {says}"


def test_an_exponent_is_judged_by_the_penalty_that_it_is_for(pairs):
    """2^2000 is no float, (7/6)^2000 is one."""
    task = pairs(length_penalty="unilm")
    assert generator_of(task, {"lenpen": 2000.0}).len_penalty == 2000
    task.cfg.length_penalty = "fairseq"
    with pytest.raises(SystemExit, match="--lenpen 2000: a text of 2 tokens has no such length penalty$"):
        generator_of(task, {"lenpen": 2000.0})


def test_documents_are_nothing_to_generate_from(tmp_path):
    task = language_task(document_folder(tmp_path / "documents"), objectives="bert")
    assert type(generator_of(task)) is UnifiedSequenceGenerator, "fairseq-interactive reads no data set"
    task.load_dataset("valid")
    with pytest.raises(SystemExit) as raised:
        generator_of(task)
    assert str(raised.value) == (
        f"unified_lm: error: {tmp_path / 'documents'} holds documents, from which fairseq-generate has nothing to "
        "generate; continue prompts with fairseq-interactive or `unified generate`"
    )


def test_a_search_has_the_options_and_defaults_of_fairseq(pairs):
    task = pairs()
    found = generator_of(task)
    assert type(found) is UnifiedSequenceGenerator and (found.beam_size, found.min_len) == (5, 1)
    assert (found.normalize_scores, found.unilm_lenpen, found.max_target) == (True, False, 0)
    assert found.repeat_ngram_blocker is None and found.len_penalty == 1
    given = generator_of(task, {"beam": 3, "lenpen": 2.0, "unnormalized": True, "min_len": 4})
    assert (given.beam_size, given.len_penalty, given.normalize_scores, given.min_len) == (3, 2.0, False, 4)


def test_unilms_penalty_ranks_sums(pairs):
    found = generator_of(pairs(length_penalty="unilm"), {"beam": 3, "lenpen": 0.5})
    assert found.unilm_lenpen is True and found.normalize_scores is False
    assert (found.beam_size, found.len_penalty) == (3, 0.5)


@pytest.mark.parametrize(("max_target", "options", "most"), [
    (0, {}, 6), (0, {"min_len": 7}, 7), (1, {}, 1), (3, {}, 3), (3, {"min_len": 3}, 3), (3, {"min_len": 4}, 4),
])  # fmt: skip
def test_texts_are_as_long_as_targets_in_training_and_at_least_as_the_user_says(pairs, max_target, options, most):
    task = pairs()
    task.load_state_dict(PairLengths(0, max_target, 6).state())
    assert generator_of(task, options).max_target == most
    task.continues = True
    assert generator_of(task, options).max_target == 0


@pytest.mark.parametrize("continues", [False, True])
def test_texts_that_leave_too_few_positions_are_refused_before_any_is_written_from(pairs, continues):
    """Of sources with 3 and 20 tokens the longer one leaves 28 - 20 - 3 positions."""
    task = pairs(max_source=0)
    task.load_state_dict(PairLengths(0, 0, 6).state())
    task.lengths.load_positions(28)
    task.continues = continues
    typed = [torch.tensor([5] * 20 + [2])]
    task.load_dataset("valid")
    assert len(task.build_dataset_for_inference(typed, None)) == 1
    assert generator_of(task, {"min_len": 5}).min_len == 5
    text, advice = ("prompt", "lower it") if continues else (
        "source", "without the option sources are cut as in training"
    )  # fmt: skip
    says = f"unified_lm: error: --max-source 0: the longest {text} has 20 tokens then, but the model's "
    too_few = f"{says}28 positions leave room for 19 beside --min-len 6; {advice}"
    for refused in (
        lambda: generator_of(task, {"min_len": 6}),
        lambda: task.build_dataset_for_inference(typed, None),
    ):
        with pytest.raises(SystemExit) as raised:
            refused()
        assert str(raised.value) == too_few
    assert len(task.build_dataset_for_inference([torch.tensor([5] * 19 + [2])], None)) == 1
    task.lengths.load_positions(23)
    with pytest.raises(SystemExit) as raised:
        task.load_dataset("valid")
    assert str(raised.value) == f"{says}23 positions leave room for 14 beside --min-len 6; {advice}"


def test_symbols_that_blocking_leaves_alone_are_named(pairs):
    task = pairs(no_repeat_ngram_ignore="w3 w1")
    written = torch.tensor([[2, WORDS.index("w1"), WORDS.index("w2")]])
    scores = generator_of(task, {"no_repeat_ngram_size": 1}).repeat_ngram_blocker(
        written, torch.zeros(1, len(WORDS)), 1, 1, 2
    )
    assert scores.isinf().nonzero()[:, 1].tolist() == [WORDS.index("w2")]
    task.cfg.no_repeat_ngram_ignore = "w3 x y"
    with pytest.raises(SystemExit) as raised:
        generator_of(task)
    assert str(raised.value) == ("unified_lm: error: --no-repeat-ngram-ignore names symbols that dict.txt lacks: x y")


@pytest.mark.parametrize("options", [{}, {"no_repeat_ngram_size": 0}])
def test_symbols_that_no_rule_blocks_are_refused(pairs, options):
    task = pairs()
    assert generator_of(task, options).repeat_ngram_blocker is None
    task.cfg.no_repeat_ngram_ignore = "w3"
    with pytest.raises(SystemExit) as raised:
        generator_of(task, options)
    assert str(raised.value) == (
        "unified_lm: error: --no-repeat-ngram-ignore names what --no-repeat-ngram-size never blocks; it needs a size "
        "of at least 1"
    )


def test_what_others_ask_of_the_search_stays(pairs):
    extra = {"eos": 7}
    found = generator_of(
        pairs(), {}, seq_gen_cls="ours stands in for it", extra_gen_cls_kwargs=extra, prefix_allowed_tokens_fn=print
    )
    assert type(found) is UnifiedSequenceGenerator and found.eos == 7 and extra == {"eos": 7}
    assert type(found.search).__name__ == "PrefixConstrainedBeamSearch"


def test_references_are_scored_where_they_fit(pairs):
    """[CLS], a source of 20 tokens and one of 6, each with its separator, have 29 positions."""
    task = pairs(max_source=0)
    task.load_state_dict(PairLengths().state())
    task.lengths.load_positions(29)
    assert type(generator_of(task, {"score_reference": True})) is ForcedScorer
    task.load_dataset("valid")
    models = [model_of(task), model_of(task)]
    found = task.build_generator(models, OmegaConf.structured(GenerationConfig(score_reference=True)))
    assert type(found) is ForcedScorer and len(found.decoder.members) == 2
    task.lengths.load_positions(28)
    with pytest.raises(SystemExit) as raised:
        generator_of(task, {"score_reference": True})
    assert str(raised.value) == (
        "unified_lm: error: --score-reference: 1 of 2 sources have no room beside their targets in the model's 28 "
        "positions; cut sources with --max-source"
    )
    assert type(generator_of(task, {"score_reference": False})) is UnifiedSequenceGenerator


def test_fairseqs_tokens_are_made_by_its_own_option_where_it_is_given(pairs):
    task = pairs()
    assert task.build_bpe(None) is None
    made = task.build_bpe(OmegaConf.create({"_name": "characters"}))
    assert made.encode("ab").split() == ["a", "b"]


def test_options_are_read_by_name_whatever_holds_them():
    assert vars_of(Namespace(beam=3)) == {"beam": 3}
    assert vars_of(OmegaConf.create({"beam": 3})) == {"beam": 3}
    own = Namespace(beam=3)
    vars_of(own)["beam"] = 4
    assert own.beam == 3
