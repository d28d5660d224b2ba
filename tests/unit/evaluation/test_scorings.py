"""Ways of scoring: what they draw, the sequences by which they ask, their costs, names and refusals."""

import sys

import numpy as np
import pytest

from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM, masks
from unified.errors import UnifiedError
from unified.evaluation.names import SENTENCES
from unified.evaluation.patterns import Sampling, in_orders, masked_at_random, masked_counts, orders, spaced_counts
from unified.evaluation.predictions import OBJECTIVE, SequenceForm, TokenizedTexts
from unified.evaluation.scorings import (
    SCORINGS,
    learnt_scorings,
    require_scorable,
    scorings_named,
    unlearnt,
)
from unified.evaluation.token_scores import token_scores
from unified.objectives.contract import SCORINGS as DECLARED

SAMPLING = Sampling(draws=2, seed=5)


def test_masked_counts_are_those_of_the_published_code():
    assert spaced_counts(3, 8, 4).tolist() == [3, 5, 7, 1]
    assert sorted(spaced_counts(5, 8, 8).tolist()) == list(range(1, 9))
    assert masked_counts(0, SAMPLING).tolist() == []


@pytest.mark.parametrize(("length", "given"), [(1, 0), (7, 0), (9, 4), (3, 3)])
def test_a_constant_loss_of_masked_tokens_adds_up_to_that_of_the_text(length, given):
    """Each draw hides as many tokens as it says, never the context, and weighs length / hidden tokens."""
    drawn = masked_at_random(length, given, Sampling(5, seed=2))
    hidden = drawn.hidden.reshape(-1, length)
    assert not hidden[:, :given].any() and drawn.weights.sum() == pytest.approx(length - given)
    assert hidden.sum(1).tolist() == masked_counts(length - given, Sampling(5, seed=2)).tolist()


@pytest.mark.parametrize(
    ("writes", "mask", "form"),
    [
        ("cloze", "bidirectional", (False, False, False)),
        ("next", "bidirectional", (False, True, False)),
        ("left_to_right", "bidirectional", (False, False, False)),
        ("permutation", "bidirectional", (True, False, False)),
        ("nothing", "bidirectional", (False, False, False)),
        ("nothing", "left_to_right", (False, False, True)),
        ("next", "left_to_right", (False, True, False)),
    ],
)
def test_the_form_of_sequences_follows_the_decoding_scheme(writes, mask, form):
    lm = UnifiedLM(model(), vocabulary(), None, writes, None)
    found = SequenceForm.of(lm, writes, mask)
    assert (found.query_stream, found.target_next, found.causal_next) == form
    assert found.special == lm.special and set(found.token_types) == set(masks.TEXT_MASKS)


@pytest.mark.parametrize("scoring", SCORINGS)
@pytest.mark.parametrize("writes", ["nothing", "left_to_right", "next", "permutation"])
def test_examples_hold_integers_of_each_scored_token(writes, scoring):
    lm = UnifiedLM(model(), vocabulary(), None, writes, None)
    texts = TokenizedTexts.of([np.array([5, 9, 4, 12]), np.array([6, 8])], [1, 0])
    made = SCORINGS[scoring].predictions(texts, SequenceForm.of(lm, writes, "bidirectional"), Sampling(8))
    examples, own = made.examples, made.examples.targets["token"]
    steps = examples.steps.query_step, examples.steps.key_start, examples.steps.key_stop
    for array in (examples.tokens, examples.positions, examples.token_types, own.output_indices, own.labels, *steps):
        assert array.dtype == np.int64
    assert own.labels.tolist() == texts.tokens[made.tokens].tolist()
    assert examples.lengths.sum() == len(examples.tokens) and {*examples.objectives} == {OBJECTIVE}
    assert set(made.tokens.tolist()) == {1, 2, 3, 4, 5}


def test_sequences_of_each_form_have_their_special_symbols():
    """One example of each scoring, its tokens and token types; M is [MASK], and s the first sentinel."""
    symbols = {0: "CLS", 2: "SEP", 5: "a", 9: "b"}

    def shown(scoring, writes, mask="bidirectional"):
        lm = UnifiedLM(model(), vocabulary(), None, writes, None)
        names = symbols | {lm.special.mask: "M", lm.special.first_sentinel: "s"}
        form = SequenceForm.of(lm, writes, mask)
        first = (
            SCORINGS[scoring].predictions(TokenizedTexts.of([np.array([5, 9])]), form, Sampling(1)).examples.split()[0]
        )
        return " ".join(names[token] for token in first.tokens.tolist()), first.token_types.tolist()

    assert shown("left_to_right", "nothing", "left_to_right") == ("CLS a b", [0, 0, 0])
    assert shown("left_to_right", "next") == ("CLS SEP CLS a b", [4, 4, 5, 5, 5])
    assert shown("left_to_right", "cloze") == ("CLS a b M M", [2] * 5)
    assert shown("right_to_left", "cloze") == ("a b SEP M M", [3] * 5)
    assert shown("pseudo_likelihood", "cloze") == ("CLS M b SEP", [0] * 4)
    assert shown("shifted", "nothing") == ("CLS M b SEP", [0] * 4)
    assert shown("infilling", "next") == ("CLS s b SEP CLS s", [4] * 4 + [5] * 2)
    for scoring in ("left_to_right", "pseudo_likelihood", "permutation", "diffusion"):
        assert shown(scoring, "permutation") == ("a b SEP CLS", [0, 0, 0, 2])


@pytest.mark.parametrize("scoring", SCORINGS)
def test_the_cost_of_a_scoring_is_the_most_tokens_that_a_form_reads(scoring):
    read = []
    for writes, mask in (("cloze", ""), ("nothing", "left_to_right"), ("next", ""), ("permutation", "")):
        lm = UnifiedLM(model(), vocabulary(), None, writes, None)
        texts, form = TokenizedTexts.of([np.array([5, 9, 4, 12, 7])], [1]), SequenceForm.of(lm, writes, mask)
        read.append(int(SCORINGS[scoring].predictions(texts, form, Sampling(3)).examples.lengths.sum()))
    cost = SCORINGS[scoring].cost(5, 4, 3)
    # What is read in one pass is counted with room for the special symbols of every form.
    assert cost == max(read) + (2 if scoring.endswith(("to_right", "to_left")) else 0), read


def test_what_is_drawn_is_what_earlier_versions_drew():
    """Scores that are compared with those of an earlier run have its draws. These were drawn once."""
    assert Sampling() == Sampling(draws=16, seed=1)
    assert orders(5, Sampling(2, 3)).tolist() == [[0, 2, 4, 1, 3], [0, 4, 1, 3, 2]]
    assert masked_counts(9, Sampling(4, 3)).tolist() == [9, 2, 5, 7]
    assert {masked_counts(4, Sampling(1, seed)).item() for seed in range(60)} == {1, 2, 3, 4}


def test_texts_in_flat_arrays_are_integers_even_where_there_are_none():
    for texts, given in (([np.array([5, 6])], None), ([np.array([5, 6])], [1]), ([], None), ([], [])):
        found = TokenizedTexts.of(texts, given)
        assert {found.tokens.dtype, found.extents.lengths.dtype, found.given.dtype} == {np.dtype(np.int64)}
        assert found.given.tolist() == (given or [0] * len(texts))
        assert found.scored.tolist() == [index >= sum(found.given) for index in range(len(found.tokens))]


def test_every_order_asks_for_every_token_once_behind_all_that_it_sees():
    drawn = in_orders(4, 1, Sampling(3))
    hidden, asked = drawn.hidden.reshape(3, 3, 4), drawn.asked.reshape(3, 3, 4)
    assert (asked.sum(1) == [0, 1, 1, 1]).all() and (asked <= hidden).all()
    assert hidden.sum(2).tolist() == [[3, 2, 1]] * 3
    assert len({tuple(order) for order in orders(6, Sampling(16)).tolist()}) > 10


@pytest.mark.parametrize(
    ("writes", "objectives", "learnt"),
    [
        ("nothing", "", {"pseudo_likelihood"}),
        ("next", "", {"left_to_right"}),
        ("left_to_right", "bidirectional:2,right_to_left", {"pseudo_likelihood", "right_to_left"}),
        ("nothing", "bert(next_sentence=False, left_to_right=True)", {"left_to_right"}),
        ("next", "random_spans", {"infilling"}),
        ("next", "mass_style", set()),
        ("next", "my.module:Mine", {"left_to_right"}),
        ("next", "my.module:Mine:2,right_to_left,left_to_right:0", {"right_to_left"}),
    ],
)
def test_a_scoring_that_nothing_has_taught_is_told(writes, objectives, learnt):
    lm = UnifiedLM(model(), vocabulary(), None, writes, None)
    lm.objectives = objectives
    notes = {name: unlearnt(lm, scoring) for name, scoring in SCORINGS.items()}
    assert {name for name, note in notes.items() if note is None} == learnt
    known = "is not known (what my.module:Mine teaches is not read" if ":Mine" in objectives else objectives or writes
    assert all(known in note and repr(name) in note for name, note in notes.items() if note)


def test_what_a_model_whose_objectives_nobody_names_has_learnt_follows_from_how_it_writes():
    learnt = {
        "left_to_right": "left_to_right right_to_left pseudo_likelihood",
        "cloze": "left_to_right right_to_left pseudo_likelihood",
        "next": "left_to_right",
        "permutation": "left_to_right right_to_left pseudo_likelihood permutation",
        "nothing": "pseudo_likelihood",
    }
    found = {
        writes: learnt_scorings(UnifiedLM(model(positions="relative"), vocabulary(), None, writes, None))
        for writes in learnt
    }
    assert {writes: " ".join(names) for writes, names in found.items()} == learnt


def test_no_class_is_imported_because_a_checkpoint_names_it(tmp_path, monkeypatch):
    (tmp_path / "named_by_a_checkpoint.py").write_text("raise SystemExit")
    monkeypatch.syspath_prepend(tmp_path)
    lm = UnifiedLM(model(), vocabulary(), None, "next", None)
    lm.objectives = "named_by_a_checkpoint:Mine"
    assert learnt_scorings(lm) == ("left_to_right",)
    assert len(token_scores(lm, [np.array([5, 6])], SCORINGS["left_to_right"])) == 1
    assert "named_by_a_checkpoint" not in sys.modules


def test_names_of_scorings():
    assert [one.name for one in scorings_named("both")] == ["left_to_right", "right_to_left"]
    assert [one.name for one in scorings_named("shifted + diffusion")] == ["shifted", "diffusion"]
    with pytest.raises(UnifiedError, match=r"no scoring 'shiftd' \(did you mean 'shifted'\?\); there are left_to"):
        scorings_named("both+shiftd")
    with pytest.raises(UnifiedError, match="'both\\+left_to_right' has left_to_right twice"):
        scorings_named("both+left_to_right")
    assert tuple(SCORINGS) == tuple(SENTENCES) == DECLARED
    assert [name for name, scoring in SCORINGS.items() if scoring.draws] == ["permutation", "diffusion"]
    assert [name for name, scoring in SCORINGS.items() if scoring.from_one_side] == ["left_to_right"]
    assert [name for name, scoring in SCORINGS.items() if not scoring.by_queries] == ["shifted", "infilling"]
    assert [name for name, scoring in SCORINGS.items() if scoring.by_sentinels] == ["infilling"]


@pytest.mark.parametrize(
    ("changes", "writes", "scoring", "message"),
    [
        ({"token_head": "none"}, "nothing", "left_to_right", "no token head"),
        ({"sublayers": "entity,feed_forward"}, "nothing", "diffusion", "named entities"),
        ({"positions": "relative", "attn_type": "uni"}, "permutation", "pseudo_likelihood", "attn_type 'uni'"),
        ({"positions": "relative"}, "permutation", "infilling", "the sentinel before it, and the model predicts by"),
        ({"token_types": 5}, "nothing", "infilling", "needs 6 token types and a sentinel; the model has 5 and its"),
        ({"token_types": 2}, "nothing", "infilling", "needs 6 token types and a sentinel; the model has 2 and its"),
    ],
)
def test_what_a_model_cannot_score_is_refused(changes, writes, scoring, message):
    lm = UnifiedLM(model(**changes), vocabulary(), None, writes, None)
    with pytest.raises(UnifiedError, match=message):
        require_scorable(lm, SCORINGS[scoring])
    with pytest.raises(UnifiedError, match=message):
        token_scores(lm, [np.array([5, 6])], SCORINGS[scoring])


def test_an_ensemble_scores_no_texts():
    members = [UnifiedLM(model(), vocabulary(), None, "nothing", None) for _ in range(3)]
    one = UnifiedLM(members[0].model, vocabulary(), None, "nothing", None, others=members[1:])
    with pytest.raises(UnifiedError, match="^texts are scored by a single model; this is an ensemble of 3$"):
        require_scorable(one, SCORINGS["pseudo_likelihood"])
