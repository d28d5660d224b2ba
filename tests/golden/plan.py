"""What is trained: every objective alone, packed and padded; mixtures; a memory; every head."""

from __future__ import annotations

from dataclasses import dataclass

UPDATES = 100

_SHAPE = ("--layers", 2, "--width", 32, "--heads", 2, "--dropout", 0.1, "--attention-dropout", 0.1)
_STEPS = ("--optimizer", "adam", "--lr", 2e-3, "--clip-norm", 1, "--max-update", UPDATES)
_LANGUAGE = ("--task", "unified_lm", "--criterion", "unified_lm", "--tokens-per-sample", 64, "--batch-size", 8)
_UNDERSTANDING = (
    "--task", "unified_understanding", "--criterion", "unified_understanding", "--arch", "bert_tiny",
    "--tokens-per-sample", 32, "--batch-size", 16,
)  # fmt: skip
_PERMUTED = ("--arch", "xlnet_tiny", "--inner-dropout", 0.1)
_SHARED = ("--arch", "unified_lm_tiny")

#: Those of running text on the shared model, with the settings that differ in kind.
TEXT_OBJECTIVES = (
    "bidirectional", "bidirectional(next_sentence=False, whole_words=True)", "left_to_right", "right_to_left",
    "seq2seq", "bert", "bert(left_to_right=True, next_sentence=False)", "spanbert", "spanbert(scheme='noun_phrase')",
    "anna", "anna(scheme='pos')", "prefix_lm", "bert_style", "deshuffling", "mass_style", "replace_spans",
    "drop_tokens", "random_spans",
)  # fmt: skip
MIXTURE = (
    "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1,bert:1,spanbert:1,anna:1,prefix_lm:1,bert_style:1,"
    "deshuffling:1,mass_style:1,replace_spans:1,drop_tokens:1,random_spans:1"
)
PAIR_OBJECTIVES = ("target_cloze", "target_cloze(mask_source=0.1)", "target_next")
PERMUTED_OBJECTIVES = ("xlnet", "bert", "bidirectional:1,xlnet:1,seq2seq:1,random_spans:1")
HEADS = (
    "classification", "regression", "tagging", "choice", "relation", "span(design='bert', stride=8)",
    "span(design='unilm', stride=8)", "span(design='xlnet', stride=8)",
    "coreference(hidden=32, features=8, dropout=0.1, max_width=2, max_windows=2, spans_per_word=0.8)",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One training.

    Attributes:
        name: of the run.
        data: kind of its data folder.
        options: of ``fairseq-train``.
        outputs: what the trained model is asked for, see :data:`tests.golden.outputs.KINDS`.
        is_language: whether its batches are those of ``unified_lm``.
    """

    name: str
    data: str
    options: tuple[object, ...]
    outputs: tuple[str, ...] = ()
    is_language: bool = True


def runs() -> list[Run]:
    """All of them, in a fixed order."""
    found = []
    for padded in (False, True):
        layout, rows = ("padded", ("--padded",)) if padded else ("packed", ())
        language = (*_LANGUAGE, *_STEPS, *rows)
        for objective in TEXT_OBJECTIVES:
            arch = ("--arch", "anna_tiny") if objective.startswith("anna") else _SHARED
            found.append(_language(objective, layout, "documents", (*language, *arch, *_SHAPE)))
        found.append(_language(MIXTURE, layout, "documents", (*language, *_SHARED, *_SHAPE), "mixture"))
        for objective in PAIR_OBJECTIVES:
            found.append(_language(objective, layout, "pairs", (*language, *_SHARED, *_SHAPE)))
        for objective in PERMUTED_OBJECTIVES:
            options = (*language, *_PERMUTED, *_SHAPE)
            found.append(_language(objective, layout, "documents", options, f"{objective} on relative positions"))
    options = (*_LANGUAGE, *_STEPS, *_PERMUTED, *_SHAPE, "--memory", 40)
    found.append(_language("xlnet", "streams", "documents", options, "xlnet with a memory"))
    for head in HEADS:
        options = (*_UNDERSTANDING, *_STEPS, *_SHAPE, "--head", head)
        found.append(Run(f"head {head}", head.split("(")[0], options, ("predictions",), is_language=False))
    return found


def _language(objective: str, layout: str, data: str, options: tuple[object, ...], name: str | None = None) -> Run:
    outputs = ("texts",) if data == "pairs" else ("texts", "fillings") if objective in _ASKED else ()
    return Run(f"{name or objective}, {layout}", data, (*options, "--objectives", objective), outputs)


#: Objectives whose models continue prompts and fill masks.
_ASKED = ("left_to_right", "xlnet", MIXTURE)
