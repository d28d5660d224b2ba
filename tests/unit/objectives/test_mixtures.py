"""Weighted lists of objectives: the notation of ``--objectives``, shares, and what is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from docs.examples.word_lengths import WordLengthHead, WordLengths
from tests.support.rates import assert_rate
from unified.errors import UnifiedError
from unified.objectives import (
    DEFAULT_FINETUNING,
    DEFAULT_PRETRAINING,
    Mixture,
    parse_objectives,
)
from unified.objectives.t5 import RandomSpans
from unified.objectives.unilm import Bidirectional, LeftToRight, Seq2Seq


@dataclass(frozen=True)
class Own(LeftToRight):
    """An objective from outside the library."""

    name: ClassVar[str] = "own"
    x: int = 0


@dataclass(frozen=True, kw_only=True)
class Demanding(LeftToRight):
    """An objective whose setting has no default."""

    x: int


@dataclass(frozen=True)
class NotAnObjective:
    x: int = 0


class OtherHead(WordLengthHead):
    """Another head of the same name."""


@dataclass(frozen=True)
class OtherLengths(WordLengths):
    """The documentation's example with another head."""

    name: ClassVar[str] = "other"
    own_heads: ClassVar[Mapping[str, type[WordLengthHead]]] = {"word_length": OtherHead}


def test_default_mixtures():
    mixture = parse_objectives(DEFAULT_PRETRAINING)
    assert mixture.names == ("bidirectional", "seq2seq", "left_to_right", "right_to_left")
    assert mixture.weights == pytest.approx((1 / 3, 1 / 3, 1 / 6, 1 / 6))
    assert not mixture.paired
    assert parse_objectives(DEFAULT_FINETUNING).paired


def test_shares_of_a_mixture():
    mixture = parse_objectives(DEFAULT_PRETRAINING)
    uniforms = np.random.default_rng(13).random(120_000)
    chosen = mixture.choose(uniforms)
    assert chosen.shape == (120_000,) and chosen.dtype == np.int64
    for index, weight in enumerate((1 / 3, 1 / 3, 1 / 6, 1 / 6)):
        assert_rate((chosen == index).sum(), len(chosen), weight)
    assert mixture.choose(np.array([0.0, 0.3333, 0.3334, 0.6667, 0.84, np.nextafter(1, 0)])).tolist() == [
        0,
        0,
        1,
        2,
        3,
        3,
    ]
    assert parse_objectives("seq2seq,left_to_right").choose(np.array([0.0, 0.5])).tolist() == [0, 1]
    assert parse_objectives("seq2seq").choose(uniforms[:50]).tolist() == [0] * 50


def test_full_notation():
    mixture = parse_objectives(
        " bidirectional : 2,seq2seq(mask_share=0.2, whole_words = True):2 , left_to_right,"
        f"{__name__}:Own(x=-3):.5,right_to_left:0"
    )
    assert mixture.objectives == (
        Bidirectional(),
        Seq2Seq(mask_share=0.2, whole_words=True),
        LeftToRight(),
        Own(x=-3),
    )
    assert mixture.ratios == (2, 2, 1, 0.5)
    assert str(mixture) == (
        f"bidirectional:2,seq2seq(whole_words=True, mask_share=0.2):2,left_to_right:1,{__name__}:Own(x=-3):0.5"
    )


@pytest.mark.parametrize(
    "text",
    [
        DEFAULT_PRETRAINING,
        DEFAULT_FINETUNING,
        "target_cloze(max_predictions=48):0.1,target_next:0.7",
        f"{__name__}:Own:3",
        "seq2seq():1e-9",
    ],
)
def test_a_mixture_is_read_back_from_its_string(text):
    mixture = parse_objectives(text)
    assert parse_objectives(str(mixture)) == mixture
    assert str(parse_objectives(str(mixture))) == str(mixture)


def test_two_objectives_of_one_kind():
    """Each has its name, which is kept by the mixture's string; the kind's own name is left out there."""
    text = (
        f"a=random_spans:1, b = random_spans(noise_density=0.5, mean_span=32):.5, random_spans, c={__name__}:Own(x=1):2"
    )
    mixture = parse_objectives(text)
    assert mixture.names == ("a", "b", "random_spans", "c") == mixture.loss_names
    assert mixture.objectives[:3] == (RandomSpans(), RandomSpans(0.5, mean_span=32), RandomSpans())
    assert mixture.ratios == (1, 0.5, 1, 2) and dict(mixture)["c"] == Own(x=1)
    assert str(mixture) == (
        f"a=random_spans:1,b=random_spans(noise_density=0.5, mean_span=32):0.5,random_spans:1,c={__name__}:Own(x=1):2"
    )
    assert parse_objectives(str(mixture)) == mixture != parse_objectives(str(mixture).replace("a=", "d="))
    assert parse_objectives("left_to_right=left_to_right") == parse_objectives("left_to_right")
    assert parse_objectives("x=bert, bert:0").loss_names == ("x", "x_next_sentence")


def test_weight_zero_removes_an_objective():
    mixture = parse_objectives("seq2seq:1,target_cloze:0,bidirectional:0.0")
    assert mixture.names == ("seq2seq",) and mixture.weights == (1.0,)


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "list of objectives is empty; the objectives are bidirectional"),
        ("  ", "list of objectives is empty"),
        (",", "list of objectives is empty"),
        ("seq2seq,", "nothing stands on one side of a comma"),
        ("seq2seq,,left_to_right", "nothing stands on one side of a comma"),
        pytest.param(",".join(["seq2seq:0"] * 1001), "objectives: 1,001 are listed; at most 1,000 may be", id="many"),
        ("seq2sec", r"no such objective \(did you mean 'seq2seq'\?\)$"),
        ("seq2sec:2", "did you mean 'seq2seq'"),
        ("xyz(a=1)", "no such objective; known are"),
        ("seq2seq:-1", "the weight must be a finite number of at least 0, got -1"),
        ("seq2seq:nan", "finite number of at least 0, got nan"),
        ("seq2seq:inf", "finite number"),
        ("seq2seq:two", "the weight after the colon must be a number, got 'two'"),
        ("seq2seq:", "weight after the colon must be a number, got ''"),
        ("seq2seq():", "weight after the colon must be a number, got ''"),
        ("seq2seq:1:2", "must be a number, got '1:2'"),
        ("seq2seq:0", "every objective has weight 0"),
        ("seq2seq:0,left_to_right:0", "every objective has weight 0"),
        (
            "seq2seq,left_to_right,seq2seq(mask_share=0.3)",
            "two objectives are called seq2seq; give each a name of its own, as in other=seq2seq",
        ),
        ("seq2seq:0,seq2seq", "two objectives are called seq2seq"),
        (
            "seq2seq(mask_shar=0.2)",
            r"no setting 'mask_shar' \(did you mean 'mask_share'\?\); its settings are ngram_share",
        ),
        ("deshuffling(x=1)", "no setting 'x'; it has none"),
        ("seq2seq(mask_share=2)", "seq2seq: mask_share must be above 0 and at most 1, got 2"),
        ("seq2seq(0.2)", "settings must be name=value"),
        ("seq2seq(**{})", "settings must be name=value"),
        ("seq2seq(mask_share=)", "settings must be name=value"),
        ("seq2seq(mask_share 0.2)", "settings must be name=value"),
        ("seq2seq(mask_share=0.2)(ngram_max=3)", "settings must be name=value"),
        ("seq2seq(mask_share=0.2, mask_share=0.3)", "mask_share is set twice"),
        ("seq2seq(mask_share=open('x'))", "value of mask_share is not a Python literal"),
        ("seq2seq(mask_share=0.2", "not closed"),
        ("seq2seq)", "not opened"),
        ("seq2seq(mask_share='0.2)", "not closed"),
        ("seq2seq(mask_share=0.2)2", "'2' after the settings"),
        ("seq2seq,target_cloze", "target_cloze learn from source/target pairs, seq2seq from running text"),
        ("no.such.module:Class", r"module no.such.module cannot be imported \(No module named 'no'\)"),
        (f"{__name__}:Absent", "has no 'Absent'"),
        (f"{__name__}:test_full_notation", "test_full_notation is not a subclass of unified.objectives"),
        (f"{__name__}:NotAnObjective", "NotAnObjective is not a subclass of unified.objectives.contract.Objective"),
        (f"{__name__}:Demanding", r"the setting x has no default; write .*:Demanding\(x=…\)"),
        ("1:2", "objective '1:2': no such objective"),
        (
            "a=seq2seq,a=left_to_right",
            "two objectives are called a; give each a name of its own, as in other=left_to_right",
        ),
        (
            "docs.examples.suffix_objective:Suffix, docs.examples.suffix_objective:Suffix(share=0.3)",
            "two objectives are called suffix; .*, as in other=docs.examples.suffix_objective:Suffix$",
        ),
        (
            "bert, bert_next_sentence=seq2seq",
            "two losses are called bert_next_sentence; give the objectives other names",
        ),
        ("x=seq2seq, x_next_sentence=left_to_right", "two losses are called x_next_sentence"),
        ("a=seq2sec:2", r"objective 'a=seq2sec:2': no such objective \(did you mean 'seq2seq'"),
        ("a=b=seq2seq", r"expected \[name=\]type\[\(setting=value, …\)\]\[:weight\]"),
        ("a b=seq2seq", "expected .name=.type"),
        ("=seq2seq", "expected .name=.type"),
        ("a=", "expected .name=.type"),
        ("a=(mask_share=0.2)", "expected .name=.type"),
    ],
)
def test_bad_lists_are_refused_in_one_line(text, message):
    with pytest.raises(UnifiedError, match=message) as refusal:
        parse_objectives(text)
    assert "\n" not in str(refusal.value)


def test_a_mixture_made_by_hand_is_checked_too():
    with pytest.raises(UnifiedError, match="2 objectives but 1 weight"):
        Mixture((Seq2Seq(), LeftToRight()), (1.0,))
    with pytest.raises(UnifiedError, match="seq2seq: a weight must be a finite number of at least 0, got -2"):
        Mixture((Seq2Seq(),), (-2,))
    with pytest.raises(UnifiedError, match="the weights of seq2seq, left_to_right are too large to be added"):
        Mixture((Seq2Seq(), LeftToRight()), (1e308, 1e308))
    assert Mixture((Seq2Seq(), LeftToRight()), (8e307, 8e307)).weights == (0.5, 0.5)
    for objectives, ratios, names, message in (
        ((Seq2Seq(),), (1.0,), ("a", "b"), "1 objective but 2 names; give one name each"),
        (
            (Seq2Seq(),),
            (1.0,),
            ("a b:c",),
            "the name of an objective must be of letters, .*, got 'a b:c'",
        ),
        ((Seq2Seq(),), (1.0,), (3,), "the name of an objective must be of letters, digits and underscores, got 3"),
        (("seq2seq",), (1.0,), (), "an objective must be an instance of .*, got str 'seq2seq'; parse_objectives reads"),
        ((Seq2Seq,), (1.0,), (), "an objective must be an instance of a subclass of unified.objectives.Objective, got"),
        (Seq2Seq(), (1.0,), (), "objectives must be a tuple, got Seq2Seq"),
        ((Seq2Seq(),), 1.0, (), "ratios must be a tuple, got float 1.0"),
        ((Seq2Seq(),), (1.0,), "a", "names must be a tuple, got str 'a'"),
        ((Seq2Seq(),), ("2",), (), "seq2seq: a weight must be a finite number of at least 0, got '2'"),
    ):
        with pytest.raises(UnifiedError, match=f"^{message}"):
            Mixture(objectives, ratios, names)
    assert Mixture([Seq2Seq()], [2]).ratios == (2.0,)
    with pytest.raises(UnifiedError, match="no objective is listed"):
        Mixture((), ())
    with pytest.raises(UnifiedError, match="objectives: expected one text, got int 5"):
        parse_objectives(5)


def test_two_heads_of_one_name_are_refused():
    with pytest.raises(UnifiedError, match="word_lengths and other have different heads of the name 'word_length'"):
        Mixture((WordLengths(), OtherLengths()), (1.0, 1.0))
    assert Mixture((WordLengths(), WordLengths()), (1.0, 1.0), ("a", "b")).own_heads == {"word_length": WordLengthHead}


def test_a_checkpoint_does_not_choose_what_is_imported():
    with pytest.raises(UnifiedError, match="no checkpoint chooses .* --task unified_lm --objectives"):
        parse_objectives(f"{__name__}:Own", own_classes=False)
    assert parse_objectives(f"{__name__}:Own").objectives == (Own(),)


@pytest.mark.parametrize(
    "text, mask",
    [("left_to_right", "left_to_right"), ("left_to_right, other=left_to_right(ngram_share=0.5)", "left_to_right"),
     ("left_to_right, right_to_left", "bidirectional"), ("bert", "bidirectional")],
)  # fmt: skip
def test_texts_are_read_under_the_mask_that_all_objectives_share(text, mask):
    assert parse_objectives(text).mask == mask
