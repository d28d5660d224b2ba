"""Refusals of options of generation that fairseq takes, and that a search here cannot follow.

fairseq ends with a traceback in the search, or behind it, or passes such an option by.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from fairseq.dataclass.configs import GenerationConfig

from fairseq_plugins.refusals import require_in
from unified.arguments import Range, as_option
from unified.errors import UnifiedError

_NO_ALIGNMENT = "the model reports no attention from its texts to their sources"
_ONE_PASS = "is for models that refine a whole text step by step, as non-autoregressive ones do"
_TWO_PASSES = "is for models with two decoders, as of speech translation"
#: Options without a meaning here, and why; any other value than fairseq's default is refused.
_MEANINGLESS = {
    "print_alignment": _NO_ALIGNMENT,
    "replace_unk": _NO_ALIGNMENT,
    "constraints": "the search cannot be made to write given words",
    "match_source_len": "lengths are chosen by --min-len and --max-target",
    "lm_path": "no language model joins the search; --path FIRST:SECOND makes an ensemble",
    "retain_dropout": "dropout is off in generation",
    "retain_dropout_modules": "dropout is off in generation",
    "eos_token": "the end symbol is the dictionary's",
    **dict.fromkeys(
        (
            "print_step",
            "iter_decode_eos_penalty",
            "iter_decode_max_iter",
            "iter_decode_force_max_iter",
            "iter_decode_with_beam",
            "iter_decode_with_external_reranker",
            "retain_iter_history",
            "decoding_format",
        ),
        _ONE_PASS,
    ),
    **dict.fromkeys(("beam_mt", "max_len_a_mt", "max_len_b_mt", "lenpen_mt"), _TWO_PASSES),
}
_DEFAULTS: dict[str, Any] = {option.name: option.default for option in dataclasses.fields(GenerationConfig)}
#: Value of fairseq's options of sampling that draws from all tokens.
_OFF = -1
_SAMPLING = {"sampling_topk": Range(least=1), "sampling_topp": Range(above=0, most=1)}


def check_generation(options: Mapping[str, Any]) -> None:
    """Refuse options of a search that mean nothing here, contradict each other or are out of range.

    Args:
        options: fairseq's options of generation by name; those that are missing have its defaults.

    Raises:
        UnifiedError: names the option.
    """
    given = {**_DEFAULTS, **options}
    for name, reason in _MEANINGLESS.items():
        if given[name] != _DEFAULTS[name]:
            verb = "" if reason.startswith("is ") else "does not work here: "
            raise UnifiedError(f"{as_option(name)} {verb}{reason}; leave it out")
    for name in ("beam", "nbest"):
        require_in(Range(least=1), as_option(name), given[name])
    if given["nbest"] > given["beam"]:
        raise UnifiedError(f"--nbest {given['nbest']} exceeds --beam {given['beam']}; there are no more hypotheses")
    for name, allowed in _SAMPLING.items():
        if given[name] == _OFF:
            continue
        require_in(allowed, as_option(name), given[name])
        if not given["sampling"]:
            raise UnifiedError(f"{as_option(name)} chooses what is drawn; it needs --sampling")
    searches = {
        "--sampling": given["sampling"],
        "--diverse-beam-groups": given["diverse_beam_groups"] > 0,
        "--diversity-rate": given["diversity_rate"] > 0,
    }
    chosen = [option for option, is_chosen in searches.items() if is_chosen]
    if len(chosen) > 1:
        raise UnifiedError(f"{' and '.join(chosen)} are different searches; choose one")
    groups = given["diverse_beam_groups"]
    if groups > 0 and given["beam"] % groups:
        raise UnifiedError(f"--beam {given['beam']} must be a multiple of --diverse-beam-groups {groups}")
