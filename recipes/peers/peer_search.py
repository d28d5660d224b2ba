"""Our search over an encoder-decoder of transformers, so that ours and the peer write by one rule.

transformers' own search has neither UniLM's length penalty nor marks that may repeat. N sentences, R = N x beam rows.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace

import torch
from transformers import DynamicCache, EncoderDecoderCache, EncoderDecoderModel, PreTrainedTokenizerBase

from unified.data.vocabulary import SpecialTokens
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder, DecodingScheme


@dataclass(frozen=True)
class Read:
    """Sources that the encoder has read.

    Attributes:
        states: of its tokens (N, S, D).
        visible: bool (N, S), which are tokens and not padding.
    """

    states: torch.Tensor
    visible: torch.Tensor

    @property
    def longest(self) -> int:
        """Tokens before the first that is written: none, as the decoder has positions of its own."""
        return 0

    def select(self, keep: torch.Tensor) -> Read:
        """The sentences of these numbers."""
        return Read(self.states[keep], self.visible[keep])


@dataclass
class Written:
    """Sources, and the decoder's cache of what R rows have written so far."""

    source: Read
    beam: int
    cache: EncoderDecoderCache = field(default_factory=lambda: EncoderDecoderCache(DynamicCache(), DynamicCache()))

    def reorder(self, rows: torch.Tensor) -> None:
        """Let row i continue the old row ``rows[i]``."""
        self.cache.batch_select_indices(rows)


class PeerDecoder:
    """The interface that our search reads (:class:`unified.generation.contract.Decoder`), over the peer.

    Args:
        model: of transformers, in evaluation mode.
        tokenizer: names its special symbols.
    """

    def __init__(self, model: EncoderDecoderModel, tokenizer: PreTrainedTokenizerBase):
        self.model, self.vocabulary_size = model, model.config.decoder.vocab_size
        named = inspect.signature(model.decoder.forward).parameters
        self.cached = "cache" if "cache" in named else "past_key_values"  # by the release of transformers
        self.special = SpecialTokens(
            begin=tokenizer.cls_token_id,
            pad=tokenizer.pad_token_id,
            separator=tokenizer.sep_token_id,
            unknown=tokenizer.unk_token_id,
            mask=tokenizer.mask_token_id,
            first_sentinel=0, sentinel_count=0, ordinary_start=0, ordinary_stop=self.vocabulary_size,
        )  # fmt: skip

    @property
    def scheme(self) -> DecodingScheme:
        """Every token predicts the next one, and what is written does not continue its source."""
        return replace(SCHEMES["next"], source_type=0, target_type=0)

    @property
    def members(self) -> tuple[CachedDecoder, ...]:
        """None of ours."""
        return ()

    @property
    def left_out(self) -> torch.Tensor:
        """A mask of the symbols that the model has not learnt to write; it marks none."""
        return torch.zeros(self.vocabulary_size, dtype=torch.bool)

    def encode(self, source_tokens: torch.Tensor) -> Read:
        """Run the encoder on sources with their special symbols, padded on the right."""
        visible = source_tokens != self.special.pad
        return Read(self.model.encoder(source_tokens, attention_mask=visible.long()).last_hidden_state, visible)

    def begin(self, source: Read, beam: int, most: int | None = None) -> Written:
        """The state of rows that have written nothing yet."""
        return Written(source, beam)

    def step(self, last_tokens: torch.Tensor | None, state: Written, temperature: float = 1.0) -> torch.Tensor:
        """Scores (R, V) of the next token; [CLS] asks for the first one."""
        source = state.source
        states, visible = (one.repeat_interleave(state.beam, dim=0) for one in (source.states, source.visible))
        if last_tokens is None:
            last_tokens = torch.full((len(states),), self.special.begin, device=states.device)
        output = self.model.decoder(
            last_tokens.unsqueeze(1),
            encoder_hidden_states=states,
            encoder_attention_mask=visible.long(),
            use_cache=True,
            **{self.cached: state.cache},
        )
        return output.logits[:, -1] / temperature

    def check_positions(self, needed: int) -> None:
        """Refuse to write more tokens than the decoder has positions for.

        Raises:
            UnifiedError: says so.
        """
        most = self.model.config.decoder.max_position_embeddings
        if needed > most:
            raise UnifiedError(f"{needed} tokens cannot be written; the peer's decoder has {most} positions")
