"""Everything that decides a Transformer's shape, in one frozen dataclass."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from unified.arguments import check_all_settings, setting
from unified.errors import UnifiedError
from unified.masks import TEXT_MASKS

NORMS = ("post", "pre")
NORM_TYPES = ("layer", "layer_without_bias", "rms")
POSITIONS = ("learned", "relative", "rotary")
ATTN_TYPES = ("bi", "uni")
ACTIVATIONS = ("gelu", "gelu_tanh", "silu")
TOKEN_HEADS = ("transform", "plain", "none")
#: "neighbor" is ANNA's attention, in which no token sees itself; the three after it are what its table 8 compares with.
SUBLAYERS = ("self", "neighbor", "relative_key", "relative_value", "entity", "feed_forward")
#: Bounds of sizes, far beyond what is trained: a damaged file must not ask for all memory.
_WIDEST, _MOST_SYMBOLS = 1 << 17, 1 << 27
#: Kind of positions -> sublayers that can be built with it.
_SUBLAYERS_WITH = {
    "learned": set(SUBLAYERS),
    "relative": {"self", "feed_forward"},
    "rotary": {"self", "neighbor", "feed_forward"},
}


@dataclass(frozen=True)
class TransformerConfig:
    """Shape and regularization of one Transformer; the defaults are BERT-base's size [BERT, sec. 3].

    Raises:
        UnifiedError: a field has another type or is out of range, or two fields contradict each other.
    """

    vocabulary_size: int = setting(
        0, "number of symbols; taken from the data folder when training with fairseq", least=0, most=_MOST_SYMBOLS
    )
    layers: int = setting(12, "number of layers", least=1, most=1000)
    width: int = setting(768, "size of hidden states", least=1, most=_WIDEST)
    heads: int = setting(12, "attention heads per layer; width must be a multiple of it", least=1, most=_WIDEST)
    feed_forward: int = setting(
        0, "inner size of the feed-forward sublayer; 0 means 4 x width", least=0, most=4 * _WIDEST
    )
    gated: bool = setting(
        False,
        "the feed-forward sublayer is a gated linear unit: its first map makes two vectors of the inner size, and the "
        "activation of one multiplies the other (ModernBERT, Llama)",
    )
    sublayers: str = setting(
        "self,feed_forward",
        "sublayers of each layer in order, of 'self', 'neighbor' (ANNA: no token sees itself), 'relative_key', "
        "'relative_value', 'entity' (reads which tokens lie within named entities: data need them annotated) and "
        "'feed_forward'",
    )
    positions: str = setting(
        "learned",
        "'learned': tables of positions and token types join the embeddings (BERT); 'relative': attention reads "
        "distances and whether segments differ (XLNet); 'rotary': attention turns queries and keys by their position "
        "(ModernBERT, Llama). The last two can have a query stream and a memory",
        one_of=POSITIONS,
    )
    attn_type: str = setting(
        "bi",
        "with relative positions: 'bi', the mask alone says who sees whom; 'uni', no token sees what stands behind it "
        "either, whatever the mask (XLNet's names)",
        one_of=ATTN_TYPES,
    )
    mask: str = setting(
        "bidirectional",
        "mask under which understanding tasks read a text or a pair of texts: "
        f"{', '.join(map(repr, TEXT_MASKS))} (the first text is read in both directions, the second from left to "
        "right); follows the objectives in pre-training",
        one_of=TEXT_MASKS,
    )
    pair_separators: int = setting(
        1,
        "separators between the two texts of a pair that understanding tasks read: 1 (BERT), or 2 (RoBERTa), not with "
        "relative positions",
        least=1,
        most=2,
    )
    lstm: int = setting(
        0,
        "layers of a bidirectional LSTM between the Transformer and the heads of understanding tasks, drawn at "
        "random where a checkpoint has none (BERT's ablation); 0: no LSTM",
        least=0,
        most=1000,
    )
    rotary_theta: float = setting(10000.0, "with rotary positions: base of the wavelengths (theta of RoPE)", above=0)
    local_rotary_theta: float = setting(
        0.0,
        "with rotary positions: rotary_theta of the layers that have a window; 0: the same as rotary_theta",
        least=0,
    )
    attention_windows: str = setting(
        "0",
        "how many positions on each side attention reads, layer by layer, again from the first when the list ends; 0: "
        "all. '0,64,64' lets every third layer, the first among them, read everything (ModernBERT)",
    )
    clamp_len: int = setting(
        0, "with relative positions: distances above this count as it; 0: all are told apart (XLNet's name)", least=0
    )
    clip_distance: int = setting(
        16,
        "greatest distance that 'relative_key' and 'relative_value' tell from farther ones (Shaw et al. 2018)",
        least=1,
        most=_MOST_SYMBOLS,
    )
    max_positions: int = setting(
        512, "rows of the position table; beyond a checkpoint's it is continued cyclically", least=1, most=_MOST_SYMBOLS
    )
    token_types: int = setting(
        6,
        "rows of the token-type table; UniLM names its objectives with six; 0, with rotary positions: no table, the "
        "mask alone tells objectives and segments apart",
        least=0,
        most=_MOST_SYMBOLS,
    )
    boundary_offsets: int = setting(
        0,
        "how far into a span the span-boundary head reaches, in tokens; 0: no such head; follows the objectives",
        least=0,
        most=_MOST_SYMBOLS,
    )
    sentence_head: bool = setting(
        False, "a head that says which sentences of a source a summary takes; follows the objectives"
    )
    activation: str = setting(
        "gelu",
        "of the feed-forward sublayer and the token head: 'gelu' (exact), 'gelu_tanh' or 'silu'",
        one_of=ACTIVATIONS,
    )
    linear_without_bias: bool = setting(
        False, "linear maps of the layers and of the token head have no biases (ModernBERT, Llama)"
    )
    token_head: str = setting(
        "transform",
        "before the softmax: 'transform' (dense, activation, norm; BERT) or 'plain' (nothing; XLNet); 'none': no "
        "softmax over symbols, as in published encoders such as MiniLM, which give states alone",
        one_of=TOKEN_HEADS,
    )
    dropout: float = setting(
        0.1,
        "dropout on embeddings and on the output of every sublayer; with relative positions on distances and last "
        "states, too",
        least=0,
        below=1,
    )
    inner_dropout: float = setting(
        0.0, "dropout within the feed-forward sublayer, behind its activation (XLNet)", least=0, below=1
    )
    attention_dropout: float = setting(0.1, "dropout on attention weights", least=0, below=1)
    norm: str = setting("post", "where the norm of each sublayer stands: 'post' (BERT, UniLM) or 'pre'", one_of=NORMS)
    norm_type: str = setting(
        "layer",
        "norm of the Transformer and the token head: 'layer' (LayerNorm), 'layer_without_bias' or 'rms' (RMSNorm)",
        one_of=NORM_TYPES,
    )
    embedding_norm: bool = setting(
        False,
        "with norm 'pre': a norm behind the embeddings, in place of the one before the first sublayer (ModernBERT)",
    )
    norm_epsilon: float = setting(1e-12, "epsilon of the norms", least=0)
    initializer_range: float = setting(0.02, "standard deviation of the initial weights, N(0, range)", least=0)
    attention_backend: str = setting(
        "auto",
        "'auto', 'dense', 'sdpa', 'blocked' (CPU), 'fused', 'flex' or 'flex_flash' (GPU), or one of your own, "
        "package.module:Class; 'auto' logs its choice once",
    )

    def __post_init__(self) -> None:
        check_all_settings(self)
        if self.feed_forward == 0:
            object.__setattr__(self, "feed_forward", 4 * self.width)
        if self.token_types == 0 and self.positions != "rotary":
            raise UnifiedError(f"token_types 0 (no table) needs positions 'rotary', got {self.positions!r}")
        if self.width % self.heads:
            raise UnifiedError(f"width must be a multiple of heads, got width {self.width} and heads {self.heads}")
        for name, none in (("attn_type", "bi"), ("clamp_len", 0)):
            if getattr(self, name) != none and not self.relative:
                raise UnifiedError(f"{name} {getattr(self, name)!r} needs positions 'relative', got {self.positions!r}")
        if self.pair_separators > 1 and self.relative:
            raise UnifiedError(
                f"pair_separators {self.pair_separators} needs positions 'learned' or 'rotary', got {self.positions!r}"
            )
        for name in ("rotary_theta", "local_rotary_theta"):
            if getattr(self, name) != getattr(TransformerConfig, name) and self.positions != "rotary":
                raise UnifiedError(f"{name} {getattr(self, name)} needs positions 'rotary', got {self.positions!r}")
        if self.positions == "rotary" and self.width // self.heads % 2:
            raise UnifiedError(
                f"rotary positions need an even size of heads, got width {self.width} and heads {self.heads}"
            )
        if self.embedding_norm and self.norm != "pre":
            raise UnifiedError(f"embedding_norm needs norm 'pre', got {self.norm!r}, which has one anyway")
        listed = [one.strip() for one in self.attention_windows.split(",")]
        if not all(one.isascii() and one.isdigit() for one in listed):
            raise UnifiedError(
                f"attention_windows must be a list of integers of at least 0, such as '0,64,64', got "
                f"{self.attention_windows!r}"
            )
        if any(len(one) > 9 for one in listed):
            raise UnifiedError(f"attention_windows must be below 1,000,000,000, got {self.attention_windows[:60]!r}")
        if self.relative and self.width % 2:
            raise UnifiedError(f"relative positions need an even width, got {self.width}")
        if self.lstm and self.width % 2:
            raise UnifiedError(f"an LSTM of two directions needs an even width, got {self.width}")
        served = _SUBLAYERS_WITH[self.positions]
        others = set(self.sublayer_types) & set(SUBLAYERS) - served
        if others:
            serving = [repr(kind) for kind, built in _SUBLAYERS_WITH.items() if others <= built]
            raise UnifiedError(
                f"sublayers of {', '.join(sorted(others))} need positions {' or '.join(serving)}, got "
                f"{self.positions!r}"
            )
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
    def positions_in_attention(self) -> bool:
        """Whether positions enter in attention alone, so that a query stream and a memory are possible."""
        return self.positions != "learned"

    @property
    def position_limit(self) -> int:
        """Most tokens of a text: :attr:`max_positions`; positions that enter in attention set no limit."""
        return sys.maxsize if self.positions_in_attention else self.max_positions

    @property
    def windows(self) -> tuple[int, ...]:
        """Positions on each side that the attentions of each layer read, 0 for all: one integer a layer."""
        listed = [int(one) for one in self.attention_windows.split(",")]
        return tuple(listed[layer % len(listed)] for layer in range(self.layers))

    def rotary_theta_of(self, window: int) -> float:
        """Base of the wavelengths of rotary positions in a layer with that window, 0 for none."""
        return self.local_rotary_theta if window and self.local_rotary_theta else self.rotary_theta

    def has_token_types(self, count: int) -> bool:
        """Whether token types 0 to ``count - 1`` have rows, or there is no table that could lack them."""
        return self.token_types in (0, max(count, self.token_types))

    def with_token_types(self, count: int) -> TransformerConfig:
        """A copy whose token-type table, if there is one, has at least ``count`` rows."""
        return self if self.has_token_types(count) else replace(self, token_types=count)

    def with_token_head(self) -> TransformerConfig:
        """A copy with a token head: where there is none, BERT's, or XLNet's beside its relative positions."""
        if self.token_head != "none":
            return self
        return replace(self, token_head="plain" if self.relative else "transform")

    @property
    def gelu_approximation(self) -> str:
        """The way in which torch computes GELU: "tanh", or "none" where it is exact."""
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
