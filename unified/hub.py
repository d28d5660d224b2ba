"""``UnifiedLM``: a trained model for Python users, straight from fairseq's checkpoint file, without fairseq."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch

from unified.checkpoints import load_checkpoint
from unified.checkpoints.trained import (
    cut_at,
    find_checkpoint,
    find_data,
    heads_of,
    restore,
    restore_tasks,
    sequence_length,
)
from unified.data.collate import collate
from unified.data.example import Batch, Example
from unified.data.vocabulary import MASK, Vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, Hypothesis, generate, score
from unified.masks import GIVEN
from unified.model import LanguageModel
from unified.model.understanding import UnderstandingModel
from unified.objectives.spans import runs
from unified.objectives.xlnet import CLS_TYPE
from unified.tasks import Codec
from unified.tasks.answering import Answering
from unified.tasks.composing import Composing
from unified.tasks.prediction import Predictor
from unified.tokenization import Tokenizer, load_tokenizer, parts_of, tokenizer_files


class SymbolTokenizer:
    """Text as its symbols separated by blanks: what folders of plain ``fairseq-preprocess`` hold."""

    def encode(self, text: str) -> list[str]:
        return text.split()

    def decode(self, pieces: list[str]) -> str:
        return " ".join(pieces)


class UnifiedLM(Answering, Composing):
    """A language model, or a model of a task of understanding, with its vocabulary and tokenizer.

    Attributes:
        model: the :class:`LanguageModel` or :class:`UnderstandingModel`, in eval mode.
        vocabulary, tokenizer: from the data folder it was trained on.
        writes: name of its decoding scheme, see :data:`unified.generation.SCHEMES`, or "nothing".
        folder: where vocabulary and tokenizer came from.
        predictors: of the tasks that it was fine-tuned for, by the names of their heads; none for a language model.
        max_source, max_target: tokens that the texts it was fine-tuned on were cut at; 0 where they were not.
    """

    def __init__(
        self,
        model: LanguageModel | UnderstandingModel,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer | SymbolTokenizer,
        writes: str,
        folder: Path,
        predictors: Mapping[str, Predictor] = MappingProxyType({}),
        max_source: int = 0,
        max_target: int = 0,
    ):
        self.model, self.vocabulary, self.tokenizer = model.eval(), vocabulary, tokenizer
        self.writes, self.folder, self.predictors = writes, folder, predictors
        self.max_source, self.max_target = max_source, max_target
        self.special = vocabulary.special

    @classmethod
    def from_pretrained(
        cls, path: str | os.PathLike, data: str | os.PathLike | None = None, device: str | torch.device = "cpu"
    ) -> UnifiedLM:
        """Load a checkpoint of ``fairseq-train --task unified_lm`` or ``unified_understanding``.

        Args:
            path: the file, or a folder with ``checkpoint_best.pt`` or else ``checkpoint_last.pt``; of a folder of
                ``unified finetune`` it is the one that was scored.
            data: folder with dictionary and tokenizer; default: the checkpoint's own folder if it has a dictionary,
                else the data folder it was trained on, or ``data`` beside the checkpoint.

        Raises:
            UnifiedError: a file is missing or damaged, or checkpoint and dictionary do not belong together.
        """
        path = find_checkpoint(path)
        content = load_checkpoint(path)
        folder = find_data(path, content, data)
        tokenizer = load_tokenizer(folder) if tokenizer_files(folder) else SymbolTokenizer()
        if not heads_of(content):
            model, vocabulary, writes = restore(path, content, folder)
            max_source, max_target = cut_at(content)
            return cls(
                model.to(device), vocabulary, tokenizer, writes, folder, max_source=max_source, max_target=max_target
            )
        model, tasks, vocabulary = restore_tasks(path, content, folder)
        codec = Codec(tokenizer, vocabulary, sequence_length(content), model.config.relative)
        model.to(device)
        predictors = {name: Predictor(model, name, task, codec) for name, task in tasks.items()}
        return cls(model, vocabulary, tokenizer, "nothing", folder, predictors)

    @property
    def device(self) -> torch.device:
        return self.model.transformer.embeddings.tokens.weight.device

    def eval(self) -> UnifiedLM:
        """Switch dropout off (it is off after loading)."""
        self.model.eval()
        return self

    def to(self, device: str | torch.device) -> UnifiedLM:
        """Move the model."""
        self.model.to(device)
        return self

    # Text and ids

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without special symbols."""
        return self.vocabulary.encode(self.tokenizer.encode(text)).tolist()

    def encode_source(self, source: str | Sequence[str]) -> list[int]:
        """Ids of a source; of a list of parts with the separator between them, as `unified prepare` has it."""
        ids: list[int] = []
        for number, part in enumerate(parts_of(source)):
            ids += [self.special.separator, *self.encode(part)] if number else self.encode(part)
        return ids

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Symbols of ids; begin, separator and padding are left out."""
        silent = (self.special.begin, self.special.separator, self.special.pad)
        return [self.vocabulary.symbols[i] for i in map(int, ids) if i not in silent]

    def decode(self, ids: Iterable[int]) -> str:
        """The text that ids stand for."""
        return self.tokenizer.decode(self.pieces(ids))

    # Predicting hidden tokens

    @torch.no_grad()
    def fill_mask(self, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
        """For each ``<mask>`` in ``text`` the ``top`` most probable symbols with their probabilities, best first.

        The text is read in both directions, as by the bidirectional objective. A permutation language model knows no
        ``<mask>``: it is asked by a query at each of them, and nothing sees what stands there.

        Raises:
            UnifiedError: there is no ``<mask>`` in the text, or it is longer than the position table.
        """
        self._require_language_model()
        batch = self._masked(text, self.writes in SCHEMES and SCHEMES[self.writes].query_stream)
        return self._best(self.model.logits(self.model.hidden(batch, places=batch.predicted)), top)

    @torch.no_grad()
    def fill_span(self, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
        """As :meth:`fill_mask`, but each run of ``<mask>`` is predicted from the tokens before and behind it alone.

        This is SpanBERT's boundary objective; nothing within the run is looked at by its head.

        Raises:
            UnifiedError: as :meth:`fill_mask`; or the model has no span-boundary head, a run is longer than its reach,
                or stands at an end of the text.
        """
        self._require_language_model()
        batch = self._masked(text, query_stream=False)
        tokens, states = batch.tokens[0], self.model.hidden(batch)[0]
        first, lengths = runs((tokens == self.special.mask).cpu().numpy())
        reach = self.model.config.boundary_offsets
        if reach and lengths.max() > reach:
            raise UnifiedError(
                f"a run of {lengths.max()} {MASK} is longer than the span-boundary head reaches: {reach}"
            )
        if first[0] == 1 or first[-1] + lengths[-1] == len(tokens) - 1:
            raise UnifiedError(f"{MASK} at an end of the text has no neighbour there; give a token on both sides")
        inside = np.repeat(np.cumsum(lengths) - lengths, lengths)
        places = np.stack([np.repeat(first - 1, lengths), np.repeat(first + lengths, lengths)], axis=1)
        distances = np.arange(lengths.sum()) - inside
        as_tensor = [torch.from_numpy(array).to(self.device) for array in (places, distances)]
        return self._best(self.model.boundary_logits(states, *as_tensor), top)

    def _require_language_model(self) -> None:
        if self.predictors:
            raise UnifiedError(
                f"the model was fine-tuned for {', '.join(self.predictors)} and predicts no tokens; take the language "
                "model it came from"
            )

    def _masked(self, text: str, query_stream: bool) -> Batch:
        """CLS text SEP, which sees all of itself; or text SEP CLS, as XLNet has it, which does not see its masks."""
        parts = text.split(MASK)
        if len(parts) == 1:
            raise UnifiedError(f"a text with at least one {MASK} is needed, got {text[:60]!r}")
        ids = self.encode(parts[0])
        for part in parts[1:]:
            ids += [self.special.mask, *self.encode(part)]
        begin, end = self.special.begin, self.special.separator
        ids = [*ids, end, begin] if query_stream else [begin, *ids, end]
        if len(ids) > self.model.config.position_limit:
            raise UnifiedError(
                f"the text has {len(ids)} tokens with its special symbols, the model takes "
                f"{self.model.config.max_positions}"
            )
        tokens = np.array(ids, dtype=np.int64)
        hidden = np.flatnonzero(tokens == self.special.mask)
        token_types, ranks = np.zeros_like(tokens), np.full_like(tokens, GIVEN)
        if query_stream:
            token_types[-1] = CLS_TYPE
            ranks[hidden] = 0
        example = Example(
            group="masked",
            tokens=tokens,
            positions=np.arange(len(tokens)),
            token_types=token_types,
            key_rank=ranks,
            query_rank=ranks,
            predicted=hidden,
            labels=tokens[hidden],
            query_stream=query_stream,
        )
        return collate([[example]], None, (example.group,), self.special.pad).to(self.device)

    def _best(self, logits: torch.Tensor, top: int) -> list[list[tuple[str, float]]]:
        """The ``top`` symbols of each row of (N, V), best first, with their probabilities."""
        best = logits.float().softmax(-1).topk(min(top, logits.size(-1)))
        return [
            [(self.vocabulary.symbols[i], p) for i, p in zip(row_ids, row, strict=True)]
            for row_ids, row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]

    # Writing

    def generate(
        self,
        texts: Sequence[str | Sequence[str]],
        *,
        prompt: bool | None = None,
        batch_size: int = 32,
        max_source: int = 0,
        **options,
    ) -> list[str] | list[list[str]]:
        """Write a target for each source, or continue each prompt (the prompt is then part of what is returned).

        Args:
            texts: sources, of which each may be a list of parts, or prompts.
            prompt: continue the texts from left to right; default: what the model was trained for last (False after
                fine-tuning on pairs, True after pre-training alone).
            max_source: first tokens of each text that are read; 0: all.
            options: fields of :class:`GenerationConfig`; ``no_repeat_ignore`` may hold symbols instead of ids.
                ``max_length`` is 128 by default, or less where the longest text leaves fewer positions.

        Returns:
            One text per input; with ``n_best`` above 1 a list of them per input, best first.
        """
        ids = [self.encode_source(text)[: max_source or None] for text in _several("texts", texts)]
        if "max_length" not in options:
            options["max_length"] = max(1, min(GenerationConfig.max_length, self.room(max(map(len, ids), default=0))))
        config = GenerationConfig.of_options(self.vocabulary, **options)
        given = ids if SCHEMES[self.scheme(prompt)].prompt else [[]] * len(ids)
        found = self.hypotheses(ids, config, prompt=prompt, batch_size=batch_size)
        written = [
            [self.decode(start + h.tokens.tolist()) for h in some] for start, some in zip(given, found, strict=True)
        ]
        return written if config.n_best > 1 else [some[0] for some in written]

    def hypotheses(
        self,
        sources: Sequence[Sequence[int]],
        config: GenerationConfig,
        *,
        prompt: bool | None = None,
        batch_size: int = 32,
        indices: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """The same on ids without special symbols, with scores; sentences of like length share a batch.

        Args:
            indices: numbers of the sentences, in messages and for the draws of sampling; default 0, 1, ...

        Raises:
            UnifiedError: a source with ``max_length`` generated tokens exceeds the position table.
        """
        indices = range(len(sources)) if indices is None else indices
        decoder = self.decoder(prompt)
        self._check_lengths(sources, indices, config)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for batch in _by_length(sources, batch_size):
            rows = self._rows([sources[i] for i in batch])
            results = generate(decoder, rows, config, indices=[indices[i] for i in batch])
            for i, hypotheses in zip(batch, results, strict=True):
                found[i] = hypotheses
        return found

    def score(
        self,
        sources: Sequence[str | Sequence[str]],
        targets: Sequence[str],
        *,
        prompt: bool | None = None,
        batch_size: int = 32,
    ) -> list[list[float]]:
        """Log-probabilities in nats of the tokens of each target given its source, the end symbol's last.

        Behind a prompt no end symbol is scored: pre-training on running text never predicts one.

        Raises:
            UnifiedError: unequal numbers of sources and targets, or a pair exceeds the position table.
        """
        if len(_several("sources", sources)) != len(_several("targets", targets)):
            raise UnifiedError(f"{len(sources)} sources but {len(targets)} targets; they must pair one to one")
        decoder = self.decoder(prompt)
        end = [] if decoder.scheme.prompt else [self.special.separator]
        pairs = [(self.encode_source(s), self.encode(t) + end) for s, t in zip(sources, targets, strict=True)]
        found: list[list[float]] = [[] for _ in pairs]
        for batch in _by_length([s + t for s, t in pairs], batch_size):
            rows = self._rows([pairs[i][0] for i in batch])
            labels = self._padded([pairs[i][1] for i in batch])
            for i, values in zip(batch, score(decoder, rows, labels).tolist(), strict=True):
                found[i] = values[: len(pairs[i][1])]
        return found

    def scheme(self, prompt: bool | None = None) -> str:
        """Name of the decoding scheme for sources, or for prompts."""
        self._require_language_model()
        if self.writes == "nothing":
            raise UnifiedError("the model does not generate: its token types serve no decoding scheme")
        if prompt is None or prompt == SCHEMES[self.writes].prompt:
            return self.writes
        if SCHEMES[self.writes].query_stream:
            raise UnifiedError("the model continues prompts; it has not learnt to write targets of sources")
        return "left_to_right" if prompt else "cloze"

    def decoder(self, prompt: bool | None = None) -> CachedDecoder:
        return CachedDecoder(self.model, self.special, SCHEMES[self.scheme(prompt)])

    def _rows(self, sources: Sequence[Sequence[int]]) -> torch.Tensor:
        """int64 (N, S), each closed by the separator and padded on the right."""
        return self._padded([[*source, self.special.separator] for source in sources])

    def _padded(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        width = max(map(len, rows))
        padded = [[*row, *[self.special.pad] * (width - len(row))] for row in rows]
        return torch.tensor(padded, dtype=torch.long, device=self.device)

    def room(self, length: int) -> int:
        """Positions left beside ``length`` tokens, begin, separator, and the place that asks for the end symbol."""
        return self.model.config.position_limit - length - 3

    def source_limit(self, length: int) -> int:
        """Tokens of a source beside a target of ``length``: as in fine-tuning, or what the positions leave room for."""
        room = max(self.room(length), 0)
        return int(min(self.max_source or room, room))

    def _check_lengths(
        self, sources: Sequence[Sequence[int]], indices: Sequence[int], config: GenerationConfig
    ) -> None:
        room = max(self.room(config.max_length), 0)
        for index, source in zip(indices, sources, strict=True):
            if len(source) > room:
                raise UnifiedError(
                    f"sentence {index}: {len(source)} tokens, but with max_length {config.max_length} the model's "
                    f"{self.model.config.max_positions} positions leave room for {room}; shorten one of the two"
                )


def _several(name: str, texts: Sequence) -> Sequence:
    if isinstance(texts, str):
        raise UnifiedError(f"{name}: expected a list of texts, got one text; put it in a list")
    return texts


def _by_length(rows: Sequence[Sequence[int]], size: int) -> list[list[int]]:
    """Indices of rows, longest first, in batches of at most ``size``."""
    if size < 1:
        raise UnifiedError(f"batch_size must be at least 1, got {size}")
    order = sorted(range(len(rows)), key=lambda i: -len(rows[i]))
    return [order[i : i + size] for i in range(0, len(order), size)]
