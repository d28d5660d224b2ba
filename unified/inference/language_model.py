"""``UnifiedLM``: a trained model for Python users, straight from fairseq's checkpoint file, without fairseq."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import numpy as np
import torch

from unified.arguments import by_length, require_integer, require_list, require_text, require_texts
from unified.checkpoints import load_checkpoint
from unified.checkpoints.trained import (
    find_checkpoint,
    find_data,
    heads_of,
    pair_lengths,
    restore,
    restore_tasks,
    sequence_length,
)
from unified.corpus.annotate import Annotator
from unified.data.collate import collate
from unified.data.example import Batch, Example
from unified.data.targets import BOUNDARY, TOKEN, ExampleTargets
from unified.data.vocabulary import MASK, Vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, Hypothesis, generate, score
from unified.generation.decoder import NO_ENTITIES_IN_WRITING, NO_SCHEME
from unified.generation.ensemble import EnsembleDecoder
from unified.generation.lengths import PairLengths, positions_left
from unified.inference.embedding import Embedding
from unified.masks import TEXT_MASKS, permutation
from unified.model import UnifiedModel
from unified.objectives.spans import runs
from unified.objectives.xlnet import CLS_TYPE
from unified.runtime.devices import usable_device
from unified.tasks.answering import Answering
from unified.tasks.composing import Composing
from unified.tasks.ensembles import joined, require_alike
from unified.tasks.found_thresholds import found_thresholds
from unified.tasks.heads import Codec
from unified.tasks.heads.named_entities import NOTHING_TO_MARK
from unified.tasks.prediction import Predictor
from unified.tokenization import Tokenizer, load_tokenizer, parts_of, tokenizer_files


class SymbolTokenizer:
    """Text as its symbols separated by blanks: what folders of plain ``fairseq-preprocess`` hold."""

    def encode(self, text: str) -> list[str]:
        return text.split()

    def decode(self, pieces: list[str]) -> str:
        return " ".join(pieces)


class UnifiedLM(Answering, Composing, Embedding):
    """A language model, or a model of a task of understanding, with its vocabulary and tokenizer.

    Attributes:
        model: in eval mode.
        vocabulary, tokenizer: from the data folder it was trained on.
        writes: name of its decoding scheme, see :data:`unified.generation.SCHEMES`, or "nothing".
        folder: where vocabulary and tokenizer came from.
        predictors: of the tasks that it was fine-tuned for, by the names of their heads; none for a language model.
        lengths: of the pairs that it was fine-tuned on, the defaults of generation.
        others: further models that answer or write together with it, see :meth:`ensemble`.
    """

    def __init__(
        self,
        model: UnifiedModel,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer | SymbolTokenizer,
        writes: str,
        folder: Path,
        predictors: Mapping[str, Predictor] = MappingProxyType({}),
        lengths: PairLengths = PairLengths(),  # noqa: B008 (it is frozen)
        others: Sequence[UnifiedLM] = (),
    ):
        self.model, self.vocabulary, self.tokenizer = model.eval(), vocabulary, tokenizer
        self.writes, self.folder, self.predictors = writes, folder, predictors
        self.lengths, self.others = lengths, tuple(others)
        self.special = vocabulary.special

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike,
        data: str | os.PathLike | None = None,
        device: str | torch.device = "cpu",
        annotator: Annotator | None = None,
    ) -> UnifiedLM:
        """Load a checkpoint of ``fairseq-train --task unified_lm`` or ``unified_understanding``.

        Args:
            path: the file, or a folder with ``checkpoint_best.pt`` or else ``checkpoint_last.pt``; of a folder of
                ``unified finetune`` it is the one that was scored. The threshold of "no answer" that was chosen with
                it on the development set counts.
            data: folder with dictionary and tokenizer; default: the checkpoint's own folder if it has a dictionary,
                else the data folder it was trained on, or ``data`` beside the checkpoint.
            device: "cpu", "cuda", "cuda:1", ...
            annotator: finds the named entities of texts, for a model of a task whose attention reads them; items that
                name theirs need none.

        Raises:
            UnifiedError: a file is missing or damaged, or checkpoint and dictionary do not belong together; or there is
                an annotator, but the model reads no entities; or the machine has no such device.
        """
        device = usable_device(device)
        path = find_checkpoint(path)
        content = load_checkpoint(path)
        folder = find_data(path, content, data)
        tokenizer = load_tokenizer(folder) if tokenizer_files(folder) else SymbolTokenizer()
        if not heads_of(content):
            if annotator is not None:
                raise UnifiedError(NOTHING_TO_MARK)
            model, vocabulary, writes = restore(path, content, folder)
            return cls(model.to(device), vocabulary, tokenizer, writes, folder, lengths=pair_lengths(content))
        model, tasks, vocabulary = restore_tasks(path, content, folder)
        codec = Codec.for_model(model.config, tokenizer, vocabulary, sequence_length(content))
        model.to(device)
        for name, threshold in found_thresholds(path, tasks).items():
            tasks[name] = tasks[name].with_threshold(threshold.value, threshold.found_on)
        predictors = {name: Predictor(model, name, task, codec, annotator=annotator) for name, task in tasks.items()}
        return cls(model, vocabulary, tokenizer, "nothing", folder, predictors)

    @classmethod
    def ensemble(
        cls,
        paths: Sequence[str | os.PathLike],
        device: str | torch.device = "cpu",
        annotator: Annotator | None = None,
    ) -> UnifiedLM:
        """Load several models that were fine-tuned for the same task; they answer, or write, together.

        Classes, tags and choices have the mean of the models' probabilities, numbers are means, the scores of starts
        and ends of answers are means, and so are the thresholds of "no answer". Each token that is written is chosen by
        the mean of its probabilities.

        Args:
            paths: at least one, see :meth:`from_pretrained`.
            annotator: see there.

        Raises:
            UnifiedError: a model cannot be loaded, or two do not belong together: they differ in vocabulary, tokenizer,
                head, labels or lengths; or models of such a task cannot answer together.
        """
        paths = list(map(str, require_list("paths", paths)))
        if not paths:
            raise UnifiedError("an ensemble needs at least one model")
        handles = [cls.from_pretrained(path, device=device, annotator=annotator) for path in paths]
        first, *others = handles
        if not others:
            return first
        require_alike(paths, handles)
        rows = zip(*(handle.predictors.values() for handle in handles), strict=True)
        predictors = {name: joined(row) for name, row in zip(first.predictors, rows, strict=True)}
        own = first.vocabulary, first.tokenizer, first.writes, first.folder
        return cls(first.model, *own, predictors, first.lengths, others)

    @property
    def device(self) -> torch.device:
        return self.model.transformer.embeddings.tokens.weight.device

    def eval(self) -> UnifiedLM:
        """Switch dropout off (it is off after loading)."""
        for one in (self, *self.others):
            one.model.eval()
        return self

    def to(self, device: str | torch.device) -> UnifiedLM:
        """Move the model.

        Raises:
            UnifiedError: the machine has no such device.
        """
        device = usable_device(device)
        for one in (self, *self.others):
            one.model.to(device)
        return self

    # Text and ids

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without special symbols.

        Raises:
            UnifiedError: this is no text.
        """
        return self.vocabulary.encode(self.tokenizer.encode(require_text("text", text))).tolist()

    def encode_source(self, source: str | Sequence[str]) -> list[int]:
        """Ids of a source; of a list of parts with the separator between them, as `unified prepare` has it.

        Raises:
            UnifiedError: this is neither a text nor a list of texts.
        """
        if not isinstance(source, str):
            source = require_texts("source", source)
        ids: list[int] = []
        for number, part in enumerate(parts_of(source)):
            ids += [self.special.separator, *self.encode(part)] if number else self.encode(part)
        return ids

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Symbols of ids; begin, separator and padding are left out."""
        silent = (self.special.begin, self.special.separator, self.special.pad)
        return [self.vocabulary.symbols[i] for i in map(int, ids) if i not in silent]

    def decode(self, ids: Iterable[int]) -> str:
        """The text that ids stand for.

        Raises:
            UnifiedError: an id is beyond the vocabulary.
        """
        ids = list(map(int, ids))
        beyond = [i for i in ids if not 0 <= i < len(self.vocabulary)]
        if beyond:
            raise UnifiedError(f"ids must be from 0 to {len(self.vocabulary) - 1}, got {beyond[0]}")
        return self.tokenizer.decode(self.pieces(ids))

    # Predicting hidden tokens

    @torch.no_grad()
    def fill_mask(self, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
        """For each ``<mask>`` in ``text`` the ``top`` most probable symbols with their probabilities, best first.

        The text is read in both directions, or under the mask of a model that was trained in one direction alone. A
        permutation language model knows no ``<mask>``: it is asked by a query at each of them, and nothing sees what
        stands there.

        Raises:
            UnifiedError: this is not one text, there is no ``<mask>`` in it, it is longer than the position table, or
                ``top`` is below 1.
        """
        require_text("text", text)
        self._require_one_model("fill_mask")
        self._require_token_head()
        batch = self._masked(text, self.writes in SCHEMES and SCHEMES[self.writes].query_stream)
        return self._best(self.model.logits(self.model.hidden(batch, places=batch.targets[TOKEN].places)), top)

    @torch.no_grad()
    def fill_span(self, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
        """As :meth:`fill_mask`, but each run of ``<mask>`` is predicted from the tokens before and behind it alone.

        This is SpanBERT's boundary objective; nothing within the run is looked at by its head.

        Raises:
            UnifiedError: as :meth:`fill_mask`; or the model has no span-boundary head, a run is longer than its reach,
                or stands at an end of the text.
        """
        require_text("text", text)
        self._require_one_model("fill_span")
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
        places, distances = (torch.from_numpy(array).to(self.device) for array in (places, distances))
        before, behind = (states.index_select(0, side) for side in places.unbind(1))
        return self._best(self.model.head(BOUNDARY)(before, behind, distances, self.model.symbols), top)

    def _require_one_model(self, method: str) -> None:
        if self.others:
            raise UnifiedError(f"{method} asks a single model; this is an ensemble of {1 + len(self.others)}")

    def _require_language_model(self) -> None:
        if self.predictors:
            raise UnifiedError(
                f"the model was fine-tuned for {', '.join(self.predictors)} and predicts no tokens; take the language "
                "model it came from"
            )

    def _require_token_head(self) -> None:
        self._require_language_model()
        self.model.head(TOKEN)

    def _masked(self, text: str, query_stream: bool) -> Batch:
        """CLS text SEP, under the model's mask; or text SEP CLS, as XLNet has it, which does not see its masks."""
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
        if query_stream:
            token_types, mask = np.zeros_like(tokens), permutation((tokens == self.special.mask).astype(np.int64))
            token_types[-1] = CLS_TYPE
        else:
            codec = Codec.for_model(self.model.config, self.tokenizer, self.vocabulary, len(tokens))
            token_types = np.full_like(tokens, codec.token_types[0])
            mask = TEXT_MASKS[codec.mask](len(tokens))
        example = Example(
            group="masked",
            tokens=tokens,
            positions=np.arange(len(tokens)),
            token_types=token_types,
            mask=mask,
            targets={TOKEN: ExampleTargets.at(hidden, tokens[hidden])},
            query_stream=query_stream,
        )
        return collate([[example]], None, (example.group,), self.special.pad).to(self.device)

    def _best(self, logits: torch.Tensor, top: int) -> list[list[tuple[str, float]]]:
        """The ``top`` symbols of each row of (N, V), best first, with their probabilities."""
        require_integer("top", top, 1)
        scored = int((~self.model.symbols.left_out).sum())
        best = logits.float().softmax(-1).topk(min(top, scored))
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
        max_source: int | None = None,
        **options,
    ) -> list[str] | list[list[str]]:
        """Write a target for each source, or continue each prompt (the prompt is then part of what is returned).

        Warns where sources are cut and ``max_source`` does not say so.

        Args:
            texts: sources, of which each may be a list of parts, or prompts.
            prompt: continue the texts from left to right; default: what the model was trained for last (False after
                fine-tuning on pairs, True after pre-training alone).
            max_source: first tokens of each text that are read; 0: all. Default: of sources as many as in fine-tuning,
                or as the positions leave beside ``max_length``; of prompts all.
            options: fields of :class:`GenerationConfig`; ``no_repeat_ignore`` may hold symbols instead of ids.
                ``max_length`` is by default the length of the longest target of fine-tuning. For prompts, and for
                models that have learned no pairs, it is 128, or less where the longest text leaves fewer positions;
                sources leave at least a quarter of them.

        Returns:
            One text per input; with ``n_best`` above 1 a list of them per input, best first.

        Raises:
            UnifiedError: an option is unknown or out of range, the model does not write, or a text does not fit into
                the position table.
        """
        ids = [self.encode_source(text) for text in require_list("texts", texts)]
        is_prompt = SCHEMES[self.scheme(prompt)].prompt
        if is_prompt:
            limit = self.source_limit(1, max_source, prompt=True)
            ids, max_source = [row[:limit] for row in ids], 0
        if "max_length" not in options:
            options["max_length"] = self._default_length(ids, is_prompt, max_source, options.get("min_length"))
        config = GenerationConfig.of_options(self.vocabulary, **options)
        given = ids if is_prompt else [[]] * len(ids)
        found = self.hypotheses(ids, config, prompt=prompt, batch_size=batch_size, max_source=max_source)
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
        max_source: int | None = None,
    ) -> list[list[Hypothesis]]:
        """Generate as :meth:`generate` does, from ids without special symbols; sentences of like length share a batch.

        Args:
            indices: numbers of the sentences, in messages and for the draws of sampling; default 0, 1, ...
            max_source: as for :meth:`generate`.

        Returns:
            ``n_best`` hypotheses of each source, best first, with their scores.

        Raises:
            UnifiedError: a source with ``max_length`` generated tokens exceeds the position table.
        """
        indices = range(len(sources)) if indices is None else indices
        decoder = self.decoder(prompt)
        limit = self.source_limit(config.max_length, max_source, decoder.scheme.prompt)
        if max_source is None:
            self._warn_of_cuts(sources, [limit] * len(sources))
        sources = [source[:limit] for source in sources]
        self._check_lengths(sources, indices, config)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for batch in by_length(sources, batch_size):
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
        max_source: int | None = None,
    ) -> list[list[float]]:
        """Log-probabilities in nats of the tokens of each target given its source, the end symbol's last.

        Behind a prompt no end symbol is scored: pre-training on running text never predicts one. Targets are scored
        whole.

        Args:
            max_source: as for :meth:`generate`; the default leaves the positions that the target needs.

        Raises:
            UnifiedError: unequal numbers of sources and targets, or a pair exceeds the position table.
        """
        if len(require_list("sources", sources)) != len(require_list("targets", targets)):
            raise UnifiedError(f"{len(sources)} sources but {len(targets)} targets; they must pair one to one")
        decoder = self.decoder(prompt)
        end = [] if decoder.scheme.prompt else [self.special.separator]
        given, written = [self.encode_source(source) for source in sources], [self.encode(target) for target in targets]
        usual = self.lengths.default_length(self.model.config.position_limit)
        limits = [self.source_limit(max(usual, len(t)), max_source, decoder.scheme.prompt) for t in written]
        if max_source is None:
            self._warn_of_cuts(given, limits)
        pairs = [(s[:limit], t + end) for s, t, limit in zip(given, written, limits, strict=True)]
        found: list[list[float]] = [[] for _ in pairs]
        for batch in by_length([s + t for s, t in pairs], batch_size):
            rows = self._rows([pairs[i][0] for i in batch])
            labels = self._padded([pairs[i][1] for i in batch])
            for i, values in zip(batch, score(decoder, rows, labels).tolist(), strict=True):
                found[i] = values[: len(pairs[i][1])]
        return found

    def scheme(self, prompt: bool | None = None) -> str:
        """Name of the decoding scheme for sources, or for prompts."""
        self._require_token_head()
        if self.model.config.reads_entities:
            raise UnifiedError(NO_ENTITIES_IN_WRITING)
        if self.writes == "nothing":
            raise UnifiedError(NO_SCHEME)
        if prompt is None or prompt == SCHEMES[self.writes].prompt:
            return self.writes
        if SCHEMES[self.writes].query_stream:
            raise UnifiedError("the model continues prompts; it has not learnt to write targets of sources")
        return "left_to_right" if prompt else "cloze"

    def decoder(self, prompt: bool | None = None) -> CachedDecoder | EnsembleDecoder:
        scheme = SCHEMES[self.scheme(prompt)]
        decoders = [CachedDecoder(one.model, self.special, scheme) for one in (self, *self.others)]
        return EnsembleDecoder(decoders) if self.others else decoders[0]

    def _rows(self, sources: Sequence[Sequence[int]]) -> torch.Tensor:
        """int64 (N, S), each closed by the separator and padded on the right."""
        return self._padded([[*source, self.special.separator] for source in sources])

    def _padded(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        width = max(map(len, rows))
        padded = [[*row, *[self.special.pad] * (width - len(row))] for row in rows]
        return torch.tensor(padded, dtype=torch.long, device=self.device)

    def room(self, length: int) -> int:
        """Positions left beside ``length`` tokens, begin, separator, and the place that asks for the end symbol."""
        return positions_left(self.model.config.position_limit, length)

    def source_limit(self, length: int, max_source: int | None = None, prompt: bool = False) -> int | None:
        """Tokens of a source, or of a prompt, that are read beside a target of ``length``; None for all."""
        max_source = 0 if prompt and max_source is None else max_source
        return self.lengths.source_limit(self.model.config.position_limit, length, max_source)

    def _default_length(self, ids: Sequence[Sequence[int]], prompt: bool, max_source: int | None, least: object) -> int:
        """Most tokens to write where the user does not say; at least ``least``, if the user names a fewest number."""
        longest = max(map(len, ids), default=0)
        if prompt:
            usual = min(GenerationConfig.max_length, self.room(longest))
        else:
            usual = self.lengths.default_length(self.model.config.position_limit, max_source, longest)
        return max(1, usual, least if isinstance(least, int) else 1)

    def _warn_of_cuts(self, sources: Sequence[Sequence[int]], limits: Sequence[int | None]) -> None:
        """Say how many sources are cut, and at what length."""
        kept = [limit for ids, limit in zip(sources, limits, strict=True) if limit is not None and len(ids) > limit]
        if kept:
            least = f"{min(kept)} to " if min(kept) < max(kept) else ""
            warnings.warn(
                f"{len(kept)} of {len(sources)} texts have more than {least}{max(kept)} tokens; the rest is not read",
                stacklevel=4,  # the caller of generate()
            )

    def _check_lengths(
        self, sources: Sequence[Sequence[int]], indices: Sequence[int], config: GenerationConfig
    ) -> None:
        room = max(self.room(config.max_length), 0)
        for index, source in zip(indices, sources, strict=True):
            if len(source) > room:
                raise UnifiedError(
                    f"sentence {index}: {len(source)} tokens, but the model's {self.model.config.max_positions} "
                    f"positions leave room for {room} beside the {config.max_length} that may be written; shorten the "
                    "text or what is written"
                )
