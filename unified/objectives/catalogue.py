"""The list of the library's objectives, and the mixtures that are learnt where nothing else is said."""

from __future__ import annotations

from unified.objectives.anna import Anna
from unified.objectives.bert import Bert
from unified.objectives.contract import Objective
from unified.objectives.spanbert import SpanBert
from unified.objectives.t5 import (
    BertStyle,
    Deshuffling,
    DropTokens,
    MassStyle,
    PrefixLM,
    RandomSpans,
    ReplaceSpans,
)
from unified.objectives.unilm import Bidirectional, LeftToRight, RightToLeft, Seq2Seq, TargetCloze, TargetNext
from unified.objectives.xlnet import XLNet

#: Every objective of the library by its name. One that joins the library is a class in this package and its name here;
#: one of another package needs no entry, it is named by its import path (docs/how-to/extending.md).
OBJECTIVES: dict[str, type[Objective]] = {
    objective_class.name: objective_class
    for objective_class in (
        *(Bidirectional, LeftToRight, RightToLeft, Seq2Seq, TargetCloze, TargetNext),
        *(Bert, SpanBert, XLNet, Anna),
        *(PrefixLM, BertStyle, Deshuffling, MassStyle, ReplaceSpans, DropTokens, RandomSpans),
    )
}

#: UniLM's mixture [UniLM, sec. 2.4]: a third, a third, a sixth and a sixth of the examples.
DEFAULT_PRETRAINING = "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"
DEFAULT_FINETUNING = "target_cloze"
