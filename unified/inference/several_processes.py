"""A long list of sentences over several processes, chunk by chunk, so that a rerun goes on where a crash stopped it.

Beside the output stands a folder ``OUTPUT.chunks``: its claim says what decides the output, ``000007.txt`` is a
finished chunk. At the end the chunks are joined in order and the folder goes, as after a refusal, which would come
again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from unified.arguments import counted
from unified.errors import Interrupted, UnifiedError
from unified.files.claims import Claim, claimed_folder, hashes
from unified.files.whole import whole_file
from unified.generation import SCHEMES, GenerationConfig
from unified.inference.generate_output import lines
from unified.inference.language_model import UnifiedLM
from unified.inference.sentences import FileSentences, FolderSentences
from unified.runtime.parallel import ordered_map
from unified.runtime.progress import Progress, StepProgress
from unified.tokenization import FILES


@dataclass
class ChunkWriter:
    """Generates one chunk of sentences and writes it; a process loads the model when its first chunk arrives.

    Attributes:
        checkpoint, data: as :meth:`UnifiedLM.from_pretrained` takes them.
        sentences: what to write from.
        config: settings of the search.
        prompt: continue the sentences instead of answering them; None as the model was trained.
        max_source: tokens kept from the front of each source, 0 keeps all.
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
    prompt: bool | None
    max_source: int
    windows: bool
    chunk: int
    batch_size: int
    threads: int
    device: str
    int8: bool
    folder: Path

    def __call__(self, number: int) -> tuple[int, int, int]:
        """Write chunk ``number``.

        Returns:
            How many sentences it holds, how many of them were cut, and how many were divided into windows.
        """
        lm = _loaded(self)
        indices = self.indices(number)
        sources = [self.sentences.source(lm, i) for i in indices]
        sources, cut, divided = self._fitting(lm, sources, indices)
        found = lm.hypotheses(
            sources,
            self.config,
            prompt=self.prompt,
            batch_size=self.batch_size,
            indices=list(indices),
            max_source=0,
        )
        is_prompt = SCHEMES[lm.scheme(self.prompt)].prompt
        text = "".join(
            lines(lm, i, *self.sentences.texts(lm, i), source if is_prompt else [], hypotheses)
            for i, source, hypotheses in zip(indices, sources, found, strict=True)
        )
        with whole_file(self.path(number)) as stream:
            stream.write(text.encode("utf-8"))
        return len(indices), cut, divided

    def _fitting(
        self, lm: UnifiedLM, sources: list[list[int]], indices: Sequence[int]
    ) -> tuple[list[list[int]], int, int]:
        """Sources that are short enough, how many were cut, and how many were divided into windows."""
        limit = self.max_source or (lm.tokens_left(self.config.max_length) if self.windows else sys.maxsize)
        long = [at for at, source in enumerate(sources) if len(source) > limit]
        if not self.windows:
            return [source[:limit] for source in sources], len(long), 0
        found = lm.shortened(
            [self.sentences.parts(lm, indices[at]) for at in long],
            self.config,
            prompt=self.prompt,
            batch_size=self.batch_size,
            indices=[indices[at] for at in long],
            max_source=limit,
        )
        short = {**dict(enumerate(sources)), **dict(zip(long, found.ids, strict=True))}
        return list(short.values()), sum(map(bool, found.cut)), sum(map(bool, found.windows))

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
        config |= {"int8": self.int8}
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
    if output.exists() and not overwrite:
        raise UnifiedError(f"{output}: exists already; --overwrite replaces it, or give another --output")
    with claimed_folder(job.folder, job.claim, "remove it, or give another --output"):
        try:
            _write_chunks(job, processes)
        except Interrupted:
            raise
        except UnifiedError:
            _remove_chunks(job)
            raise
        with whole_file(output) as stream:
            stream.writelines(job.path(number).read_bytes() for number in range(job.chunks))
        _remove_chunks(job)


def _write_chunks(job: ChunkWriter, processes: int) -> None:
    missing = [number for number in range(job.chunks) if not job.path(number).exists()]
    if len(missing) < job.chunks:
        Progress.say(f"generate: {job.folder}: {job.chunks - len(missing)} of {job.chunks} chunks are there already")
    left = sum(len(job.indices(number)) for number in missing)
    done = cut = divided = 0
    with StepProgress("generate", len(job.sentences), "sentences", len(job.sentences) - left) as progress:
        for count, *long in ordered_map(job, missing, min(processes, max(len(missing), 1))):
            done, cut, divided = done + count, cut + long[0], divided + long[1]
            progress.advance(steps=count)
    if divided:
        Progress.say(f"generate: {divided:,} of these {done:,} sources were divided into windows")
    if cut:
        all_that_fit = "tokens, as many as the model's positions leave"
        limit = counted(job.max_source, "token") if job.max_source else all_that_fit
        Progress.say(f"generate: {cut:,} of these {done:,} sources were cut to their first {limit}")


def _remove_chunks(job: ChunkWriter) -> None:
    """Removes all chunks, and files that killed processes have left, but not the claim."""
    for pattern in ("[0-9]*.txt", ".*.partial"):
        for path in job.folder.glob(pattern):
            path.unlink()
