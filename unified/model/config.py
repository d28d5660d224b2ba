"""Everything that decides a Transformer's shape, in one frozen dataclass."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any

from unified.errors import UnifiedError, nearest
from unified.masks import TEXT_MASKS

NORMS = ("post", "pre")
POSITIONS = ("learned", "relative")
ATTN_TYPES = ("bi", "uni")
ACTIVATIONS = ("gelu", "gelu_tanh")
TOKEN_HEADS = ("transform", "plain", "none")
#: "neighbor" is ANNA's attention, in which no token sees itself; those after it are what its table 8 compares with.
SUBLAYERS = ("self", "neighbor", "relative_key", "relative_value", "entity", "feed_forward")

#: Type of a field's default -> what its values must be, in words and as a class.
_TYPES = {int: ("an integer", Integral), float: ("a number", Real), bool: ("True or False", bool), str: ("a text", str)}


def _option(default: Any, sentence: str) -> Any:
    return field(default=default, metadata={"help": sentence})


@dataclass(frozen=True)
class TransformerConfig:
    """Shape and regularization of one Transformer; the defaults are UniLM's base size [UniLM, sec. 2.2].

    Raises:
        UnifiedError: a field has another type or is out of range, or two fields contradict each other.
    """

    vocabulary_size: int = _option(0, "number of symbols; taken from the data folder when training with fairseq")
    layers: int = _option(12, "number of layers")
    width: int = _option(768, "size of hidden states")
    heads: int = _option(12, "attention heads per layer; width must be a multiple of it")
    feed_forward: int = _option(0, "inner size of the feed-forward sublayer; 0 means 4 x width")
    sublayers: str = _option(
        "self,feed_forward",
        "sublayers of each layer in order, of 'self', 'neighbor' (ANNA: no token sees itself), 'relative_key', "
        "'relative_value', 'entity' (reads which tokens lie within named entities: data need them annotated) and "
        "'feed_forward'",
    )
    positions: str = _option(
        "learned",
        "'learned': tables of positions and token types join the embeddings (BERT); 'relative': attention reads "
        "distances and whether segments differ, and can have a memory and a query stream (XLNet)",
    )
    attn_type: str = _option(
        "bi",
        "with relative positions: 'bi', the mask alone says who sees whom; 'uni', no token sees what stands behind it "
        "either, whatever the mask (XLNet's names)",
    )
    mask: str = _option(
        "bidirectional",
        "mask under which understanding tasks read a text or a pair of texts: "
        f"{', '.join(map(repr, TEXT_MASKS))} (the first text is read in both directions, the second from left to "
        "right); follows the objectives in pre-training",
    )
    lstm: int = _option(
        0,
        "layers of a bidirectional LSTM between the Transformer and the heads of understanding tasks, drawn at "
        "random where a checkpoint has none (BERT's ablation); 0: no LSTM",
    )
    clamp_len: int = _option(
        0, "with relative positions: distances above this count as it; 0: all are told apart (XLNet's name)"
    )
    clip_distance: int = _option(
        16, "greatest distance that 'relative_key' and 'relative_value' tell from farther ones (Shaw et al. 2018)"
    )
    max_positions: int = _option(512, "rows of the position table; beyond a checkpoint's it is continued cyclically")
    token_types: int = _option(6, "rows of the token-type table; UniLM names its objectives with six")
    boundary_offsets: int = _option(
        0, "how far into a span the span-boundary head reaches, in tokens; 0: no such head; follows the objectives"
    )
    sentence_head: bool = _option(
        False, "a head that says which sentences of a source a summary takes; follows the objectives"
    )
    activation: str = _option("gelu", "of the feed-forward sublayer and the token head: 'gelu' (exact) or 'gelu_tanh'")
    token_head: str = _option(
        "transform",
        "before the softmax: 'transform' (dense, GELU, LayerNorm; BERT) or 'plain' (nothing; XLNet); 'none': no "
        "softmax over symbols, as in published encoders such as MiniLM, which give states alone",
    )
    dropout: float = _option(0.1, "dropout on embeddings and on the output of every sublayer")
    inner_dropout: float = _option(0.0, "dropout within the feed-forward sublayer, behind its activation (XLNet)")
    attention_dropout: float = _option(0.1, "dropout on attention weights")
    norm: str = _option("post", "where LayerNorm stands: 'post' (BERT, UniLM) or 'pre'")
    norm_epsilon: float = _option(1e-12, "epsilon of LayerNorm")
    initializer_range: float = _option(0.02, "standard deviation of the initial weights, N(0, range)")
    attention_backend: str = _option(
        "auto",
        "'auto', 'dense', 'sdpa', 'blocked' (CPU), 'flex' or 'flex_flash' (GPU), or one of your own, "
        "package.module:Class; 'auto' logs its choice once",
    )

    def __post_init__(self) -> None:
        for option in fields(self):
            words, wanted = _TYPES[type(option.default)]
            value = getattr(self, option.name)
            if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
                raise UnifiedError(f"{option.name} must be {words}, got {value!r}")
        for name in ("vocabulary_size", "norm_epsilon", "initializer_range"):
            if getattr(self, name) < 0:
                raise UnifiedError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.feed_forward == 0:
            object.__setattr__(self, "feed_forward", 4 * self.width)
        for name in ("layers", "width", "heads", "feed_forward", "max_positions", "token_types", "clip_distance"):
            if getattr(self, name) < 1:
                raise UnifiedError(f"{name} must be at least 1, got {getattr(self, name)}")
        if self.width % self.heads:
            raise UnifiedError(f"width must be a multiple of heads, got width {self.width} and heads {self.heads}")
        if self.boundary_offsets < 0:
            raise UnifiedError(f"boundary_offsets must be at least 0, got {self.boundary_offsets}")
        for name in ("dropout", "attention_dropout", "inner_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise UnifiedError(f"{name} must be in [0, 1), got {getattr(self, name)}")
        if self.clamp_len < 0:
            raise UnifiedError(f"clamp_len must be at least 0, got {self.clamp_len}")
        choices = {
            "norm": NORMS,
            "positions": POSITIONS,
            "activation": ACTIVATIONS,
            "token_head": TOKEN_HEADS,
            "attn_type": ATTN_TYPES,
            "mask": tuple(TEXT_MASKS),
        }
        for name, known in choices.items():
            if getattr(self, name) not in known:
                given = getattr(self, name)
                raise UnifiedError(f"{name} must be one of {known}, got {given!r}{nearest(str(given), known)}")
        for name, none in (("attn_type", "bi"), ("clamp_len", 0)):
            if getattr(self, name) != none and not self.relative:
                raise UnifiedError(f"{name} {getattr(self, name)!r} needs positions 'relative', got {self.positions!r}")
        if self.relative and self.width % 2:
            raise UnifiedError(f"relative positions need an even width, got {self.width}")
        if self.lstm < 0:
            raise UnifiedError(f"lstm must be at least 0, got {self.lstm}")
        if self.lstm and self.width % 2:
            raise UnifiedError(f"an LSTM of two directions needs an even width, got {self.width}")
        others = set(self.sublayer_types) & set(SUBLAYERS[1:-1])
        if self.relative and others:
            raise UnifiedError(f"sublayers of {', '.join(sorted(others))} need positions 'learned', got 'relative'")
        types = set(self.sublayer_types)
        if not types <= set(SUBLAYERS) or not types - {"feed_forward"}:
            raise UnifiedError(
                f"sublayers must be a list of {', '.join(SUBLAYERS)} with an attention in it, got {self.sublayers!r}"
            )

    @property
    def relative(self) -> bool:
        """Whether attention reads distances and segments, instead of tables joining the embeddings."""
        return self.positions == "relative"

    @property
    def position_limit(self) -> int:
        """Most tokens of a text: :attr:`max_positions`; relative positions set no limit."""
        return sys.maxsize if self.relative else self.max_positions

    @property
    def gelu_approximation(self) -> str:
        """:attr:`activation` as torch names it."""
        return "tanh" if self.activation == "gelu_tanh" else "none"

    @property
    def sublayer_types(self) -> tuple[str, ...]:
        """:attr:`sublayers` one by one."""
        return tuple(one.strip() for one in self.sublayers.split(","))

    @property
    def reads_entities(self) -> bool:
        """Whether an attention must be told which tokens lie within named entities."""
        return "entity" in self.sublayer_types

    def with_vocabulary(self, size: int) -> TransformerConfig:
        """A copy of the configuration with a vocabulary of ``size`` symbols."""
        return replace(self, vocabulary_size=size)
