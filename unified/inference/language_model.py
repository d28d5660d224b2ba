"""``UnifiedLM``: a trained language model for Python users, from fairseq's checkpoint file without fairseq."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from unified.arguments import by_length, counted, require_list, require_path, require_texts
from unified.checkpoints.trained import Checkpoint, Trained, heads_of, require_no_training, restore, write
from unified.conversions.named_models import load_named
from unified.data.targets import TOKEN
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, Hypothesis, generate, score
from unified.generation.contract import Decoder
from unified.generation.ensemble import EnsembleDecoder
from unified.generation.lengths import PairLengths
from unified.generation.schemes import NO_ENTITIES_IN_WRITING, NO_SCHEME
from unified.inference.filling import FillingModel
from unified.inference.length_rules import LengthRules
from unified.inference.source_limits import require_room, warn_of_cuts, warn_of_long_windows
from unified.inference.source_windows import ShortSources, Source, shortened
from unified.inference.trained_model import require_alike, tokenizer_of
from unified.model import UnifiedModel
from unified.runtime.devices import usable_device
from unified.tokenization import Tokenizer, parts_of


def require_no_heads(heads: Collection[str]) -> None:
    """Refuse a model that was fine-tuned for tasks, whose heads have these names, where tokens are to be predicted.

    Raises:
        UnifiedError: there is a name.
    """
    if heads:
        raise UnifiedError(
            f"the model was fine-tuned for {', '.join(heads)} and predicts no tokens; take the language "
            "model it came from"
        )


class UnifiedLM(FillingModel):
    """A language model with its vocabulary and tokenizer: it fills, generates, scores and embeds.

    Attributes:
        writes: name of its decoding scheme, see :data:`unified.generation.SCHEMES`, or "nothing".
        lengths: of the pairs that it was fine-tuned on, the defaults of generation.
        history: figures of each update where :func:`unified.train` has made it, else none.
        objectives: what it was trained on last, in the notation of ``--objectives``; empty where nothing says it.
    """

    others: tuple[UnifiedLM, ...]
    history: Sequence[Mapping[str, float]] = ()
    objectives: str = ""

    def __init__(
        self,
        model: UnifiedModel,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        writes: str,
        folder: Path,
        lengths: PairLengths = PairLengths(),  # noqa: B008 (it is frozen)
        others: Sequence[UnifiedLM] = (),
    ):
        super().__init__(model, vocabulary, tokenizer, folder, others)
        self.writes, self.lengths = writes, lengths

    @classmethod
    def from_pretrained(
        cls,
        path: str | os.PathLike[str],
        data: str | os.PathLike[str] | None = None,
        device: str | torch.device = "cpu",
    ) -> UnifiedLM:
        """Load a checkpoint of ``fairseq-train --task unified_lm``, see :func:`unified.load`.

        Raises:
            UnifiedError: a file is missing or damaged, or checkpoint and dictionary do not belong together; or the
                model was fine-tuned for a task that predicts no tokens; or the machine has no such device.
        """
        device = usable_device(device)
        return cls.of_checkpoint(load_named(path, data), device)

    @classmethod
    def of_checkpoint(cls, checkpoint: Checkpoint, device: str | torch.device = "cpu") -> UnifiedLM:
        """The model of a checkpoint that has been loaded.

        Raises:
            UnifiedError: see :meth:`from_pretrained`.
        """
        try:
            require_no_heads(heads_of(checkpoint.content))
        except UnifiedError as error:
            raise UnifiedError(f"{checkpoint.path}: {error}") from None
        model, trained, untrained = restore(checkpoint)
        tokenizer, folder = tokenizer_of(checkpoint.folder), checkpoint.folder
        found = cls(model.to(device), trained.vocabulary, tokenizer, trained.writes, folder, trained.lengths)
        found.untrained, found.objectives = frozenset(untrained), trained.objectives
        return found

    @classmethod
    def ensemble(cls, paths: Sequence[str | os.PathLike[str]], device: str | torch.device = "cpu") -> UnifiedLM:
        """Load several models that write together: each token is chosen by the mean of its probabilities.

        Args:
            paths: at least one, see :meth:`from_pretrained`.

        Raises:
            UnifiedError: a model cannot be loaded, or two do not belong together: they differ in vocabulary, tokenizer,
                decoding scheme, positions or lengths.
        """
        names = list(map(str, require_list("paths", paths)))
        return cls.together(names, [cls.from_pretrained(name, device=device) for name in names])

    @classmethod
    def together(cls, names: Sequence[str], models: Sequence[UnifiedLM]) -> UnifiedLM:
        """One model of several loaded ones, which users know by ``names``; see :meth:`ensemble`.

        Raises:
            UnifiedError: there is none, or two do not belong together.
        """
        require_alike(names, models)
        first, *others = models
        own = first.vocabulary, first.tokenizer, first.writes, first.folder, first.lengths
        return cls(first.model, *own, others) if others else first

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the model as ``fairseq-train`` would, with its dictionary and tokenizer; :func:`unified.load` reads it.

        A checkpoint of :meth:`save` that is there is replaced: a kill at any moment leaves the old one or the new one.

        Raises:
            UnifiedError: this is an ensemble, or the folder holds a training whose checkpoint would be read instead.
        """
        self._require_one_model("save")
        path = Path(require_path("folder", folder))
        require_no_training(path)
        path.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save(path)
        write(self._as_trained(), path)

    def _trained(self, parameters: dict[str, torch.Tensor]) -> Trained:
        return replace(
            super()._trained(parameters), writes=self.writes, lengths=self.lengths, objectives=self.objectives
        )

    @property
    def length_rules(self) -> LengthRules:
        """The rules of how many tokens of a text it reads, and of how many it writes."""
        return LengthRules(self.lengths, self.model.config.position_limit)

    def shared_properties(self) -> dict[str, object]:
        return {
            **super().shared_properties(),
            "heads": [],
            "decoding schemes": self.writes,
            "lengths of sources and targets": self.lengths,
            "numbers of positions": self.model.config.position_limit,
        }

    def encode_source(self, source: Source) -> list[int]:
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

    def generate(
        self,
        texts: Sequence[Source],
        *,
        prompt: bool | None = None,
        batch_size: int = 32,
        max_source: int | None = None,
        windows: bool = False,
        **options: Any,
    ) -> list[str] | list[list[str]]:
        """Write a target for each source, or continue each prompt (the prompt is then part of what is returned).

        Warns where sources are cut and ``max_source`` does not say so.

        Args:
            texts: sources, of which each may be a list of parts, or prompts.
            prompt: continue the texts from left to right; default: what the model was trained for last (False after
                fine-tuning on pairs, True after pre-training alone).
            max_source: first tokens of each text that are read; 0: all. Default: of sources as many as in fine-tuning,
                or as the positions leave beside ``max_length``; of prompts all.
            windows: divide longer sources into windows of so many tokens, write from each, and then from these texts
                together, see :meth:`shortened`.
            options: fields of :class:`GenerationConfig`; ``no_repeat_ngram_ignore`` may hold symbols instead of ids.
                ``max_length`` is by default the ``max_target`` of fine-tuning, or else the length of its longest
                target. For prompts, and for models that have learned no pairs, it is 128, or less where a text leaves
                fewer positions, for that text alone; sources leave at least a quarter of them.

        Returns:
            One text per input; with ``nbest`` above 1 a list of them per input, best first.

        Raises:
            UnifiedError: an option is unknown or out of range, the model does not write, a text does not fit into
                the position table, or ``windows`` are asked for of prompts.
        """
        ids = [self.encode_source(text) for text in require_list("texts", texts)]
        is_prompt, rules = SCHEMES[self.scheme(prompt)].prompt, self.length_rules
        default = "max_length" not in options
        if default:
            asked = options.get("min_length")
            least = asked if isinstance(asked, int) else 1  # any other value is refused below
            options["max_length"] = rules.default_length(0, prompt=is_prompt, max_source=max_source, least=least)
        config = GenerationConfig.of_options(self.vocabulary, **options)
        groups = rules.searches(map(len, ids), config, default, prompt=is_prompt, max_source=max_source)
        if windows:
            ids = self._fitting(texts, groups, prompt, batch_size, max_source)
        else:
            limits: list[int | None] = [None] * len(ids)
            for own, settings in groups:
                limit = rules.source_limit(settings.max_length, max_source, is_prompt)
                for i in own:
                    limits[i] = limit
            if max_source is None:
                warn_of_cuts(ids, limits)
            ids = [row[:limit] for row, limit in zip(ids, limits, strict=True)]
        given = ids if is_prompt else [[]] * len(ids)
        written: list[list[str]] = [[] for _ in ids]
        for own, settings in groups:
            rows = [ids[i] for i in own]
            found = self.hypotheses(
                rows, settings, prompt=prompt, batch_size=batch_size, indices=own, max_source=0
            )  # fmt: skip
            for i, some in zip(own, found, strict=True):
                written[i] = [self.decode([*given[i], *one.tokens.tolist()]) for one in some]
        return written if config.nbest > 1 else [some[0] for some in written]

    def _fitting(
        self,
        texts: Sequence[Source],
        groups: Sequence[tuple[list[int], GenerationConfig]],
        prompt: bool | None,
        batch_size: int,
        max_source: int | None,
    ) -> list[list[int]]:
        """Ids of sources that windows make short; each group, named by its indices, has its own settings."""
        ids: list[list[int]] = [[] for _ in texts]
        cut = 0
        for own, settings in groups:
            fitting = self.shortened(
                [texts[i] for i in own],
                settings,
                prompt=prompt,
                batch_size=batch_size,
                indices=own,
                max_source=max_source,
            )
            cut += sum(map(bool, fitting.cut))
            for i, row in zip(own, fitting.ids, strict=True):
                ids[i] = row
        warn_of_long_windows(cut, len(ids))
        return ids

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
            ``nbest`` hypotheses of each source, best first, with their scores.

        Raises:
            UnifiedError: a source with ``max_length`` generated tokens exceeds the position table.
        """
        indices = range(len(sources)) if indices is None else indices
        decoder = self.decoder(prompt)
        limit = self.length_rules.source_limit(config.max_length, max_source, decoder.scheme.prompt)
        if max_source is None:
            warn_of_cuts(sources, [limit] * len(sources))
        sources = [source[:limit] for source in sources]
        require_room(sources, indices, config.max_length, self.model.config)
        found: list[list[Hypothesis]] = [[] for _ in sources]
        for batch in by_length(sources, batch_size):
            rows = self._rows([sources[i] for i in batch])
            results = generate(decoder, rows, config, indices=[indices[i] for i in batch])
            for i, hypotheses in zip(batch, results, strict=True):
                found[i] = hypotheses
        return found

    def shortened(
        self,
        sources: Sequence[Source],
        config: GenerationConfig,
        *,
        prompt: bool | None = None,
        batch_size: int = 32,
        indices: Sequence[int] | None = None,
        max_source: int | None = None,
        separator: str | None = None,
    ) -> ShortSources:
        """Sources that fit: what is written from windows of a longer one stands in place of its text.

        Windows end at sentence ends where that is possible, and like windows of all sources share a batch. If what is
        written is too long together, it is divided in its turn (:func:`unified.inference.source_windows.shortened`).

        Args:
            config: settings of the search; the best hypothesis of each window is taken.
            prompt, batch_size, max_source: as for :meth:`generate`; 0 takes what the positions leave.
            indices: as for :meth:`hypotheses`; windows of a source draw the random numbers of their source.
            separator: a mark that is left out of what is written, because sources do not have it.

        Raises:
            UnifiedError: the texts are prompts, or a window has no room for one character.
        """
        if SCHEMES[self.scheme(prompt)].prompt:
            raise UnifiedError("windows divide sources, but the model continues prompts, which are read whole")
        numbers = range(len(sources)) if indices is None else indices
        best = replace(config, nbest=1)
        rules = self.length_rules
        if not max_source:
            rules.source_limit(config.max_length)  # refuses a length that leaves a source no positions
        limit = rules.source_limit(config.max_length, max_source) or rules.tokens_left(config.max_length)

        def write(windows: Sequence[list[int]], owners: Sequence[int]) -> list[str]:
            own = [numbers[i] for i in owners]
            found = self.hypotheses(windows, best, prompt=prompt, batch_size=batch_size, indices=own, max_source=0)
            texts = [self.decode(hypotheses[0].tokens.tolist(), self.unknown_text) for hypotheses in found]
            return texts if separator is None else [text.replace(separator, "") for text in texts]

        return shortened(sources, limit, self.encode_source, write)

    def score(
        self,
        sources: Sequence[Source],
        targets: Sequence[str],
        *,
        prompt: bool | None = None,
        batch_size: int = 32,
        max_source: int | None = None,
    ) -> list[list[float]]:
        """Log-probabilities in nats of the tokens of each target given its source, the end symbol's last.

        Behind a prompt no end symbol is scored: pre-training on running text never predicts one. Targets are scored
        whole. Each is a text by itself, so behind a prompt it begins a new word.

        Args:
            max_source: as for :meth:`generate`; the default leaves the positions that the target needs.

        Raises:
            UnifiedError: unequal numbers of sources and targets, or a pair exceeds the position table.
        """
        if len(require_list("sources", sources)) != len(require_list("targets", targets)):
            raise UnifiedError(
                f"{counted(len(sources), 'source')} but {counted(len(targets), 'target')}; they must pair one to one"
            )
        decoder = self.decoder(prompt)
        end = [] if decoder.scheme.prompt else [self.special.separator]
        given, written = [self.encode_source(source) for source in sources], [self.encode(target) for target in targets]
        rules = self.length_rules
        usual = rules.default_length()
        limits = [rules.source_limit(max(usual, len(t)), max_source, decoder.scheme.prompt) for t in written]
        if max_source is None:
            warn_of_cuts(given, limits)
        pairs = [(s[:limit], t + end) for s, t, limit in zip(given, written, limits, strict=True)]
        found: list[list[float]] = [[] for _ in pairs]
        for batch in by_length([s + t for s, t in pairs], batch_size):
            rows = self._rows([pairs[i][0] for i in batch])
            labels = self._padded([pairs[i][1] for i in batch])
            for i, values in zip(batch, score(decoder, rows, labels).tolist(), strict=True):
                found[i] = values[: len(pairs[i][1])]
        return found

    def scheme(self, prompt: bool | None = None) -> str:
        """Name of the decoding scheme for sources, or for prompts.

        Raises:
            UnifiedError: ``prompt`` is neither a truth value nor None, or the model does not write so.
        """
        if prompt is not None and not isinstance(prompt, bool):
            raise UnifiedError(f"prompt must be True, False or None, got {prompt!r}")
        self.model.head(TOKEN)
        if self.model.config.reads_entities:
            raise UnifiedError(NO_ENTITIES_IN_WRITING)
        if self.writes == "nothing":
            raise UnifiedError(NO_SCHEME)
        if prompt is None or prompt == SCHEMES[self.writes].prompt:
            return self.writes
        if SCHEMES[self.writes].query_stream:
            raise UnifiedError("the model continues prompts; it has not learnt to write targets of sources")
        return "left_to_right" if prompt else "cloze"

    def decoder(self, prompt: bool | None = None) -> Decoder:
        """The decoder of this model, or of the ensemble; ``prompt`` as for :meth:`scheme`."""
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
