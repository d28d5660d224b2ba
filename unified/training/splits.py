"""Opens a split of a prepared folder: its token files, the texts in them, and rows to train on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unified.data.annotations import Annotations
from unified.data.prepared_folder import DataFolder
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths, fit_pairs
from unified.objectives.mixture import Mixture
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.runtime.progress import Progress
from unified.tokenization import load_tokenizer, tokenizer_files, word_starts
from unified.training.row_dataset import RowDataset, longest_text, require_texts
from unified.training.settings import TrainingSettings


def open_split(folder: DataFolder, split: str, vocabulary: Vocabulary) -> list[TokenFile]:
    """Token files of a split: one of documents, source and target of pairs.

    Raises:
        UnifiedError: the split is empty, or holds ids that the vocabulary lacks.
    """
    files = _files(folder, split)
    for file in files:
        file.check_ids(vocabulary.listed)
    return files


def require_split(
    folder: DataFolder,
    split: str,
    vocabulary: Vocabulary,
    mixture: Mixture,
    tokens_per_sample: int,
    word_starts: np.ndarray | None,
) -> None:
    """Refuse a split that the objectives cannot learn from, without reading its tokens.

    Args:
        word_starts: as for :func:`document_texts`.

    Raises:
        UnifiedError: the split is missing, empty or damaged, or as :func:`unified.training.row_dataset.require_texts`.
    """
    files = _files(folder, split)
    special, annotations = vocabulary.special, Annotations(files[0])
    texts: DocumentTexts | PairTexts
    if folder.paired:
        source, target = files
        texts = PairTexts(source, target, special, word_starts=word_starts, annotations=annotations)
    else:
        texts = DocumentTexts(files[0], special, word_starts, annotations)
    require_texts(texts, mixture, tokens_per_sample)


def known_word_starts(folder: DataFolder, vocabulary: Vocabulary) -> np.ndarray | None:
    """Entries of a vocabulary that begin a word, bool (V,), by the tokenizer in a folder; None where none tells."""
    return word_starts(load_tokenizer(folder.path), vocabulary) if tokenizer_files(folder.path) else None


def _files(folder: DataFolder, split: str) -> list[TokenFile]:
    files = [TokenFile(prefix) for prefix in folder.prefixes(split)]
    if any(len(file) == 0 for file in files):
        raise UnifiedError(f"{folder.path}: split {split!r} is empty")
    return files


def document_texts(file: TokenFile, vocabulary: Vocabulary, word_starts: np.ndarray | None) -> DocumentTexts:
    """Documents of a token file.

    Args:
        word_starts: bool (V,), True where a vocabulary entry begins a word; None when unknown.

    Raises:
        UnifiedError: the file or its annotations are damaged.
    """
    return DocumentTexts(file, vocabulary.special, word_starts, _annotations(file))


def pair_texts(
    files: Sequence[TokenFile], vocabulary: Vocabulary, word_starts: np.ndarray | None, lengths: PairLengths
) -> PairTexts:
    """Pairs of a file of sources and one of targets, cut to ``lengths``; see :func:`document_texts`."""
    source, target = files
    limits = lengths.max_source, lengths.max_target
    return PairTexts(source, target, vocabulary.special, *limits, word_starts, _annotations(source))


def _annotations(file: TokenFile) -> Annotations:
    annotations = Annotations(file)
    annotations.check()
    return annotations


def training_rows(
    folder: DataFolder,
    files: Sequence[TokenFile],
    vocabulary: Vocabulary,
    mixture: Mixture,
    settings: TrainingSettings,
) -> tuple[RowDataset, PairLengths]:
    """Packed rows of a folder's training texts, and the lengths at which pairs are cut; says how many are.

    Args:
        files: of the split, see :func:`open_split`.

    Raises:
        UnifiedError: texts and objectives do not go together.
    """
    starts = known_word_starts(folder, vocabulary)
    lengths = PairLengths()
    texts: DocumentTexts | PairTexts
    if folder.paired:
        longest = longest_text(mixture, settings.tokens_per_sample)
        sources, targets = map(text_lengths, files)
        lengths = fit_pairs(sources, targets, longest, called=str)
        texts = pair_texts(files, vocabulary, starts, lengths)
        for note in texts.cut().values():
            Progress.say(f"train: {note} (so that pairs fit into rows of {settings.tokens_per_sample} tokens)")
    else:
        texts = document_texts(files[0], vocabulary, starts)
    return RowDataset(texts, mixture, settings.tokens_per_sample, settings.seed), lengths


def text_lengths(file: TokenFile) -> np.ndarray:
    """Tokens of each item without the separator at its end, int64 (n,)."""
    return file.sizes.astype(np.int64) - 1
