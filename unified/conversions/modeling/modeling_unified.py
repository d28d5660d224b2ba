"""A model that was trained by UNIFIED (unified-lm), for ``transformers``; the library itself is not needed.

Letters: B rows, T tokens, Q queries (the tokens, and behind them those of a query stream), S keys, D width, V symbols.
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.modeling_outputs import (
    BaseModelOutput,
    MaskedLMOutput,
    MultipleChoiceModelOutput,
    QuestionAnsweringModelOutput,
    SequenceClassifierOutput,
    TokenClassifierOutput,
)

from .attention_unified import TransformerXLAttention, View
from .configuration_unified import UnifiedConfig
from .embeddings_unified import EMBEDDINGS, SymbolTable, TokenEmbeddings
from .generation_unified import Writing
from .heads_unified import HEADS, BoundaryHead, LinearHead, PooledHead, TokenHead
from .layers_unified import Layer
from .masks_unified import class_index, types_of_texts, visible_by_steps, visible_in_texts, without_following
from .norms_unified import norm_of
from .reader_unified import Reader
from .search_unified import Hypothesis, Search

# What is imported above is all that earlier releases of transformers copy: every file has to be among it.
__all__ = ["Hypothesis", "Reader", "Search", "UnifiedForMaskedLM", "UnifiedModel"]


class UnifiedPreTrainedModel(PreTrainedModel):
    """The attributes and methods that ``transformers`` expects of a model."""

    config_class = UnifiedConfig
    base_model_prefix = "transformer"
    main_input_name = "input_ids"

    def _init_weights(self, module: nn.Module) -> None:
        deviation = self.config.initializer_range
        if isinstance(module, nn.Linear | nn.Embedding):
            nn.init.normal_(module.weight, std=deviation)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, nn.LayerNorm | nn.RMSNorm):
            nn.init.ones_(module.weight)
        if isinstance(module, nn.LayerNorm) and module.bias is not None:
            nn.init.zeros_(module.bias)
        if isinstance(module, SymbolTable):
            nn.init.ones_(module.scored)
        if isinstance(module, TransformerXLAttention):
            for vectors in (module.content_bias, module.distance_bias, module.segment_bias, module.segments):
                nn.init.normal_(vectors, std=deviation)
        if isinstance(module, TokenEmbeddings):
            nn.init.normal_(module.query, std=deviation)
        if isinstance(module, TokenHead | BoundaryHead):
            nn.init.zeros_(module.bias)

    def resize_token_embeddings(self, *arguments: object, **options: object) -> nn.Embedding:
        """Refused: the vocabulary of such a model is changed by the library it came from."""
        raise NotImplementedError("the vocabulary is changed by `unified convert --vocabulary DATA MODEL OUT`")


class UnifiedModel(UnifiedPreTrainedModel):
    """The Transformer: hidden states of texts under any mask."""

    _keys_to_ignore_on_load_unexpected = [r"^heads\."]  # it has none, whatever its folder holds

    def __init__(self, config: UnifiedConfig):
        super().__init__(config)
        self.embeddings = EMBEDDINGS[config.positions](config)
        self.layers = nn.ModuleList(Layer(config, i) for i in range(config.layers))
        self.norm = norm_of(config) if config.norm == "pre" else nn.Identity()
        self.dropout = nn.Dropout(config.dropout if config.positions == "relative" else 0.0)
        self.post_init()

    def get_input_embeddings(self) -> nn.Embedding:
        """The table of symbols."""
        return self.embeddings.tokens

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        query_step: torch.Tensor | None = None,
        key_start: torch.Tensor | None = None,
        key_stop: torch.Tensor | None = None,
        entities: torch.Tensor | None = None,
        output_hidden_states: bool = False,
        return_dict: bool = True,
    ) -> BaseModelOutput | tuple[torch.Tensor, ...]:
        """Hidden states (B, Q, D).

        Without a mask of its own a text, or a pair of them, is read as in training (``config.mask``), and
        ``token_type_ids`` are the segments 0 and 1 of a tokenizer; with one they are the model's own token types.

        Args:
            input_ids: int64 (B, T).
            attention_mask: (B, T), 0 at padding; or the mask itself, bool (B, Q, T), True where a query may attend.
            token_type_ids: int64 (B, T), or (B, Q) with a query stream; default: all 0.
            position_ids: int64 (B, Q), default: tokens are counted, padding left out. Those beyond the T tokens are
                those of a query stream, in a model of relative or rotary positions.
            query_step, key_start, key_stop: a mask as integers, (B, Q) or (Q,) and twice (B, T) or (T,): a query sees
                the keys with ``key_start <= query_step < key_stop``, and no padding.
            entities: bool (B, T), tokens within named entities, for a model that reads them.
            output_hidden_states: return the states that enter each layer, and the last ones, too.
            return_dict: False returns a tuple.
        """
        rows, real = len(input_ids), torch.ones_like(input_ids, dtype=torch.bool)
        given = attention_mask.bool() if attention_mask is not None and attention_mask.dim() == 3 else None
        if attention_mask is not None and given is None:
            real = attention_mask.bool()
        if position_ids is None:
            position_ids = (real.cumsum(1) - 1).masked_fill(~real, 0)
        position_ids = position_ids.expand(rows, -1)
        types = torch.zeros_like(position_ids) if token_type_ids is None else token_type_ids
        steps = [one.expand(rows, -1) for one in (query_step, key_start, key_stop) if one is not None]
        if len(steps) not in (0, 3) or (steps and given is not None):
            raise ValueError("a mask is query_step, key_start and key_stop, or a boolean attention_mask (B, Q, T)")
        if steps:
            visible = visible_by_steps(*steps) & real.unsqueeze(1)
        elif given is not None:
            visible = given
        else:
            visible = visible_in_texts(self.config.mask, real, types)
            types = types_of_texts(self.config, types)
        wanted = (rows, position_ids.size(1), input_ids.size(1))
        if visible.shape != wanted:
            raise ValueError(f"the mask must be (rows, queries, tokens) {wanted}, got {tuple(visible.shape)}")
        if self.config.attn_type == "uni":
            visible = without_following(visible, position_ids, input_ids.size(1))
        own = torch.eye(*wanted[1:], dtype=torch.bool, device=visible.device)
        tokens = input_ids.size(1)
        view = View(
            visible, own, tokens, position_ids, position_ids[:, :tokens], types, types[:, :tokens], entities
        )  # fmt: skip
        last, every = self.run(input_ids, view)
        found = BaseModelOutput(last_hidden_state=last, hidden_states=every if output_hidden_states else None)
        return found if return_dict else found.to_tuple()

    def run(self, tokens: torch.Tensor, view: View) -> tuple[torch.Tensor, tuple[torch.Tensor, ...]]:
        """Last states (B, Q, D), and with them those that enter each layer."""
        states = self.embeddings(tokens, view.query_positions, view.query_types)
        every = []
        for layer in self.layers:
            every.append(states)
            states = layer(states, view)
        states = self.dropout(self.norm(states))
        return states, (*every, states)


class UnifiedForMaskedLM(Writing, UnifiedPreTrainedModel):
    """The Transformer with its heads of language modelling: it scores symbols at every token, and writes texts."""

    def __init__(self, config: UnifiedConfig):
        super().__init__(config)
        self.transformer = UnifiedModel(config)
        self.heads = nn.ModuleDict({name: HEADS[name](config) for name in config.prediction_heads})
        self.post_init()

    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """Scores (..., V) of symbols from the states (..., D) of tokens."""
        return self.heads["token"](states, self.transformer.embeddings.tokens)

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        position_ids: torch.Tensor | None = None,
        query_step: torch.Tensor | None = None,
        key_start: torch.Tensor | None = None,
        key_stop: torch.Tensor | None = None,
        entities: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
        output_hidden_states: bool = False,
        return_dict: bool = True,
    ) -> MaskedLMOutput | tuple[torch.Tensor, ...]:
        """Scores (B, Q, V) of the symbol that stands at each token, or at each query of a query stream.

        Args:
            labels: int64 (B, Q), the symbol of each query, not that of the next one; -100 where none is asked for. The
                loss is their mean cross-entropy.
            input_ids, attention_mask, token_type_ids, position_ids, query_step, key_start, key_stop, entities,
                output_hidden_states, return_dict: as of :class:`UnifiedModel`.
        """
        found = self.transformer(
            input_ids, attention_mask, token_type_ids, position_ids, query_step, key_start, key_stop, entities,
            output_hidden_states,
        )  # fmt: skip
        logits, loss = self.logits(found.last_hidden_state), None
        if labels is not None:
            loss = functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        outputs = MaskedLMOutput(loss=loss, logits=logits, hidden_states=found.hidden_states)
        return outputs if return_dict else outputs.to_tuple()


class _WithTaskHead(UnifiedPreTrainedModel):
    """A Transformer and one head of fine-tuning; texts are read under the mask of the model's training."""

    head_class: type[nn.Module]

    def __init__(self, config: UnifiedConfig):
        super().__init__(config)
        self.transformer = UnifiedModel(config)
        self.heads = nn.ModuleDict({config.task_head: self.head_class(config, self.scores)})
        self.post_init()

    @property
    def scores(self) -> int:
        """Number of scores that the head gives."""
        return len(self.config.id2label)

    def read(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor | None, token_type_ids: torch.Tensor | None
    ) -> torch.Tensor:
        """Scores (B, n) of texts, or (B, T, n) of their tokens."""
        states = self.transformer(input_ids, attention_mask, token_type_ids).last_hidden_state
        head = self.heads[self.config.task_head]
        if isinstance(head, PooledHead):
            real = torch.ones_like(input_ids).bool() if attention_mask is None else attention_mask.bool()
            segments = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
            visible = visible_in_texts(self.config.mask, real, segments)
            states = states[torch.arange(len(states)), class_index(self.config, visible, real)]
        return head(states)


class UnifiedForSequenceClassification(_WithTaskHead):
    """Scores of the classes of a text or a pair of texts, or one number."""

    head_class = PooledHead

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
    ) -> SequenceClassifierOutput:
        """``logits`` (B, classes); ``labels`` int64 (B,), or float (B,) of a regression."""
        logits, loss = self.read(input_ids, attention_mask, token_type_ids), None
        if labels is not None:
            regression = self.config.problem_type == "regression"
            loss = functional.mse_loss(logits[:, 0], labels) if regression else functional.cross_entropy(logits, labels)
        return SequenceClassifierOutput(loss=loss, logits=logits)


class UnifiedForTokenClassification(_WithTaskHead):
    """Scores of the tags of each token."""

    head_class = LinearHead

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
        labels: torch.Tensor | None = None,
    ) -> TokenClassifierOutput:
        """Logits (B, T, tags) and, with ``labels`` (int64 (B, T), -100 without a label), the loss."""
        logits = self.read(input_ids, attention_mask, token_type_ids)
        loss = None if labels is None else functional.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return TokenClassifierOutput(loss=loss, logits=logits)


class UnifiedForQuestionAnswering(_WithTaskHead):
    """Scores of each token as the first and as the last one of an answer."""

    head_class, scores = LinearHead, 2

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
    ) -> QuestionAnsweringModelOutput:
        """``start_logits`` and ``end_logits`` (B, T)."""
        start, end = self.read(input_ids, attention_mask, token_type_ids).unbind(-1)
        return QuestionAnsweringModelOutput(start_logits=start, end_logits=end)


class UnifiedForMultipleChoice(_WithTaskHead):
    """A score of each choice."""

    head_class, scores = PooledHead, 1

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
        token_type_ids: torch.Tensor | None = None,
    ) -> MultipleChoiceModelOutput:
        """int64 (B, choices, T) -> ``logits`` (B, choices)."""
        mask, types = (None if one is None else one.flatten(0, 1) for one in (attention_mask, token_type_ids))
        logits = self.read(input_ids.flatten(0, 1), mask, types)
        return MultipleChoiceModelOutput(logits=logits.view(input_ids.shape[:2]))
