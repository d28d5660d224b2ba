"""Scores of texts against published models of transformers with random weights, read by a plain loop over tokens."""

import numpy as np
import pytest
import torch

from tests.support.published_models import published
from tests.support.tiny_models import decoder, model, vocabulary
from unified import UnifiedLM, masks
from unified.errors import UnifiedError
from unified.evaluation.patterns import Sampling, masked_counts, orders
from unified.evaluation.predictions import SequenceForm, TokenizedTexts
from unified.evaluation.scorings import (
    SCORINGS,
    longest_text,
)
from unified.evaluation.token_scores import label_log_probs, token_scores
from unified.generation import score
from unified.model import UnifiedModel
from unified.objectives.t5 import RandomSpans, ReplaceSpans
from unified.objectives.unilm import next_token_examples

SAMPLING = Sampling(draws=2, seed=5)
TEXTS = ["the cat sat on a mat .", "the dog sang", "a"]
#: XLNet's tokens are characters here.
SHORT = ["a mat", "on", "."]


def by_definition(peer, scoring: str, text: list[int], given: int = 0) -> list[float]:
    """Log-probability of each token behind the first ``given``, one forward pass of the published model for each."""
    special, stream, length = peer.lm.special, peer.lm.writes == "permutation", len(text)
    six = peer.lm.model.config.token_types == 6

    def asked(seen_by, index, types=0):
        """A pass in which token ``i`` of the text is seen if ``seen_by[i]``, as the text's tokens see each other."""
        hidden = [i for i in range(length) if not seen_by[i]]
        if stream:
            tokens, kinds = [*text, special.separator, special.begin], [0] * (length + 1) + [2]
            mask = torch.ones(length + 2, length + 2, dtype=torch.bool)
            mask[:, hidden] = False
            mask[hidden, hidden] = True  # a token that is hidden sees itself
            mask[index, index] = False
            return peer.log_probs(tokens, kinds, mask, index)[text[index]]
        tokens = [special.begin, *(special.mask if i in hidden else text[i] for i in range(length)), special.separator]
        mask = masks.bidirectional(len(tokens)).dense()
        at = index if scoring == "shifted" else index + 1
        return peer.log_probs(tokens, [0] * len(tokens), mask, at)[text[index]]

    def in_order(ranks, index):
        """The pass of the token at ``index``: the tokens of lower rank are seen, by those of higher rank."""
        if not stream:
            return asked([rank < ranks[index] for rank in ranks], index)
        tokens, kinds = [*text, special.separator, special.begin], [0] * (length + 1) + [2]
        step = torch.tensor([rank + 1 for rank in ranks] + [0, 0])
        mask = step[None] <= step[:, None]
        mask[index, index] = False
        return peer.log_probs(tokens, kinds, mask, index)[text[index]]

    def one_sided(index):
        if stream:
            ranks = [i - given if scoring == "left_to_right" else length - 1 - i for i in range(length)]
            return in_order([max(rank, -1) for rank in ranks], index)
        if scoring == "left_to_right":
            tokens = [special.begin, *text[:index], special.mask]
            mask, kind = masks.left_to_right(len(tokens)).dense(), 2
            return peer.log_probs(tokens, [kind if six else 0] * len(tokens), mask, index + 1)[text[index]]
        # What stands before the token is hidden from all: any symbol may stand there.
        tokens = [special.unknown] * (index + 1) + [special.mask, *text[index + 1 :], special.separator]
        mask = masks.right_to_left(len(tokens)).dense()
        return peer.log_probs(tokens, [3 if six else 0] * len(tokens), mask, index + 1)[text[index]]

    behind = range(given, length)
    if scoring in ("left_to_right", "right_to_left"):
        return [float(one_sided(index)) for index in behind]
    if scoring in ("pseudo_likelihood", "shifted"):
        return [float(asked([i != index for i in range(length)], index)) for index in behind]
    found = np.zeros(length)
    for ranks in orders(length - given, SAMPLING) if scoring == "permutation" else []:
        padded = [-1] * given + ranks.tolist()
        found[given:] += [float(in_order(padded, index)) / SAMPLING.draws for index in behind]
    if scoring == "diffusion" and given < length:
        counts = masked_counts(length - given, SAMPLING)
        for ranks, count in zip(orders(length - given, SAMPLING), counts, strict=True):
            seen = [True] * given + (ranks >= count).tolist()
            weight = (length - given) / count / SAMPLING.draws
            for index in (i for i in behind if not seen[i]):
                found[index] += weight * float(asked(seen, index))
    return found[given:].tolist()


@pytest.fixture(scope="module")
def peers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published")
    return {
        (kind, writes): published(kind, folder / f"{kind}-{writes}", writes=writes)
        for kind, writes in [("bert", "nothing"), ("roberta", "nothing"), ("unilm", "left_to_right"), ("xlnet", "")]
    }


@pytest.mark.parametrize("scoring", [name for name in SCORINGS if name != "infilling"])  # none of them has sentinels
@pytest.mark.parametrize("kind", ["bert", "roberta", "unilm", "xlnet"])
def test_every_scoring_is_what_its_definition_gives_with_a_published_model(peers, kind, scoring):
    peer = next(peer for (name, _), peer in peers.items() if name == kind)
    if kind == "xlnet" and scoring == "shifted":
        with pytest.raises(UnifiedError, match="query stream"):
            token_scores(peer.lm, [np.array([5])], SCORINGS[scoring])
        return
    texts = [peer.lm.encode(text) for text in (SHORT if kind == "xlnet" else TEXTS)]
    for given in (0, 1):
        found = token_scores(
            peer.lm, [np.array(text) for text in texts], SCORINGS[scoring], given=[given] * 3, sampling=SAMPLING
        )
        for text, own in zip(texts, found, strict=True):
            wanted = by_definition(peer, scoring, text, given)
            assert own.log_probs[:given].tolist() == [0.0] * given
            assert own.log_probs[given:].tolist() == pytest.approx(wanted, abs=1e-4 if kind == "xlnet" else 1e-9)


@pytest.mark.parametrize("changes", [{}, {"positions": "rotary", "attention_windows": "0,2", "token_types": 0}])
@pytest.mark.parametrize("scheme", ["left_to_right", "next"])
def test_left_to_right_gives_what_generation_gives(scheme, changes):
    asked = decoder(scheme, **changes)
    lm = UnifiedLM(asked.model, vocabulary(), None, scheme, None)
    texts = [[5, 9, 4, 12, 7], [6, 8]]
    found = token_scores(lm, [np.array(text) for text in texts], SCORINGS["left_to_right"], given=[2, 1])
    for text, own, given in zip(texts, found, (2, 1), strict=True):
        source = torch.tensor([[*text[:given], lm.special.separator]])
        wanted = score(asked, source, torch.tensor([text[given:]]))[0]
        assert own.log_probs[given:].tolist() == pytest.approx(wanted.tolist(), abs=1e-5)


@pytest.mark.parametrize("objective", [ReplaceSpans(), RandomSpans(mean_span=1.0)])
def test_infilling_asks_as_spans_of_one_token_are_learnt(objective, monkeypatch):
    """Examples are those of T5's objectives where the noise is one token; of their targets that token is kept."""
    words, text = vocabulary(), np.array([9, 5, 12, 7])
    lm = UnifiedLM(model(), words, None, "next", None)
    made = SCORINGS["infilling"].predictions(
        TokenizedTexts.of([text], [1]), SequenceForm.of(lm, "next", "bidirectional"), SAMPLING
    )
    assert made.tokens.tolist() == [1, 2, 3]
    for index, found in zip((1, 2, 3), made.examples.split(), strict=True):
        monkeypatch.setattr(type(objective), "noise", lambda self, length, rng, at=index: np.arange(length) == at)
        source, target = objective.rewrite(text, words.special, None)
        (learnt,) = next_token_examples("", [source], [target], words.special).split()
        kept = len(learnt.tokens) - 1  # all but the token itself, which nothing follows
        assert found.tokens.tolist() == learnt.tokens[:kept].tolist()
        for name in ("positions", "token_types"):
            assert getattr(found, name).tolist() == getattr(learnt, name)[:kept].tolist()
        assert torch.equal(found.mask.dense(), learnt.mask.dense()[:kept, :kept])
        (own,) = np.flatnonzero(learnt.targets["token"].output_indices[:, 0] == kept - 1)
        assert found.targets["token"].output_indices.tolist() == [[kept - 1]]
        assert found.targets["token"].labels.tolist() == learnt.targets["token"].labels[[own]].tolist() == [text[index]]


@pytest.mark.parametrize("changes", [{}, {"positions": "rotary", "attention_windows": "0,2", "token_types": 0}])
def test_infilling_gives_what_generation_gives_behind_a_sentinel(changes):
    asked = decoder("next", **changes)
    lm = UnifiedLM(asked.model, vocabulary(), None, "next", None)
    texts, sentinel = [[5, 9, 4, 12, 7], [6, 8]], lm.special.first_sentinel
    found = token_scores(lm, [np.array(text) for text in texts], SCORINGS["infilling"], given=[2, 0])
    for text, own, given in zip(texts, found, (2, 0), strict=True):
        for index in range(given, len(text)):
            source = [*text[:index], sentinel, *text[index + 1 :], lm.special.separator]
            wanted = score(asked, torch.tensor([source]), torch.tensor([[sentinel, text[index]]]))[0]
            assert own.log_probs[index] == pytest.approx(float(wanted[1]), abs=1e-5)
        assert own.log_probs[:given].tolist() == [0.0] * given


def test_the_longest_text_leaves_room_for_both_blocks():
    lm = UnifiedLM(model(max_positions=12), vocabulary(), None, "next", None)
    text = np.array([5, 9, 4, 12, 7, 6, 8, 10])
    assert longest_text(lm, SCORINGS["infilling"]) == 8 and longest_text(lm, SCORINGS["pseudo_likelihood"]) == 9
    (found,) = token_scores(lm, [text], SCORINGS["infilling"])
    assert len(found.log_probs) == 8 and (found.log_probs < 0).all()
    with pytest.raises(UnifiedError):
        token_scores(lm, [np.append(text, 5)], SCORINGS["infilling"])


@pytest.mark.parametrize("objectives", ["", "bert:15,next=bert(next_sentence=False, left_to_right=True):1"])
def test_a_model_of_left_to_right_bert_predicts_the_next_token(objectives):
    """Its objective hides nothing: CLS and each token predict the token behind them, also in a mixture with others."""
    lm = UnifiedLM(model(**({} if objectives else {"mask": "left_to_right"})), vocabulary(), None, "nothing", None)
    lm.objectives = objectives
    text = np.array([5, 9, 4, 12])
    tokens = torch.tensor([[lm.special.begin, *text]])
    states = lm.model.transformer(tokens, torch.arange(5)[None], torch.zeros_like(tokens), masks.left_to_right(5))
    wanted = lm.model.logits(states[0, :4]).double().log_softmax(-1)[torch.arange(4), torch.tensor(text)]
    found = token_scores(lm, [text], SCORINGS["left_to_right"])[0]
    assert found.log_probs.tolist() == pytest.approx(wanted.tolist(), abs=1e-5)


def test_equal_texts_have_equal_scores_and_one_longer_than_the_positions_is_refused():
    lm = UnifiedLM(model(), vocabulary(), None, "left_to_right", None)
    texts = [np.array([5, 6, 7]), np.array([5, 6]), np.array([5, 6, 7])]
    first, _, last = token_scores(lm, texts, SCORINGS["pseudo_likelihood"])
    assert first.total == last.total
    # In memory the first two look alike.
    narrow, wide, same = token_scores(
        lm, [np.array([5, 0], dtype=np.int32), np.array([5]), np.array([5, 0])], SCORINGS["pseudo_likelihood"]
    )
    assert narrow.log_probs.tolist() == same.log_probs.tolist() and len(wide.log_probs) == 1
    with pytest.raises(UnifiedError, match=r"texts\[1\] has 47 tokens, the model reads 46 beside"):
        token_scores(lm, [texts[0], np.full(47, 5)], SCORINGS["left_to_right"])


@pytest.mark.parametrize("scoring", SCORINGS)
def test_a_text_without_a_token_to_score_has_the_score_0(scoring):
    lm = UnifiedLM(model(), vocabulary(), None, "left_to_right", None)
    found = token_scores(lm, [np.array([], dtype=np.int64), np.array([5, 6])], SCORINGS[scoring], given=[0, 2])
    assert [one.log_probs.tolist() for one in found] == [[], [0.0, 0.0]]


def test_a_long_text_is_read_in_several_batches():
    """46 copies of 48 tokens in each of 16 orders are more than a batch holds."""
    lm = UnifiedLM(model(layers=1, width=8, heads=1), vocabulary(), None, "nothing", None)
    text = np.arange(46) % 12 + 4
    [found] = token_scores(lm, [text], SCORINGS["permutation"], sampling=Sampling(16))
    [alone] = token_scores(lm, [text], SCORINGS["permutation"], sampling=Sampling(1))
    assert found.log_probs.shape == (46,) and (found.log_probs < 0).all()
    assert found.total == pytest.approx(alone.total, rel=0.2)


@pytest.mark.parametrize(
    ("count", "given", "portions"),
    [
        (8, 0, [2, 2, 2, 2]),  # 62 copies of 64 tokens for each text
        (8, 30, [4, 4]),  # 32 copies: four texts have exactly as many tokens as are read at once
        (129, 61, [128, 1]),
        (129, 62, [129]),  # nothing to score
        (129, 70, [129]),
    ],
)
def test_as_many_texts_are_read_together_as_have_the_tokens_of_a_batch(count, given, portions):
    lm = UnifiedLM(model(layers=1, width=8, heads=1, max_positions=64), vocabulary(), None, "nothing", None)
    texts, told = np.random.default_rng(0).integers(4, 16, (count, 62)), []
    found = token_scores(lm, [*texts], SCORINGS["pseudo_likelihood"], given=[given] * count, done=told.append)
    assert told == portions and len(found) == count
    (alone,) = token_scores(lm, [texts[5]], SCORINGS["pseudo_likelihood"], given=[given])
    assert found[5].log_probs.tolist() == pytest.approx(alone.log_probs.tolist(), abs=1e-5)


@pytest.mark.parametrize(
    ("scoring", "lengths", "shapes"),
    [
        ("permutation", [46], [(170, 48)] * 4 + [(56, 48)]),
        ("pseudo_likelihood", [2] * 61 + [62], [(128, 64), (56, 64)]),  # rows are as long as the longest of them
        ("pseudo_likelihood", [62, 62], [(124, 64)]),
    ],
)
def test_batches_hold_as_many_rows_as_have_8192_tokens(monkeypatch, scoring, lengths, shapes):
    lm = UnifiedLM(model(layers=1, width=8, heads=1, max_positions=64), vocabulary(), None, "nothing", None)
    found, hidden, rng = [], UnifiedModel.hidden, np.random.default_rng(0)

    def read(self, batch, **options):
        found.append(tuple(batch.tokens.shape))
        return hidden(self, batch, **options)

    monkeypatch.setattr(UnifiedModel, "hidden", read)
    texts = [np.array([4 + i // 8, 4 + i % 8, *rng.integers(4, 16, length - 2)]) for i, length in enumerate(lengths)]
    token_scores(lm, texts, SCORINGS[scoring], sampling=Sampling(16))
    assert found == shapes


def test_log_probabilities_are_those_of_float64():
    """But for the rounding of what is added, whose mean over a large vocabulary is nearly 0."""
    torch.manual_seed(0)
    logits, labels = torch.randn(70, 20_000) * 3, torch.randint(20_000, (70,))
    logits[3, labels[3]] = logits[3].max()  # as probable as another
    found, greedy = label_log_probs(logits, labels)
    wanted = logits.double().log_softmax(-1)[torch.arange(70), labels]
    assert found.dtype == torch.float64 and (found - wanted).abs().max() < 1e-7
    assert greedy.tolist() == [number == 3 for number in range(70)]


def test_greedy_is_whether_no_symbol_is_more_probable():
    lm = UnifiedLM(model(), vocabulary(), None, "left_to_right", None)
    text = [5]
    for _ in range(4):
        rows = [np.array([*text, symbol]) for symbol in range(len(lm.vocabulary))]
        found = token_scores(lm, rows, SCORINGS["left_to_right"], given=[len(text)] * len(rows))
        best = int(np.argmax([one.total for one in found]))
        assert [number for number, one in enumerate(found) if one.greedy[-1]] == [best]
        assert np.logaddexp.reduce([one.total for one in found]) == pytest.approx(0, abs=1e-5)
        text.append(best)
