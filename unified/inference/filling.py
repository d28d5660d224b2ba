"""Models that predict hidden tokens: the text with ``<mask>`` as a batch, and the best symbols for each."""

from __future__ import annotations

import numpy as np
import torch

from unified.arguments import require_integer, require_text
from unified.data.collate import collate
from unified.data.example import Batch, Example
from unified.data.targets import BOUNDARY, TOKEN, ExampleTargets
from unified.data.vocabulary import MASK, Vocabulary
from unified.errors import UnifiedError
from unified.generation import SCHEMES
from unified.inference.sequences import Codec
from unified.inference.trained_model import TrainedModel
from unified.masks import TEXT_MASKS, permutation
from unified.model import TransformerConfig
from unified.objectives.spans import hidden_ranges
from unified.objectives.xlnet import CLS_TYPE
from unified.tokenization import Tokenizer


class FillingModel(TrainedModel):
    """A trained model that predicts hidden tokens.

    Attributes:
        writes: name of its decoding scheme, see :data:`unified.generation.SCHEMES`, or "nothing".
    """

    writes: str

    @torch.no_grad()
    def fill_mask(self, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
        """The ``top`` most probable symbols for each ``<mask>`` in ``text`` with their probabilities, best first.

        The text is read in both directions, or under the mask of a model that was trained in one direction alone. A
        permutation language model knows no ``<mask>``: it is asked by a query at each of them, and nothing sees what
        stands there.

        Raises:
            UnifiedError: this is not one text, there is no ``<mask>`` in it, it is longer than the position table, or
                ``top`` is below 1.
        """
        require_text("text", text)
        self._require_one_model("fill_mask")
        self.model.head(TOKEN)  # refuses a model without one, before the text is looked at
        batch = self._masked(text, self.writes in SCHEMES and SCHEMES[self.writes].query_stream)
        states = self.model.hidden(batch, output_indices=batch.targets[TOKEN].output_indices[:, 0])
        return self._best(self.model.logits(states), top)

    @torch.no_grad()
    def fill_span(self, text: str, top: int = 5) -> list[list[tuple[str, float]]]:
        """Fills each span of ``<mask>`` from the tokens before and behind it alone, in the form of :meth:`fill_mask`.

        This is SpanBERT's boundary objective; its head looks at nothing within the span.

        Raises:
            UnifiedError: as :meth:`fill_mask`; or the model has no span-boundary head, a span is longer than its reach,
                or stands at an end of the text.
        """
        require_text("text", text)
        self._require_one_model("fill_span")
        batch = self._masked(text, query_stream=False)
        tokens, states = batch.tokens[0], self.model.hidden(batch)[0]
        around, distances = around_runs(tokens, self.special.mask, self.model.config.boundary_offsets)
        before, behind = (states.index_select(0, side) for side in around.to(self.device).unbind(1))
        head = self.model.head(BOUNDARY)
        return self._best(head(before, behind, distances.to(self.device), self.model.symbols), top)

    def _masked(self, text: str, query_stream: bool) -> Batch:
        return masked_batch(text, self.model.config, self.tokenizer, self.vocabulary, query_stream).to(self.device)

    def _best(self, logits: torch.Tensor, top: int) -> list[list[tuple[str, float]]]:
        """The ``top`` symbols of each row of (N, V), best first, with their probabilities."""
        require_integer("top", top, 1)
        scored = int((~self.model.symbols.left_out).sum())
        best = logits.float().softmax(-1).topk(min(top, scored))
        return [
            [(self.vocabulary.symbols[i], p) for i, p in zip(row_ids, row, strict=True)]
            for row_ids, row in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]


def masked_batch(
    text: str,
    config: TransformerConfig,
    tokenizer: Tokenizer,
    vocabulary: Vocabulary,
    query_stream: bool,
) -> Batch:
    """CLS text SEP, under the model's mask; or text SEP CLS, as XLNet has it, which does not see its masks.

    Args:
        text: with at least one ``<mask>``, each of which is a target.
        query_stream: as XLNet has it.

    Raises:
        UnifiedError: there is no ``<mask>``, or the text is longer than the position table.
    """
    special, (first, *behind) = vocabulary.special, text.split(MASK)
    if not behind:
        raise UnifiedError(f"a text with at least one {MASK} is needed, got {text[:60]!r}")
    codec = Codec.for_model(config, tokenizer, vocabulary, config.position_limit)
    ids = codec.encode([first])[0].tolist()
    for piece in behind:
        ids += [special.mask, *_behind_mask(piece, codec)]
    ids = [*ids, special.separator, special.begin] if query_stream else [special.begin, *ids, special.separator]
    if len(ids) > config.position_limit:
        raise UnifiedError(
            f"the text has {len(ids)} tokens with its special symbols, the model takes {config.max_positions}"
        )
    tokens = np.array(ids, dtype=np.int64)
    hidden = np.flatnonzero(tokens == special.mask)
    if query_stream:
        token_types, mask = np.zeros_like(tokens), permutation((tokens == special.mask).astype(np.int64))
        token_types[-1] = CLS_TYPE
    else:
        token_types = np.full_like(tokens, codec.token_types[0])
        mask = TEXT_MASKS[codec.mask](len(tokens))
    example = Example(
        objective="masked",
        tokens=tokens,
        positions=np.arange(len(tokens)),
        token_types=token_types,
        mask=mask,
        targets={TOKEN: ExampleTargets.at(hidden, tokens[hidden])},
        query_stream=query_stream,
    )
    return collate([[example]], None, (example.objective,), special.pad)


#: A character that no tokenizer joins with what follows, and none but those of whole words with a word.
_IDEOGRAPH = "\u3400"


def _behind_mask(text: str, codec: Codec) -> list[int]:
    """Ids of a text that follows ``<mask>``: a word begins with it only where white space stands there.

    Tokenizers of sentencepiece put a space before every text, and those of byte pairs none. So it is encoded behind an
    ideograph; if that is no token of its own, by itself.
    """
    tokens, characters = codec.encode_offsets([_IDEOGRAPH + text])[0]
    begins, ends = characters.T
    if ((begins < 1) & (ends > 1)).any():
        return codec.encode([text])[0].tolist()
    return tokens[begins >= 1].tolist()


def around_runs(tokens: torch.Tensor, mask: int, reach: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Neighbours of each ``<mask>`` and its distance from the beginning of its run, as SpanBERT's head reads them.

    Args:
        tokens: int64 (T,), of a text between special symbols.
        mask: id of ``<mask>``.
        reach: of the head, the longest run that it predicts; 0 where it has no limit.

    Returns:
        int64 (N, 2), the indices before and behind the run of each ``<mask>``, and int64 (N,), on the CPU.

    Raises:
        UnifiedError: a run is longer than the reach, or stands at an end of the text.
    """
    first, lengths = hidden_ranges((tokens == mask).cpu().numpy())
    if reach and lengths.max() > reach:
        raise UnifiedError(f"a run of {lengths.max()} {MASK} is longer than the span-boundary head reaches: {reach}")
    if first[0] == 1 or first[-1] + lengths[-1] == len(tokens) - 1:
        raise UnifiedError(f"{MASK} at an end of the text has no neighbour there; give a token on both sides")
    inside = np.repeat(np.cumsum(lengths) - lengths, lengths)
    indices = np.stack([np.repeat(first - 1, lengths), np.repeat(first + lengths, lengths)], axis=1)
    return torch.from_numpy(indices), torch.from_numpy(np.arange(lengths.sum()) - inside)
