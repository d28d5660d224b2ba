"""Folders of other libraries by the kind of their model, and exports by the kind of ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from unified.checkpoints.conversion import Conversion, Imported
from unified.checkpoints.roberta import read_roberta
from unified.checkpoints.sources import read_config
from unified.conversions.bert import export_bert, no_bert, read_bert
from unified.conversions.export import Source
from unified.conversions.modern_bert import MODEL_TYPE as MODERN_BERT
from unified.conversions.modern_bert import export_modern_bert, no_modern_bert, read_modern_bert
from unified.conversions.remote_code import MODEL_TYPE, export_with_code, read_with_code
from unified.conversions.roberta import MODEL_TYPES, read_transformers_roberta
from unified.conversions.xlnet import export_xlnet, no_xlnet, read_xlnet
from unified.errors import UnifiedError, naming
from unified.files.model_folders import CONFIG


def _any_roberta(source: Path, writes: str | None = None) -> Imported:
    """A RoBERTa of ``transformers``, or of fairseq."""
    read = read_transformers_roberta if (source / CONFIG).is_file() else read_roberta
    return read(source, writes)


#: Readers of a folder, by the format that ``unified convert --from`` names.
READERS: dict[str, Callable[[Path, str | None], Imported]] = {
    "bert": read_bert,
    "roberta": _any_roberta,
    "xlnet": read_xlnet,
    MODERN_BERT: read_modern_bert,
    MODEL_TYPE: read_with_code,
}
#: Writers of a folder for ``transformers``, by the format that ``unified export --format`` names.
WRITERS: dict[str, Callable[[Source, Path], Conversion]] = {
    "bert": export_bert,
    "xlnet": export_xlnet,
    MODERN_BERT: export_modern_bert,
    MODEL_TYPE: export_with_code,
}
#: Kind of positions -> the format whose class of ``transformers`` has them, and why a model is none of that class.
_USUAL: dict[str, tuple[str, Callable[[Source], str | None]]] = {
    "learned": ("bert", no_bert),
    "relative": ("xlnet", no_xlnet),
    "rotary": (MODERN_BERT, no_modern_bert),
}


def format_of(folder: Path) -> str:
    """The format of a folder, one of :data:`READERS`, by its files.

    Raises:
        UnifiedError: it holds none of them, or a model of another type.
    """
    for name, found in (("bert_config.json", "bert"), ("xlnet_config.json", "xlnet")):
        if (folder / name).is_file():  # TensorFlow's
            return found
    if not (folder / CONFIG).is_file():
        if (folder / "dict.txt").is_file() and list(folder.glob("*.pt")):
            return "roberta"
        raise UnifiedError(
            f"{folder}: holds no {CONFIG} of transformers, no bert_config.json or xlnet_config.json of TensorFlow, and "
            "no model.pt with dict.txt of fairseq"
        )
    settings = read_config(folder / CONFIG)
    named = settings.get("model_type", "xlnet" if "d_model" in settings else "bert")
    found = "roberta" if named in MODEL_TYPES else named
    if found not in READERS:
        known = ", ".join(("bert", *MODEL_TYPES, "xlnet", MODERN_BERT, MODEL_TYPE))
        raise UnifiedError(f"{folder / CONFIG}: model_type {named!r}; models of type {known} are read")
    return found


def read_folder(folder: str | Path, writes: str | None = None, format: str | None = None) -> Imported:
    """Read a folder of another library.

    Args:
        folder: its path.
        writes: how the model generates, one of ``unified convert --writes``; None as its configuration says.
        format: one of :data:`READERS`; None as the folder's files say.

    Raises:
        UnifiedError: it is no folder, or a file is missing or is not what it should be; the message names the folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        problem = "a file; give the folder that the model is in" if folder.exists() else "no such folder"
        raise UnifiedError(f"{folder}: {problem}")
    with naming(folder):
        return READERS[format or format_of(folder)](folder, writes)


def export(source: Source, destination: Path, format: str | None = None) -> Conversion:
    """Make a folder for ``transformers``.

    Args:
        source: the model.
        destination: must not exist, or be empty.
        format: one of :data:`WRITERS`; None takes the class of BERT, XLNet or ModernBERT where it would give the same
            states and the model was not fine-tuned to write, and else "unified", whose folders bring the code of their
            model along.

    Raises:
        UnifiedError: there is no such format, or the model or its tokenizer does not fit it; nothing is written.
    """
    if format is not None:
        if format not in WRITERS:
            raise UnifiedError(f"format must be one of {', '.join(WRITERS)}, got {format!r}")
        return WRITERS[format](source, destination)
    usual, why_not = _USUAL[source.config.positions]
    reason, trained = why_not(source), source.trained
    if reason is None and trained.lengths.longest_target:
        reason = "the model was fine-tuned to write, which no class of transformers does as it does"
    if reason is None:
        done = WRITERS[usual](source, destination)
        writes = (
            "the folder fills in and embeds, but does not generate, as the class of transformers cannot; the format "
            f"{MODEL_TYPE!r} makes one that does"
        )
        return done if trained.writes == "nothing" else replace(done, remarks=(*done.remarks, writes))
    done = export_with_code(source, destination)
    return replace(done, remarks=(f"written as the format {MODEL_TYPE!r}: {reason}", *done.remarks))
