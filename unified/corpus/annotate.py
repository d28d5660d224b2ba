"""Annotating texts: who finds the spans, how finished ones are kept, and which tokens they take in."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unified.corpus.items import Items
from unified.data.annotations import KINDS, columns
from unified.errors import UnifiedError, nearest
from unified.files.archives import check_stored
from unified.files.whole import whole_file
from unified.runtime.progress import Progress


class Annotator(Protocol):
    """Finds spans in texts; worker processes get copies of it, so it can be pickled.

    Attributes:
        description: whatever decides which spans it finds, in JSON values; the manifest quotes it.
    """

    description: dict[str, Any]

    def __call__(self, texts: list[str]) -> dict[str, np.ndarray]:
        """Per kind int64 (n, 3), sorted: number of the text, first character of a span, the one behind its last.

        Of parts of speech (n, 4), the number of the tag in :data:`unified.data.annotations.TAGS` behind them.
        """
        ...


@dataclass(frozen=True)
class AnnotationSource:
    """Options of ``unified prepare`` about annotations.

    Attributes:
        kinds: some of :data:`unified.data.annotations.KINDS`.
        pipeline: name or folder of a spaCy pipeline.
        code: module to import first, for a pipeline with components of its own.
    """

    kinds: tuple[str, ...]
    pipeline: str
    code: str | None = None

    def __post_init__(self) -> None:
        unknown = [kind for kind in self.kinds if kind not in KINDS]
        if unknown or not self.kinds:
            hint = nearest(unknown[0], KINDS) if unknown else ""
            raise UnifiedError(f"--annotate takes some of {','.join(KINDS)}, got {','.join(self.kinds)!r}{hint}")
        if len(set(self.kinds)) < len(self.kinds):
            raise UnifiedError(f"--annotate {','.join(self.kinds)}: name each kind once")

    def load(self) -> Annotator:
        """The annotator.

        Raises:
            UnifiedError: spaCy is not installed, or the pipeline cannot be loaded or does not annotate these kinds.
        """
        # Imported here: spaCy is needed by nobody else.
        from unified.corpus.spacy_pipeline import SpacyAnnotator

        return SpacyAnnotator(self.kinds, self.pipeline, self.code)


class KeptAnnotator:
    """An annotator whose results are kept in files, to be picked up when the same texts are annotated again.

    A file's name is a hash of the annotator's description and of the texts, so nothing stale is ever picked up,
    whatever else has changed in between.
    """

    def __init__(self, annotator: Annotator, folder: Path):
        self._annotator = annotator
        self._folder = folder
        self.description = annotator.description

    def __call__(self, texts: list[str]) -> dict[str, np.ndarray]:
        key = json.dumps([self.description, texts]).encode("ascii")
        path = self._folder / f"{hashlib.sha256(key).hexdigest()}.npz"
        if path.is_file():
            try:
                return _kept(path, len(texts))
            except UnifiedError as error:
                Progress.say(f"{error}; made anew")
        spans = self._annotator(texts)
        self._keep(path, spans)
        return spans

    def _keep(self, path: Path, spans: dict[str, np.ndarray]) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as stream:
            np.savez(stream, kinds=np.array(list(spans), dtype=str), **spans)  # type: ignore[arg-type]  # mypy takes a span for numpy's option allow_pickle


def _kept(path: Path, texts: int) -> dict[str, np.ndarray]:
    """Annotations of so many texts that were kept in a file.

    Raises:
        UnifiedError: it is damaged, or holds something else.
    """
    check_stored(path, "kept annotations")
    try:
        with np.load(path, allow_pickle=False) as kept:
            spans = dict(kept)
    except (ValueError, OSError, EOFError, KeyError, SyntaxError, MemoryError) as error:
        raise UnifiedError(f"{path}: kept annotations that cannot be read ({error})") from None
    listed = spans.pop("kinds", None)  # of a damaged archive, files may be missing
    if listed is None or listed.dtype.kind != "U" or sorted(listed.ravel().tolist()) != sorted(spans):
        raise UnifiedError(f"{path}: kept annotations of which some are missing")
    for name, found in spans.items():
        whole = found.dtype.kind == "i" and found.ndim == 2 and found.shape[1] == 1 + columns(name)
        if name not in KINDS or not whole or ((found[:, 0] < 0) | (found[:, 0] >= texts)).any():
            raise UnifiedError(f"{path}: kept annotations of another form")
    return spans


@contextmanager
def annotating(source: AnnotationSource | None, destination: Path) -> Iterator[Annotator | None]:
    """The annotator of ``source``; its finished chunks are kept beside ``destination`` until the block ends well."""
    if source is None:
        yield None
        return
    folder = destination.with_name(f".{destination.name}.annotations")
    annotator = KeptAnnotator(source.load(), folder)
    if folder.exists():
        Progress.say(f"annotations that an interrupted run left in {folder} are taken over where the text is the same")
    try:
        yield annotator
    except BaseException:
        if folder.exists():
            Progress.say(f"finished annotations are kept in {folder}; the same command goes on from there")
        raise
    shutil.rmtree(folder, ignore_errors=True)


def token_spans(spans: np.ndarray, offsets: np.ndarray, sizes: np.ndarray) -> Items:
    """Spans of characters as spans of tokens: a token belongs to a span where one of its characters does.

    Args:
        spans: int64 (n, 3) or (n, 4), as an :class:`Annotator` gives them.
        offsets: int64 (sum of sizes, 2), the characters of each token, see :class:`unified.tokenization.Tokenizer`.
        sizes: int64 (texts,), tokens of each text.

    Returns:
        One item a text: starts and stops of its spans in turn, int32, in tokens of the text, each with its tag where
        spans have one. Spans without a token are left out.
    """
    # Texts laid out at equal distances, so that one search serves all.
    distance = int(max(spans.max(initial=0), offsets.max(initial=0))) + 1
    texts, characters = spans[:, 0], spans[:, 1:3] + distance * spans[:, :1]
    laid_out = offsets + distance * np.repeat(np.arange(len(sizes)), sizes)[:, None]
    starts = np.searchsorted(laid_out[:, 1], characters[:, 0], side="right")
    stops = np.searchsorted(laid_out[:, 0], characters[:, 1], side="left")
    found = starts < stops
    before = (np.cumsum(sizes) - sizes)[texts[found]]
    within = np.stack([starts[found], stops[found]], axis=1) - before[:, None]
    kept = np.concatenate([within, spans[found, 3:]], axis=1).astype(np.int32)
    return Items(kept.ravel(), kept.shape[1] * np.bincount(texts[found], minlength=len(sizes)))
