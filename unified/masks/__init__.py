"""Who may attend to whom, in two integers per token.

Query ``i`` may attend to key ``j`` when both lie in the same document and ``key_rank[j] <= query_rank[i]``. Rank
``GIVEN`` (-1) means "shown from the start"; rank ``r >= 0`` means "becomes visible at step r". True means "may attend".

    from unified import masks
    mask = masks.seq2seq(source_length=4, target_length=3)
    mask.dense()         # bool (queries, keys)
    print(mask)          # the same as a picture

The rule can say exactly the masks whose rows are nested within a document (:func:`is_nested`). Tokens that are query
and key at once obey ``query_rank <= key_rank``; visibility is then transitive, so stacked layers leak nothing.

Letters: B rows, T queries, S keys. All vectors are int64.
"""

from unified.masks.builders import TEXT_MASKS, bidirectional, left_to_right, permutation, right_to_left, seq2seq
from unified.masks.constants import GIVEN, NO_KEY, PADDING
from unified.masks.mask import AttentionMask, structure_of
from unified.masks.packing import batch, pack
from unified.masks.pictures import plot
from unified.masks.recovery import from_dense, is_nested

__all__ = [
    "AttentionMask",
    "GIVEN",
    "NO_KEY",
    "PADDING",
    "TEXT_MASKS",
    "batch",
    "bidirectional",
    "from_dense",
    "is_nested",
    "left_to_right",
    "pack",
    "permutation",
    "plot",
    "right_to_left",
    "seq2seq",
    "structure_of",
]
