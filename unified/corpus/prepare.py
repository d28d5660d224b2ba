"""Turns text into a folder that fairseq and this library train from.

Documents: ``train.bin/.idx`` (and ``valid``, ``test``) hold one item a paragraph (a sentence where cleaning divides
them), each closed by ``</s>``, and an item of ``</s>`` alone between two documents, which is what
``fairseq-preprocess`` writes for a blank line.
Pairs: ``train.source-target.source.bin/.idx`` and ``….target.…``.
Both: ``dict.txt``, for pairs ``dict.source.txt`` and an equal ``dict.target.txt``; the tokenizer's own
file, ``word_starts.npy`` (bool, one per id) and ``manifest.json``. Annotated documents: ``train.KIND.bin/.idx``, see
:mod:`unified.data.annotations`. Sentences of the sources of pairs: ``train.source-target.source.sentences.bin/.idx``,
and ``….oracle.…`` those of them that an extractive summary takes.

The folder depends on the text and the settings alone, not on the number of workers.
"""

from __future__ import annotations

import io
import itertools
import os
import platform
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

import unified
from unified.arguments import counted
from unified.corpus.annotate import AnnotationSource, Annotator, annotating
from unified.corpus.cleaning import CleanedChunk, Cleaning, CleaningEncoder, Report
from unified.corpus.encode import DocumentEncoder, LineSampler, PairEncoder, TokenEncoder
from unified.corpus.readers import (
    DocumentChunk,
    DocumentCorpus,
    PairChunk,
    ParallelCorpus,
    RowDocuments,
    RowPairCorpus,
    RowPairs,
)
from unified.corpus.split_writers import SOURCE, TARGET, DocumentSplitWriter, PairSplitWriter
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.annotations import SOURCE_KINDS
from unified.data.markers import markers_of, with_markers
from unified.data.sampling import TextSample
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.files.destination import check_destination, describe, new_folder, write_manifest
from unified.files.rows import has_fields, is_hub, require_rows
from unified.files.text_files import without_compression
from unified.files.whole import resolved, write_whole_bytes
from unified.runtime.parallel import ordered_map
from unified.runtime.progress import Progress
from unified.tokenization import Tokenizer, ordinary_symbols, word_starts
from unified.tokenization.anna import AnnaTokenizer

#: Advice where the destination is not empty, in the words of ``unified prepare``.
ADVICE = "give another --output, or --overwrite to replace the folder"
Corpus = DocumentCorpus | ParallelCorpus | RowPairCorpus
#: Bytes of each file that are read before any work.
_BEGINNING_BYTES = 1 << 14
SplitWriters = Mapping[str, DocumentSplitWriter | PairSplitWriter]


@dataclass(frozen=True)
class Settings:
    """Settings of a prepared folder.

    Attributes:
        train, valid, test: the texts, all documents or all pairs; the latter two may be None.
        valid_share: share of the training documents or pairs that become the validation split, in place of ``valid``.
        tokenizer: how to get the tokenizer.
        cleaning: what is removed from documents, in every split; None takes them as they are.
        annotation: who annotates the documents; None leaves them as they are.
        skip_empty: leave rows without text and pairs with an empty side out instead of refusing them.
        oracle: take along where the sentences of the sources are and which of them the oracle takes.
        reserve: fewest symbols ``[unused1]``, ``[unused2]``, ... of the dictionary, which no text contains and later
            tasks take as markers (:mod:`unified.data.markers`).
        seed: of the validation share and of the sample the tokenizer is trained on, from 0 to 2^64 - 1.
    """

    train: Corpus
    valid: Corpus | None = None
    test: Corpus | None = None
    valid_share: float = 0.0
    tokenizer: TokenizerSource = TokenizerSource()
    cleaning: Cleaning | None = None
    annotation: AnnotationSource | None = None
    skip_empty: bool = False
    oracle: bool = False
    reserve: int = 0
    seed: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.valid_share < 1:
            raise UnifiedError(f"--valid-share is at least 0 and below 1, got {self.valid_share}")
        if self.reserve < 0:
            raise UnifiedError(f"--reserve must be at least 0, got {self.reserve}")
        if not 0 <= self.seed < 2**64:
            raise UnifiedError(f"--seed must be from 0 to 2^64 - 1, got {self.seed}")
        if self.valid_share and self.valid:
            raise UnifiedError("--valid and --valid-share both say what the validation split is; give one of them")
        if self.cleaning and self.is_pairs:
            raise UnifiedError("--clean is for documents; pairs are taken as they are")
        if self.annotation and self.is_pairs:
            raise UnifiedError("--annotate is for documents; of source/target pairs objectives read --oracle")
        if len({isinstance(corpus, DocumentCorpus) for corpus in self.corpora.values()}) > 1:
            raise UnifiedError(
                "the texts of all splits are documents, or those of all are pairs; these are of both kinds"
            )
        if self.oracle and not all(isinstance(corpus, RowPairCorpus) for corpus in self.corpora.values()):
            raise UnifiedError("--oracle is for files of `unified pairs --oracle`; give --source-field source")

    @property
    def corpora(self) -> dict[str, Corpus]:
        """The texts by the name of their split."""
        named = {"train": self.train, "valid": self.valid, "test": self.test}
        return {name: corpus for name, corpus in named.items() if corpus is not None}

    @property
    def split_names(self) -> list[str]:
        """The splits of the folder."""
        return [*self.corpora, *(["valid"] if self.valid_share else [])]

    @property
    def is_pairs(self) -> bool:
        """Whether the training text is pairs of source and target and not documents."""
        return not isinstance(self.train, DocumentCorpus)

    def chunks(self, corpus: Corpus) -> Iterator[DocumentChunk | PairChunk | RowPairs]:
        """The chunks of one of the texts, cleaned where the settings say so."""
        if self.cleaning is not None and isinstance(corpus, DocumentCorpus):
            chunks = corpus.chunks(whole_documents=True, skip_empty=self.skip_empty)
            yield from (CleanedChunk(chunk, self.cleaning) for chunk in chunks)
        elif isinstance(corpus, DocumentCorpus):
            yield from corpus.chunks(skip_empty=self.skip_empty)
        else:
            yield from corpus.chunks()


def prepare(
    settings: Settings, destination: str | Path, workers: int = 1, overwrite: bool = False, advice: str = ADVICE
) -> dict[str, Any]:
    """Makes the folder ``destination``; returns its manifest (without ``outputs``).

    Progress goes to stderr. Nothing appears at ``destination`` before everything is done.

    Args:
        overwrite, advice: as for :func:`unified.files.destination.new_folder`.

    Raises:
        UnifiedError: the text, the settings or the destination cannot be used; the message says what and where.
    """
    if workers < 1:
        raise UnifiedError(f"--workers must be at least 1, got {workers}")
    check_destination(Path(destination), overwrite, advice)
    for corpus in settings.corpora.values():
        for path in corpus.paths:
            require_rows(path)
    if settings.cleaning:
        settings.cleaning.rules()  # a missing library is told before any work, not within
    _read_beginnings(settings)
    for note in _shared_files(settings):
        Progress.say(note)
    annotation = annotating(settings.annotation, resolved(destination))
    with annotation as annotator, new_folder(destination, overwrite, advice) as folder:
        tokenizer, vocabulary, dictionary = _tokenizer(settings, workers)
        encoder = TokenEncoder(tokenizer, vocabulary)
        writers, reports = _encode_all(settings, folder, encoder, annotator, vocabulary, workers)
        if dictionary is None:
            stop = vocabulary.special.ordinary_stop
            vocabulary = Vocabulary(vocabulary.symbols[4:stop], writers["train"].counts[4:stop].tolist())
        reserved = with_markers(vocabulary, settings.reserve)
        if reserved is not vocabulary:
            vocabulary, dictionary = reserved, None
        _write_dictionaries(folder, settings.is_pairs, vocabulary, dictionary)
        tokenizer.save(folder)
        starts = word_starts(tokenizer, vocabulary)
        if starts is not None:
            file = io.BytesIO()  # of a real one, numpy says neither its name nor why it cannot be written
            np.save(file, starts)
            write_whole_bytes(folder / "word_starts.npy", file.getvalue())
        manifest = _manifest(settings, tokenizer, vocabulary, writers, annotator)
        if settings.cleaning:
            manifest["cleaning"] = {name: asdict(report) for name, report in reports.items()}
        write_manifest(folder, manifest)
    return manifest


def _read_beginnings(settings: Settings) -> None:
    """Read the first rows of every file, so that a file of another form is refused before the others are encoded.

    Raises:
        UnifiedError: the file and what is wrong with it; or the split whose files are all empty.
    """
    for name, corpus in settings.corpora.items():
        empty = True
        for file in corpus.single_files(_BEGINNING_BYTES):
            for first in itertools.islice(settings.chunks(file), 1):
                empty = False
                chunk = first.chunk if isinstance(first, CleanedChunk) else first
                if isinstance(chunk, RowPairs) and settings.oracle:
                    deque(chunk.pairs_with_spans(), maxlen=0)
                else:
                    deque(chunk.pairs() if isinstance(chunk, PairChunk | RowPairs) else chunk.documents(), maxlen=0)
        if empty:
            raise UnifiedError(_no_text(settings, name))


def _shared_files(settings: Settings) -> list[str]:
    """Sentences on files of the training text that another split reads, too; texts of pairs are the sources."""
    train = _identities(settings.train)
    notes = []
    for name, corpus in settings.corpora.items():
        why = f"read for train and for {name}; a loss or a score on {name} looks too good"
        shared = [path for one, path in _identities(corpus).items() if name != "train" and one in train]
        notes += [f"{path}: {why}" for path in shared]
    return notes


def _identities(corpus: Corpus) -> dict[str, str]:
    """The files of a corpus, of pairs in two files those of the sources, by their real paths."""
    paths = corpus.sources if isinstance(corpus, ParallelCorpus) else corpus.paths
    return {path if is_hub(path) else os.path.realpath(path): path for path in paths}


def _tokenizer(settings: Settings, workers: int) -> tuple[Tokenizer, Vocabulary, bytes | None]:
    """Tokenizer, vocabulary, and the dictionary file they came with, if any."""
    source = settings.tokenizer
    if not source.is_trained:
        return source.load()
    source.noun_phrases()  # a missing pipeline is told before the text is read, not after
    sample = TextSample(source.sample_megabytes * 1_000_000)
    progress, seen = Progress("reading", total=_bytes_of(settings.train)), 0
    # Made while the pass goes on: the more is read, the lower the threshold, the less is sent back.
    tasks = ((i, chunk, sample.threshold) for i, chunk in enumerate(settings.chunks(settings.train)))
    for size, lines, keyed_lines in ordered_map(LineSampler(settings.seed, settings.valid_share), tasks, workers):
        for key, line in keyed_lines:
            sample.add(key, line)
        seen += lines
        progress.add(size, counted(seen, "line"))
    progress.finish(counted(seen, "line"))
    chosen = sample.lines()
    if not chosen:
        raise UnifiedError(_no_text(settings, "train"))
    Progress.say(f"training the {source.name} tokenizer on {counted(len(chosen), 'line')}")
    tokenizer = source.train(chosen)
    if isinstance(tokenizer, AnnaTokenizer):
        Progress.say(
            f"{counted(len(tokenizer.words), 'word')} of the anna tokenizer are chosen from {tokenizer.candidates}"
        )
    return tokenizer, Vocabulary(ordinary_symbols(tokenizer)), None


def _encode_all(
    settings: Settings,
    folder: Path,
    encoder: TokenEncoder,
    annotator: Annotator | None,
    vocabulary: Vocabulary,
    workers: int,
) -> tuple[SplitWriters, dict[str, Report]]:
    """The writers of the folder's splits, and how each text was cleaned."""
    kinds = settings.annotation.kinds if settings.annotation else SOURCE_KINDS if settings.oracle else ()
    new_writer = PairSplitWriter if settings.is_pairs else DocumentSplitWriter
    with ExitStack() as open_writers:
        writers: dict[str, DocumentSplitWriter | PairSplitWriter] = {}
        for name in settings.split_names:
            writers[name] = new_writer(folder, name, vocabulary, kinds)
            open_writers.enter_context(writers[name])
        reports = {
            name: _encode(settings, name, corpus, writers, encoder, annotator, workers)
            for name, corpus in settings.corpora.items()
        }
        for name, writer in writers.items():
            if not writer.counts.any():
                raise UnifiedError(_no_text(settings, name))
    return writers, reports


def _encode(
    settings: Settings,
    name: str,
    corpus: Corpus,
    writers: SplitWriters,
    encoder: TokenEncoder,
    annotator: Annotator | None,
    workers: int,
) -> Report:
    function = _chunk_encoder(settings, name, encoder, annotator)
    progress, report = Progress(name, total=_bytes_of(corpus)), Report()
    given, chunks = itertools.tee(settings.chunks(corpus))
    for chunk, (size, encoded, encoded_valid, *cleaned) in zip(
        chunks, ordered_map(function, given, workers), strict=True
    ):
        report = sum(cleaned, report)
        writers[name].skipped += _empty_rows(chunk, [encoded, encoded_valid], cleaned)
        if encoded is not None:
            writers[name].add(encoded)
        if encoded_valid is not None:
            writers["valid"].add(encoded_valid)
        progress.add(size, writers[name].summary)
    progress.finish(writers[name].summary)
    return report


def _empty_rows(chunk: DocumentChunk | PairChunk | RowPairs, encoded: Sequence[Any], cleaned: Sequence[Report]) -> int:
    """Rows of a chunk of documents that hold no text, by what was made of the chunk; pairs are counted elsewhere."""
    rows = chunk.chunk if isinstance(chunk, CleanedChunk) else chunk
    if not isinstance(rows, RowDocuments):
        return 0
    found = cleaned[0].input.documents if cleaned else sum(one.documents for one in encoded if one is not None)
    return rows.chunk.row_count - found


def _bytes_of(corpus: Corpus) -> int | None:
    """Bytes of the text of a corpus; None where its files do not say it, compressed ones and those with fields."""
    plain = [Path(path) for path in corpus.paths if not has_fields(path) and without_compression(path) == path]
    known = len(plain) == len(corpus.paths) and all(path.is_file() for path in plain)  # reading refuses a missing one
    return sum(path.stat().st_size for path in plain) if known else None


def _chunk_encoder(
    settings: Settings, name: str, encoder: TokenEncoder, annotator: Annotator | None
) -> Callable[[Any], tuple[Any, ...]]:
    """The function that turns a chunk of documents or pairs into its size, encoded items, and a cleaning report."""
    share = settings.valid_share if name == "train" else 0.0
    if settings.is_pairs:
        return PairEncoder(encoder, settings.seed, share, settings.skip_empty, settings.oracle)
    documents = DocumentEncoder(encoder, settings.seed, share, annotator)
    return CleaningEncoder(documents) if settings.cleaning else documents


def _no_text(settings: Settings, name: str) -> str:
    if settings.valid_share and name in ("train", "valid"):
        unit = "pairs" if settings.is_pairs else "documents (blank lines divide raw text into documents)"
        return (
            f"--valid-share {settings.valid_share} leaves the {name} split empty: {', '.join(settings.train.paths)} "
            f"has too few {unit}; give another share or seed, or a file with --valid"
        )
    left = " that --clean leaves" if settings.cleaning else ""
    return f"{', '.join(settings.corpora[name].paths)}: no text{left}"


def _write_dictionaries(folder: Path, is_pairs: bool, vocabulary: Vocabulary, ready_made: bytes | None) -> None:
    for name in (f"dict.{SOURCE}.txt", f"dict.{TARGET}.txt") if is_pairs else ("dict.txt",):
        if ready_made is None:
            vocabulary.save(folder / name)
        else:
            write_whole_bytes(folder / name, ready_made)


def _manifest(
    settings: Settings, tokenizer: Tokenizer, vocabulary: Vocabulary, writers: SplitWriters, annotator: Annotator | None
) -> dict[str, Any]:
    paths = [path for corpus in settings.corpora.values() for path in corpus.paths]
    return {
        "content": "pairs" if settings.is_pairs else "documents",
        "symbols": len(vocabulary),
        "reserved": len(markers_of(vocabulary)),
        "splits": {name: writer.statistics for name, writer in writers.items()},
        **({"tokenizer": tokenizer.statistics} if isinstance(tokenizer, AnnaTokenizer) else {}),
        "annotations": annotator.description if annotator else None,
        "settings": asdict(settings),
        "inputs": {path: {} if is_hub(path) else describe(path) for path in paths},
        "versions": {
            "unified": unified.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in ("numpy", "sentencepiece", "tokenizers")},
        },
    }
