"""A small random language model over a small vocabulary, for tests of models and of generation."""

from __future__ import annotations

import numpy as np
import torch

from unified import masks
from unified.data.example import Example
from unified.data.targets import NEXT_SENTENCE, TOKEN, ExampleTargets
from unified.data.vocabulary import SpecialTokens, Vocabulary
from unified.generation import SCHEMES, CachedDecoder
from unified.model import TransformerConfig, UnifiedModel


def vocabulary(words: int = 12) -> Vocabulary:
    return Vocabulary([f"w{i}" for i in range(words)])


def model(words: int = 12, seed: int = 0, **changes) -> UnifiedModel:
    """Weights are drawn wide (deviation 0.3), so that predictions differ clearly from index to index."""
    torch.manual_seed(seed)
    shape = {"layers": 2, "width": 32, "heads": 4, "max_positions": 48, "initializer_range": 0.3}
    built = UnifiedModel.for_language(
        TransformerConfig(vocabulary_size=len(vocabulary(words)), **{**shape, **changes})
    ).eval()
    for parameter in built.parameters():  # biases too: zeros would hide mistakes
        parameter.data += 0.05 * torch.randn_like(parameter)
    return built


def decoder(scheme: str = "cloze", words: int = 12, seed: int = 0, **changes) -> CachedDecoder:
    return CachedDecoder(model(words, seed, **{**_of(scheme), **changes}), vocabulary(words).special, SCHEMES[scheme])


def _of(scheme: str) -> dict:
    """What a model must be to write so."""
    return {"positions": "relative"} if SCHEMES[scheme].query_stream else {}


def sources(
    lengths: list[int], words: int = 12, left: bool = False, width: int = 0, separator: bool = True, seed: int = 3
):
    """int64 (N, S): random words, the separator, padding on one side."""
    special = vocabulary(words).special
    generator = torch.Generator().manual_seed(seed)
    width = max(width, max(lengths) + int(separator))
    rows = torch.full((len(lengths), width), special.pad)
    for row, length in zip(rows, lengths, strict=True):
        tokens = torch.randint(4, 4 + words, (length,), generator=generator).tolist()
        tokens += [special.separator] if separator else []
        start = width - len(tokens) if left else 0
        row[start : start + len(tokens)] = torch.tensor(tokens)
    return rows


def next_logits(model: UnifiedModel, special: SpecialTokens, scheme: str, source: torch.Tensor, written: list[int]):
    """Logits (V,) of the next token by one full forward pass over one sentence, as the papers draw it."""
    source = source[source != special.pad].tolist()
    if scheme == "permutation":
        return _next_logits_by_query(model, [token for token in source if token != special.separator], written)
    if scheme == "left_to_right":
        given = [special.begin, *(token for token in source if token != special.separator)]
        tokens = [*given, *written, special.mask]
        types = [2] * len(tokens)
        mask = masks.left_to_right(len(tokens))
    else:
        given = [special.begin, *source]
        block = [*written, special.mask] if scheme == "cloze" else [special.begin, *written]
        tokens = given + block
        types = [4] * len(given) + [5] * len(block)
        mask = masks.seq2seq(len(given), len(block))
    indices = torch.arange(len(tokens))
    states = model.transformer(torch.tensor([tokens]), indices[None], torch.tensor([types]), masks.batch([mask]))
    return model.logits(states[0, -1:])[0]


def _next_logits_by_query(model: UnifiedModel, prompt: list[int], written: list[int]):
    """The prompt is context, what is written has an order, and one query stands at the next token."""
    tokens = [*prompt, *written]
    content = masks.permutation([masks.GIVEN] * len(prompt) + list(range(1, len(written) + 2)))
    stream = content.query_stream([len(tokens)])
    both = masks.AttentionMask(
        query_step=torch.cat([content.query_step[:-1], stream.query_step]),
        key_start=content.key_start[:-1],
        key_stop=content.key_stop[:-1],
        query_key=torch.tensor([*range(len(tokens)), masks.NO_KEY]),
    )
    indices = torch.arange(len(tokens) + 1)[None]
    tokens = torch.tensor([tokens], dtype=torch.long)
    states = model.transformer(tokens, indices, torch.zeros_like(indices), masks.batch([both]))
    return model.logits(states[0, -1:])[0]


#: Eight symbols: begin, padding, separator, unknown, mask and the words 5, 6, 7; small enough to enumerate all texts.
EIGHT = SpecialTokens(
    begin=0,
    pad=1,
    separator=2,
    unknown=3,
    mask=4,
    first_sentinel=8,
    sentinel_count=0,
    ordinary_start=5,
    ordinary_stop=8,
)


def eight_symbols(scheme: str = "cloze", seed: int = 0, **changes) -> CachedDecoder:
    """A decoder over :data:`EIGHT`."""
    torch.manual_seed(seed)
    shape = {"layers": 2, "width": 16, "heads": 2, "max_positions": 32, "initializer_range": 0.4}
    built = UnifiedModel.for_language(
        TransformerConfig(vocabulary_size=8, **{**shape, **_of(scheme), **changes})
    ).eval()
    return CachedDecoder(built, EIGHT, SCHEMES[scheme])


def example(objective: str, length: int, indices: list[int], is_next: int = -1) -> Example:
    """An example that predicts at `indices` the token behind the true one, and the next sentence where asked."""
    tokens = np.random.default_rng(length).integers(4, 16, length)
    types, predicted = np.zeros(length, int), np.array(indices, dtype=int)
    labels = (tokens[predicted] + 1) % 16
    targets = {TOKEN: ExampleTargets.at(predicted, labels)}
    if is_next >= 0:
        targets[NEXT_SENTENCE] = ExampleTargets.at(np.zeros(1, dtype=int), np.array([is_next]))
    return Example(objective, tokens, np.arange(length), types, masks.bidirectional(length), targets)
