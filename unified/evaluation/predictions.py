"""Predictions that a score of a text consists of: what the model reads, and which tokens it is asked for.

:func:`hidden_predictions` hides some tokens and asks for them in the light of all others, :func:`sentinel_predictions`
does so in T5's form, and :func:`ordered_predictions` asks for tokens in an order, each in the light of those before it,
in one pass.

Letters: n texts, m examples, N predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unified.data.example import Examples
from unified.data.extents import Extents, ranges
from unified.data.targets import TOKEN, ExampleTargets
from unified.data.vocabulary import SpecialTokens
from unified.generation.schemes import SCHEMES
from unified.inference.language_model import UnifiedLM
from unified.inference.sequences import token_types_under
from unified.masks import GIVEN, TEXT_MASKS, steps
from unified.masks.steps import Integers, Steps
from unified.objectives.joined_segments import FIRST, SOURCE, TARGET
from unified.objectives.unilm import next_token_examples
from unified.objectives.xlnet import CLS_TYPE, FIRST_TYPE

#: Name under which examples are collated; no loss is logged under it.
OBJECTIVE = "scored"


@dataclass(frozen=True)
class TokenizedTexts:
    """Texts as ids, without special symbols.

    Attributes:
        tokens: int64 (all tokens,), of one text after another.
        extents: where each of the n texts lies.
        given: int64 (n,), how many first tokens of each are its context, which is not scored.
    """

    tokens: Integers
    extents: Extents
    given: Integers

    @classmethod
    def of(cls, texts: Sequence[Integers], given: Sequence[int] | Integers | None = None) -> TokenizedTexts:
        """Join texts, int64 (tokens,) each; ``given`` is 0 for each where it is None."""
        lengths = np.array([len(text) for text in texts], dtype=np.int64)
        first = np.zeros(len(texts), dtype=np.int64) if given is None else np.asarray(given, dtype=np.int64)
        return cls(np.concatenate([np.zeros(0, dtype=np.int64), *texts]), Extents(lengths), first)

    @property
    def scored(self) -> np.ndarray:
        """bool (all tokens,), True for tokens that are scored."""
        return self.extents.within >= self.given.repeat(self.extents.lengths)


@dataclass(frozen=True)
class SequenceForm:
    """Form of the sequences by which a language model is asked for the tokens of a text.

    Attributes:
        special: ids of the special symbols.
        query_stream: queries that are no tokens ask for hidden tokens, and the sequence is ``text SEP CLS`` (XLNet).
            Otherwise a [MASK] does, and the sequence is ``CLS text SEP``.
        target_next: from left to right the token before a token predicts it, in ``CLS context SEP BOS text`` (T5).
        causal_next: the same in ``CLS text``, as GPT's and BERT's left-to-right ablation have it.
        token_types: of a text by the name of its mask.
    """

    special: SpecialTokens
    query_stream: bool
    target_next: bool
    causal_next: bool
    token_types: dict[str, int]

    @classmethod
    def of(cls, lm: UnifiedLM, writes: str, mask: str) -> SequenceForm:
        """The form in which a model has learnt to predict.

        Args:
            writes: the decoding scheme of what it has learnt, or "nothing".
            mask: the mask under which it has learnt to read.
        """
        scheme = SCHEMES.get(writes)
        types = {name: token_types_under(name, lm.model.config)[0] for name in TEXT_MASKS}
        if scheme is None:
            # It reads from left to right, but no [MASK] asks for the next token.
            return cls(lm.special, False, False, mask == "left_to_right", types)
        by_token = not scheme.query_stream and not scheme.mask_query
        return cls(lm.special, scheme.query_stream, by_token and not scheme.prompt, by_token and scheme.prompt, types)


@dataclass(frozen=True)
class Predictions:
    """Examples with N predictions of tokens of texts.

    Attributes:
        examples: m examples, whose targets ``token`` are the predictions; they may have weights.
        tokens: int64 (N,), which of all tokens of the texts each prediction is of.
    """

    examples: Examples
    tokens: Integers


def hidden_predictions(
    texts: TokenizedTexts,
    form: SequenceForm,
    members: Integers,
    hidden: np.ndarray,
    asked: np.ndarray,
    weights: np.ndarray | None,
    shifted: bool,
) -> Predictions:
    """Examples that hide tokens of a text; what is not hidden is seen by all.

    Args:
        members: int64 (m,), the text of each example.
        hidden: bool (tokens of all examples,), special symbols not counted: whether nobody sees the token.
        asked: bool, of the same length: which of the hidden tokens are predicted.
        weights: float64 (N,), of the predictions; None for 1 each.
        shifted: the state before a hidden token predicts it, in place of its own (not with a query stream).
    """
    if form.query_stream:
        return _stream_predictions(texts, form, members, hidden.astype(np.int64), asked, weights)
    of_text, lengths = _tokens_of(texts, members)
    extents = Extents(lengths + 2)
    inner, labels = ranges(extents.starts + 1, lengths), texts.tokens[of_text]
    tokens = np.empty(extents.total, dtype=np.int64)
    tokens[inner] = np.where(hidden, form.special.mask, labels)
    tokens[extents.starts], tokens[extents.stops - 1] = form.special.begin, form.special.separator
    examples = _examples(
        extents,
        tokens,
        np.full(extents.total, form.token_types["bidirectional"]),
        extents.within,
        steps.bidirectional(extents.lengths),
        inner[asked] - (1 if shifted else 0),
        labels[asked],
        weights,
    )
    return Predictions(examples, of_text[asked])


def sentinel_predictions(
    texts: TokenizedTexts, form: SequenceForm, members: Integers, hidden: np.ndarray
) -> Predictions:
    """Examples ``CLS text SEP BOS sentinel``, one for each hidden token: the first sentinel stands in its place.

    The sentinel of the target block predicts the token, as that of a span of one token does in training.

    Args:
        members: int64 (m,), the text of each example.
        hidden: bool (tokens of all examples,), special symbols not counted: one token of each example.
    """
    of_text, lengths = _tokens_of(texts, members)
    sources = lengths + 2
    extents = Extents(sources + 2)
    labels = texts.tokens[of_text]
    tokens = np.full(extents.total, form.special.begin)
    tokens[ranges(extents.starts + 1, lengths)] = np.where(hidden, form.special.first_sentinel, labels)
    tokens[extents.starts + sources - 1] = form.special.separator
    tokens[extents.stops - 1] = form.special.first_sentinel
    targets = np.full_like(sources, 2)
    examples = _examples(
        extents,
        tokens,
        np.where(extents.within < sources.repeat(extents.lengths), SOURCE, TARGET),
        extents.within,
        steps.seq2seq(sources, targets),
        extents.stops - 1,
        labels[hidden],
        None,
    )
    return Predictions(examples, of_text[hidden])


def ordered_predictions(
    texts: TokenizedTexts,
    form: SequenceForm,
    members: Integers,
    order: Integers,
    mask: str,
    weights: np.ndarray | None = None,
) -> Predictions:
    """Examples that predict each scored token from the tokens that appear before it.

    A query for each token asks, or a [MASK] at its position that no other token sees: behind CLS from left to right,
    before SEP from right to left. SEP and CLS of a query stream are given: its sequences always have them.

    Args:
        members: int64 (m,), the text of each example.
        order: int64 (tokens of all examples,), when each token appears, from 1 on; 0 for context of a query stream that
            is given from the start.
        mask: "left_to_right" or "right_to_left", which names the token types and the special symbol of a [MASK] scheme.
        weights: float64 (N,), of the predictions; None for 1 each.
    """
    of_text, lengths = _tokens_of(texts, members)
    asked = texts.scored[of_text]
    if form.query_stream:
        return _stream_predictions(texts, form, members, order, asked, weights)
    leftward = mask == "right_to_left"
    special = form.special.separator if leftward else form.special.begin
    plain = Extents(lengths + 1)  # the text and its special symbol
    inner = ranges(plain.starts + (0 if leftward else 1), lengths)
    tokens, appears = np.full(plain.total, special), np.full(plain.total, GIVEN)
    tokens[inner], appears[inner] = texts.tokens[of_text], order
    positions = plain.within + (1 if leftward else 0)
    copied = inner[asked]
    copies = plain.counts(copied)
    extents = Extents(plain.lengths + copies)
    of_copies = ranges(extents.starts + plain.lengths, copies)
    own = np.ones(extents.total, dtype=bool)
    own[of_copies] = False
    all_tokens, all_positions = np.full(extents.total, form.special.mask), np.empty(extents.total, dtype=np.int64)
    all_tokens[own], all_positions[own], all_positions[of_copies] = tokens, positions, positions[copied]
    examples = _examples(
        extents,
        all_tokens,
        np.full(extents.total, form.token_types[mask]),
        all_positions,
        steps.masked_copies(appears, copied, plain.lengths),
        of_copies,
        texts.tokens[of_text[asked]],
        weights,
    )
    return Predictions(examples, of_text[asked])


def target_predictions(texts: TokenizedTexts, form: SequenceForm) -> Predictions:
    """Examples whose tokens predict the next one: the context is the source block, what is scored the target block."""
    each = [texts.tokens[a:b] for a, b in zip(texts.extents.starts, texts.extents.stops, strict=True)]
    sources, targets = zip(*((t[:k], t[k:]) for t, k in zip(each, texts.given.tolist(), strict=True)), strict=True)
    made = next_token_examples(OBJECTIVE, sources, targets, form.special)
    counts = made.target_counts[TOKEN]
    kept = np.ones(counts.sum(), dtype=bool)
    kept[np.cumsum(counts) - 1] = False  # the separator behind each text is not scored
    own = made.with_targets(TOKEN, made.targets[TOKEN][kept], counts - 1)
    return Predictions(own, np.flatnonzero(texts.scored))


def causal_predictions(texts: TokenizedTexts, form: SequenceForm) -> Predictions:
    """Examples ``CLS text`` that are read from left to right and whose tokens predict the next one."""
    extents = Extents(texts.extents.lengths + 1)
    inner = ranges(extents.starts + 1, texts.extents.lengths)
    tokens = np.full(extents.total, form.special.begin)
    tokens[inner] = texts.tokens
    scored = texts.scored
    examples = _examples(
        extents,
        tokens,
        np.full(extents.total, FIRST),
        extents.within,
        steps.left_to_right(extents.lengths),
        inner[scored] - 1,
        texts.tokens[scored],
        None,
    )
    return Predictions(examples, np.flatnonzero(scored))


def _stream_predictions(
    texts: TokenizedTexts,
    form: SequenceForm,
    members: Integers,
    order: Integers,
    asked: np.ndarray,
    weights: np.ndarray | None,
) -> Predictions:
    """Examples with a query stream; each token appears at its step of ``order``, SEP and CLS are given."""
    of_text, lengths = _tokens_of(texts, members)
    extents = Extents(lengths + 2)
    inner, labels = ranges(extents.starts, lengths), texts.tokens[of_text]
    tokens, appears = np.empty(extents.total, dtype=np.int64), np.full(extents.total, GIVEN)
    tokens[inner], appears[inner] = labels, order
    tokens[extents.stops - 2], tokens[extents.stops - 1] = form.special.separator, form.special.begin
    token_types = np.full(extents.total, FIRST_TYPE)
    token_types[extents.stops - 1] = CLS_TYPE
    visible = steps.permutation(appears, extents.lengths)
    examples = _examples(
        extents, tokens, token_types, extents.within, visible, inner[asked], labels[asked], weights, stream=True
    )
    return Predictions(examples, of_text[asked])


def _tokens_of(texts: TokenizedTexts, members: Integers) -> tuple[Integers, Integers]:
    """Indices among all tokens of the texts ``members``, one text after another, and the texts' lengths, (m,)."""
    lengths = texts.extents.lengths[members]
    return ranges(texts.extents.starts[members], lengths), lengths


def _examples(
    extents: Extents,
    tokens: Integers,
    token_types: Integers,
    positions: Integers,
    visible: Steps,
    output_indices: Integers,
    labels: Integers,
    weights: np.ndarray | None,
    stream: bool = False,
) -> Examples:
    """Examples of flat arrays; ``output_indices`` (N,) count over all examples."""
    counts = extents.counts(output_indices)
    within = output_indices - extents.starts.repeat(counts)
    return Examples(
        objectives=[OBJECTIVE] * len(extents),
        lengths=extents.lengths,
        tokens=tokens,
        positions=positions,
        token_types=token_types,
        steps=visible,
        targets={TOKEN: ExampleTargets(within[:, None], labels, weights)},
        target_counts={TOKEN: counts},
        query_stream=np.full(len(extents), int(stream)),
    )
