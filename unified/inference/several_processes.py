"""A long list of sentences over several processes, chunk by chunk, so that a rerun goes on where a crash stopped it.

Beside the output stands a folder ``OUTPUT.chunks``: its claim says what decides the output, ``000007.txt`` is a
finished chunk. At the end the chunks are joined in order and the folder goes, as after a refusal, which would come
again.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from unified.arguments import counted
from unified.files.claims import Claim, claimed_folder
from unified.files.hashes import hashes
from unified.files.whole import require_new, whole_file
from unified.generation import GenerationConfig
from unified.inference.generate_output import lines
from unified.inference.language_model import UnifiedLM
from unified.inference.sentences import FileSentences, FolderSentences
from unified.inference.source_limits import require_room
from unified.runtime.parallel import kept_workers
from unified.runtime.progress import Progress, StepProgress
from unified.tokenization import FILES


@dataclass
class ChunkCounts:
    """Counts of a chunk, or of several.

    Attributes:
        sentences: how many there are.
        cut: how many of them were cut.
        limit: tokens that were read of these, which is one number for all of them.
        divided: how many were divided into windows.
    """

    sentences: int = 0
    cut: int = 0
    limit: int = 0
    divided: int = 0

    def add(self, other: ChunkCounts) -> None:
        """Count those of another chunk, too."""
        self.sentences += other.sentences
        self.cut += other.cut
        self.limit = max(self.limit, other.limit)
        self.divided += other.divided


@dataclass
class ChunkWriter:
    """Generates one chunk of sentences and writes it; a process loads the model when its first chunk arrives.

    Attributes:
        checkpoint, data: as :meth:`UnifiedLM.from_pretrained` takes them.
        sentences: what to write from.
        config: settings of the search.
        default_lengths: each text gets the most tokens to write that :meth:`.PairLengths.default_length` says in place
            of the ``max_length`` of ``config``.
        prompt: continue the sentences instead of answering them.
        max_source: first tokens of each source that are read, 0 for all; None as :meth:`UnifiedLM.generate` has it.
        windows: divide longer sources into windows instead, see :meth:`UnifiedLM.shortened`.
        chunk: sentences per chunk.
        batch_size: sentences that are generated together.
        threads: of each process.
        device: "cpu", "cuda", ...
        int8: let linear maps compute in int8, see :meth:`TrainedModel.quantize`.
        folder: holds the finished chunks.
    """

    checkpoint: Path
    data: Path
    sentences: FolderSentences | FileSentences
    config: GenerationConfig
    default_lengths: bool
    prompt: bool
    max_source: int | None
    windows: bool
    chunk: int
    batch_size: int
    threads: int
    device: str
    int8: bool
    folder: Path

    def write(self, number: int) -> ChunkCounts:
        """Write chunk ``number``."""
        lm = _loaded(self)
        counts, texts = ChunkCounts(len(self.indices(number))), dict[int, str]()
        for own, sources, config in self._searches(lm, number):
            read = self._read(lm, own, sources, config, counts)
            found = lm.hypotheses(
                read, config, prompt=self.prompt, batch_size=self.batch_size, indices=own, max_source=0
            )  # fmt: skip
            for i, source, hypotheses in zip(own, read, found, strict=True):
                texts[i] = lines(lm, i, *self.sentences.texts(lm, i), source if self.prompt else [], hypotheses)
        with whole_file(self.path(number)) as stream:
            stream.write("".join(texts[i] for i in self.indices(number)).encode("utf-8"))
        return counts

    def require_room(self, number: int) -> None:
        """Refuse a chunk with a sentence that the position table has no room for.

        Raises:
            UnifiedError: names the first such sentence.
        """
        lm = _loaded(self)
        for own, sources, config in self._searches(lm, number):
            limit = self._limit(lm, config)
            require_room([source[:limit] for source in sources], own, config.max_length, lm.model.config)

    @property
    def always_has_room(self) -> bool:
        """Whether every sentence is cut to what the positions leave, so that none can be too long."""
        return not self.prompt and self.max_source is None

    def _searches(self, lm: UnifiedLM, number: int) -> Iterator[tuple[list[int], list[list[int]], GenerationConfig]]:
        """Sentences of a chunk that are searched with the same settings: numbers, ids, and settings."""
        indices = self.indices(number)
        sources = [self.sentences.source(lm, i) for i in indices]
        for own, config in lm.length_rules.searches(
            map(len, sources), self.config, self.default_lengths, prompt=self.prompt, max_source=self.max_source
        ):
            yield [indices[at] for at in own], [sources[at] for at in own], config

    def _limit(self, lm: UnifiedLM, config: GenerationConfig) -> int:
        """Tokens of a source, or of a window, that are read."""
        limit = lm.length_rules.source_limit(config.max_length, self.max_source, self.prompt)
        return limit or (lm.length_rules.tokens_left(config.max_length) if self.windows else sys.maxsize)

    def _read(
        self,
        lm: UnifiedLM,
        indices: Sequence[int],
        sources: Sequence[list[int]],
        config: GenerationConfig,
        counts: ChunkCounts,
    ) -> list[list[int]]:
        """Sources that are cut, or made short by windows, to what is read; adds to the counts."""
        limit = self._limit(lm, config)
        long = [at for at, source in enumerate(sources) if len(source) > limit]
        if not self.windows:
            counts.add(ChunkCounts(cut=len(long), limit=limit if long else 0))
            return [source[:limit] for source in sources]
        found = lm.shortened(
            [self.sentences.parts(lm, indices[at]) for at in long],
            config,
            prompt=self.prompt,
            batch_size=self.batch_size,
            indices=[indices[at] for at in long],
            max_source=limit,
        )
        cut, divided = sum(map(bool, found.cut)), sum(map(bool, found.windows))
        counts.add(ChunkCounts(cut=cut, limit=limit if cut else 0, divided=divided))
        short = {**dict(enumerate(sources)), **dict(zip(long, found.ids, strict=True))}
        return list(short.values())

    def indices(self, number: int) -> range:
        """Numbers of the sentences of a chunk."""
        return range(number * self.chunk, min((number + 1) * self.chunk, len(self.sentences)))

    def path(self, number: int) -> Path:
        """File of a chunk."""
        return self.folder / f"{number:06d}.txt"

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-len(self.sentences) // self.chunk)

    @property
    def claim(self) -> Claim:
        """The settings that decide a chunk's contents."""
        config = {**asdict(self.config), "no_repeat_ngram_ignore": sorted(self.config.no_repeat_ngram_ignore)}
        config |= {"prompt": self.prompt, "max_source": self.max_source, "windows": self.windows, "chunk": self.chunk}
        config |= {"int8": self.int8} | ({"max_length": None} if self.default_lengths else {})
        vocabulary = sorted(file for name in ("dict*.txt", *FILES) for file in self.data.glob(name))
        return Claim(
            {f"--{name.replace('_', '-')}": value for name, value in config.items()},
            {"--model": hashes([self.checkpoint, *vocabulary]), "the sources": hashes(self.sentences.files)},
        )


#: The model that this process has loaded last, by all that decides it.
kept_models: dict[tuple[Path, Path, str, bool, int], UnifiedLM] = {}


def _loaded(job: ChunkWriter) -> UnifiedLM:
    """The model, loaded once in each process."""
    key = (job.checkpoint, job.data, job.device, job.int8, os.getpid())
    if key not in kept_models:
        torch.set_num_threads(job.threads)
        kept_models.clear()
        lm = UnifiedLM.from_pretrained(job.checkpoint, job.data, job.device)
        kept_models[key] = lm.quantize() if job.int8 else lm
    return kept_models[key]


def spread(job: ChunkWriter, output: Path, processes: int, overwrite: bool = False) -> None:
    """Generates the missing chunks of ``output`` and joins all chunks; shows progress on standard error.

    Args:
        overwrite: replace ``output`` at the end if it exists.

    Raises:
        UnifiedError: ``output`` exists and is not to be replaced, its chunks come from other settings, or sentences
            cannot be written from.
        Interrupted: a process was killed; the same call goes on.
    """
    require_new(output, overwrite)
    with claimed_folder(job.folder, job.claim, "remove it, or give another --output"):
        _write_chunks(job, processes)
        with whole_file(output) as stream:
            stream.writelines(job.path(number).read_bytes() for number in range(job.chunks))
        _remove_chunks(job)


def _write_chunks(job: ChunkWriter, processes: int) -> None:
    missing = [number for number in range(job.chunks) if not job.path(number).exists()]
    if len(missing) < job.chunks:
        Progress.say(f"generate: {job.folder}: {job.chunks - len(missing)} of {job.chunks} chunks are there already")
    left = sum(len(job.indices(number)) for number in missing)
    processes = min(processes, max(len(missing), 1))
    total = ChunkCounts()
    with kept_workers(job, processes) as workers:
        if not job.always_has_room:
            # All of them before the first is written: a refusal at the end would throw away what is finished.
            deque(workers.ordered_map(ChunkWriter.require_room, missing), maxlen=0)
        with StepProgress("generate", len(job.sentences), "sentences", len(job.sentences) - left) as progress:
            for counts in workers.ordered_map(ChunkWriter.write, missing):
                total.add(counts)
                progress.advance(steps=counts.sentences)
    if total.divided:
        Progress.say(f"generate: {total.divided:,} of these {total.sentences:,} sources were divided into windows")
    if total.cut:
        limit = counted(total.limit, "token")
        Progress.say(f"generate: {total.cut:,} of these {total.sentences:,} sources were cut to their first {limit}")


def _remove_chunks(job: ChunkWriter) -> None:
    """Removes all chunks, and files that killed processes have left, but not the claim."""
    for pattern in ("[0-9]*.txt", ".*.partial"):
        for path in job.folder.glob(pattern):
            path.unlink()
