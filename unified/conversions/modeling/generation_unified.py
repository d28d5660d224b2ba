"""Writing texts for batches of token ids, with the library's settings and defaults."""

from __future__ import annotations

import warnings
from dataclasses import fields
from typing import Any

import torch

from .configuration_unified import UnifiedConfig
from .reader_unified import SCHEMES, Reader, Scheme
from .search_unified import Hypothesis, Search, Text, search


class Writing:
    """Mixed into a language model: it writes texts as its configuration says it learnt to."""

    config: UnifiedConfig
    device: torch.device

    def generate(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        *,
        prompt: bool | None = None,
        max_source: int | None = None,
        **settings: Any,
    ) -> torch.Tensor:
        """Write a target for each source, or continue each prompt.

        Args:
            input_ids: int64 (N, S), as the tokenizer gives them, with or without special symbols around the texts.
            attention_mask: (N, S), 0 at padding.
            token_type_ids: not read; the decoding scheme names the types.
            prompt: continue the texts from left to right; default: what the model was trained for last.
            max_source: first tokens of each text that are read; 0: all. Default: of sources as many as in fine-tuning,
                or as the positions leave beside ``max_length``; of prompts all.
            settings: fields of :class:`Search`. ``max_length`` is by default the ``max_target`` of fine-tuning, or else
                the length of its longest target; for prompts, and for a model that has learnt no pairs, 128 or what the
                positions leave beside each text.

        Returns:
            int64 (N x nbest, m), the texts without special symbols, padded on the right; behind a prompt, the prompt
            and what continues it. (0, 0) where there is no text.
        """
        texts, found = self.hypotheses(
            input_ids, attention_mask, prompt=prompt, max_source=max_source, **settings
        )  # fmt: skip
        if not texts:
            return input_ids[:, :0]
        given = texts if SCHEMES[self.scheme(prompt)].prompt else [[]] * len(texts)
        rows = [
            torch.tensor([*text, *one.tokens]).long() for text, some in zip(given, found, strict=True) for one in some
        ]
        return torch.nn.utils.rnn.pad_sequence(rows, True, self.config.pad_token_id).to(self.device)

    @torch.no_grad()
    def hypotheses(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        *,
        prompt: bool | None = None,
        max_source: int | None = None,
        **settings: Any,
    ) -> tuple[list[list[int]], list[list[Hypothesis]]]:
        """The texts as they are read, and ``nbest`` hypotheses of each, best first; see :meth:`generate`."""
        if max_source is not None and max_source < 0:
            raise ValueError(f"max_source must be 0 (whole texts) or a number of tokens, got {max_source}")
        scheme = SCHEMES[self.scheme(prompt)]
        texts = [self._text(row, scheme) for row in self._rows(input_ids, attention_mask)]
        if not texts:
            return [], []
        if scheme.prompt and max_source:
            texts = [text[:max_source] for text in texts]
        least = settings.get("min_length", 1)
        lengths = [
            settings.get("max_length", max(1, self._usual_length(len(text), scheme.prompt, max_source), least))
            for text in texts
        ]
        known = [field.name for field in fields(Search)]
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise ValueError(f"generate has no setting {', '.join(unknown)}; its settings are {', '.join(known)}")
        chosen = {length: Search(**{**settings, "max_length": length}) for length in sorted(set(lengths))}
        if not scheme.prompt:
            texts = self._cut(texts, lengths, max_source)
        for number, (text, length) in enumerate(zip(texts, lengths, strict=True)):
            left = self._positions_left(length)
            if len(text) > left:
                raise ValueError(
                    f"text {number}: {len(text)} tokens, but the model's positions leave room for {max(left, 0)} "
                    f"beside the {length} that may be written; shorten the text or what is written"
                )
        sources = texts if scheme.prompt else [[*text, self.config.sep_token_id] for text in texts]
        found: list[list[Hypothesis]] = [[] for _ in texts]
        for length, own in chosen.items():  # no text's length depends on the others
            rows = [row for row, most in enumerate(lengths) if most == length]
            given = [Text(texts[row] if scheme.prompt else [], scheme.prompt, row, self.config, own) for row in rows]
            reader = Reader(self, scheme, [sources[row] for row in rows], own.beam)
            for row, some in zip(rows, search(reader, given, own.beam, length), strict=True):
                found[row] = some
        return texts, found

    def scheme(self, prompt: bool | None = None) -> str:
        """Name of the decoding scheme, of :data:`SCHEMES`, for sources or for prompts."""
        config = self.config
        if config.decoding not in SCHEMES or "entity" in config.sublayers or "token" not in config.prediction_heads:
            raise ValueError("the model does not write texts; its config.json says decoding 'nothing' or lacks a head")
        if prompt is None or prompt == SCHEMES[config.decoding].prompt:
            return config.decoding
        if SCHEMES[config.decoding].query_stream:
            raise ValueError("the model continues prompts; it has not learnt to write targets of sources")
        return "left_to_right" if prompt else "cloze"

    def _rows(self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None) -> list[list[int]]:
        """Ids of each row without padding."""
        real = input_ids != self.config.pad_token_id
        if attention_mask is not None:
            real = real & attention_mask.bool()
        return [row[own].tolist() for row, own in zip(input_ids, real, strict=True)]

    def _text(self, ids: list[int], scheme: Scheme) -> list[int]:
        """Ids of a text without the special symbols that a tokenizer puts around it."""
        begin, separator = self.config.cls_token_id, self.config.sep_token_id
        ids = ids[1:] if ids[:1] == [begin] else ids
        ids = ids[:-1] if ids[-1:] == [begin] else ids  # XLNet's stands at the end
        ids = ids[:-1] if ids[-1:] == [separator] else ids
        while scheme.prompt and ids[-1:] == [separator]:
            ids = ids[:-1]
        return ids

    def _positions_left(self, length: int) -> float:
        """Positions beside a target of ``length`` tokens, begin, separator and what asks for the next token."""
        return torch.inf if self.config.positions != "learned" else self.config.max_positions - length - 3

    def _usual_length(self, size: int, prompt: bool, max_source: int | None) -> int:
        """Most tokens to write from a text of ``size`` where the user does not say."""
        if prompt:
            return int(min(128, self._positions_left(size)))
        lengths = self.config.pair_lengths
        quarter = torch.inf if self.config.positions != "learned" else self.config.max_positions // 4
        left = min(128, max(quarter, self._positions_left(max(size, 1))))
        usual = lengths["max_target"] or lengths["longest_target"] or left
        return int(max(1, min(usual, self._positions_left(max_source or 0))))

    def _cut(self, texts: list[list[int]], lengths: list[int], max_source: int | None) -> list[list[int]]:
        """Cuts each source to the tokens that are read; warns of cut sources unless the user set the length."""
        if max_source is not None:
            return [text[:max_source] for text in texts] if max_source else texts
        limits = []
        for length in lengths:
            left = self._positions_left(length)
            if left < 1:
                raise ValueError(f"max_length {length} leaves no position for a source; a target must be shorter")
            limits.append(min(self.config.pair_lengths["max_source"] or left, left))
        cut = [limit for text, limit in zip(texts, limits, strict=True) if len(text) > limit]
        if cut:
            least = f"{min(cut)} to " if min(cut) < max(cut) else ""
            warnings.warn(
                f"{len(cut)} of {len(texts)} texts have more than {least}{max(cut)} tokens; the rest is not read",
                stacklevel=4,
            )
        return [text if len(text) <= limit else text[: int(limit)] for text, limit in zip(texts, limits, strict=True)]
