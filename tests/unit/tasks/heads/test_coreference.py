"""The span ranking model: against its definitions, in any batch, its gradients, and what it makes of little."""

import math
import random

import numpy as np
import pytest
import torch

from tests.support.coreference_naive import TOKENIZER, VOCABULARY, Case, Naive, crosses, pruned, random_item
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.model.ranking import Ranking, antecedent_losses, gold_chains
from unified.model.spans import candidate_spans, kept_spans
from unified.tasks.heads import parse_head
from unified.tasks.heads.batches import runs_of, units_of
from unified.tasks.heads.coreference import Coreference, chains_of
from unified.tasks.heads.document_windows import window_starts
from unified.tasks.heads.documents import DocumentItem
from unified.tasks.metrics import score_coreference


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings", [{}, {"depth": 1}, {"depth": 3, "max_spans": 4}, {"spans_per_word": 2.0, "antecedents": 50}]
)
def test_rankings_losses_and_chains_are_the_definitions(settings):
    checked = 0
    for seed in range(4):
        case = Case(seed, **settings)
        rankings, reading = case.read(range(len(case.encoded.examples)))
        naive = [Naive(case, number) for number in range(len(case.items))]
        words = 0
        for ranking, expected, item in zip(rankings, naive, case.items, strict=True):
            spans = list(zip((ranking.starts - words).tolist(), (ranking.ends - words).tolist(), strict=True))
            assert spans == expected.spans
            for i, of in enumerate(expected.scores):
                earlier = {
                    j: score
                    for j, score in zip(ranking.antecedents[i].tolist(), ranking.scores[i, 1:].tolist(), strict=True)
                    if score > -math.inf
                }
                assert earlier == pytest.approx(of, rel=1e-8, abs=1e-8)
                checked += len(of)
            assert not ranking.scores[:, 0].any()
            words += len(item.words)
        loss = case.task.loss(rankings, reading)
        expected_loss = sum(one.loss(item.chains) for one, item in zip(naive, case.items, strict=True))
        assert float(loss.total) == pytest.approx(expected_loss, rel=1e-8) and loss.count == len(case.items)
        predictions = case.task.predict(
            case.items, case.encoded, np.arange(len(case.encoded.examples)), rankings, reading
        )
        assert [one["chains"] for one in predictions] == [one.chains() for one in naive]
    assert checked >= 40


def test_spans_64_and_more_apart_share_a_bucket():
    """Every word is a span and is compared with all before it: 69 of them, so that each bucket of distances is met."""
    case = Case(1, 1, 128, words=70, max_width=1, spans_per_word=1.0, antecedents=70, depth=1)
    ((ranking,), _), naive = case.read(range(len(case.encoded.examples))), Naive(case, 0)
    assert len(naive.spans) == 70
    for i, expected in enumerate(naive.scores):
        found = dict(zip(ranking.antecedents[i].tolist(), ranking.scores[i, 1:].tolist(), strict=True))
        assert {j: found[j] for j in range(i)} == pytest.approx(expected, rel=1e-8, abs=1e-8)


# ------------------------------------------------------------ pieces


def test_pruning_is_greedy_and_leaves_nothing_that_crosses():
    rng = random.Random(3)
    short = 0
    for _ in range(150):
        words = rng.randint(1, 12)
        starts, ends = candidate_spans(torch.zeros(words, dtype=torch.long), rng.randint(1, 12))
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        scores = [float(rng.randint(0, 5)) for _ in spans]  # many are equal
        count = rng.randint(1, 2 * words)
        kept = kept_spans(torch.tensor(scores), starts, ends, count).tolist()
        assert kept == pruned(scores, spans, count)
        assert not any(crosses(spans[a], spans[b]) for a in kept for b in kept)
        short += len(kept) < count
    assert short > 10


def test_candidates_lie_in_sentences():
    rng = random.Random(4)
    for _ in range(50):
        sentences = np.repeat(np.arange(4), [rng.randint(1, 9) for _ in range(4)])
        starts, ends = candidate_spans(torch.from_numpy(sentences + 7), 5)
        assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == [
            (i, j)
            for i in range(len(sentences))
            for j in range(len(sentences))
            if i <= j < i + 5 and sentences[i] == sentences[j]
        ]


def test_every_token_is_read_once_and_sentences_stay_whole_where_they_fit():
    rng = random.Random(5)
    divided = 0
    for _ in range(60):
        items = [random_item(rng, str(i)) for i in range(3)]
        max_tokens = rng.choice((6, 10, 20))
        encoded = Coreference().encode(items, Codec(TOKENIZER, VOCABULARY, max_tokens + 2))
        cut = 0
        for number, item in enumerate(items):
            members = np.flatnonzero(encoded.owners == number)
            read, words = [], []
            for member in members:
                example = encoded.examples[member]
                assert (
                    len(example.tokens) <= max_tokens + 2
                    and len(example.targets["task"].output_indices) == len(example.tokens) - 2
                )
                read += [
                    VOCABULARY.symbols[token] for token in example.tokens[example.targets["task"].output_indices[:, 0]]
                ]
                words.append(set((encoded.head_inputs["words"][member] - encoded.notes[member]).tolist()))
            assert read == [piece for word in item.words for piece in (word[0], *(f"##{c}" for c in word[1:]))]
            assert [min(part) for part in words[1:]] == [max(part) + 1 for part in words[:-1]]
            word, fits = 0, True
            for said in item.sentences:
                own = set(range(word, word + len(said)))
                if len("".join(said)) <= max_tokens:
                    assert any(own <= part for part in words)
                else:
                    fits = False
                word += len(said)
            cut += not fits
        assert encoded.cut == cut and not any(encoded.lost)
        divided += cut
    assert divided > 10


def test_segments_take_as_many_sentences_as_fit():
    starts, whole = window_starts(np.array([2, 1, 1, 3, 1]), np.array([2, 1, 1, 1]), 4)
    assert (starts, whole) == ([0, 3], True)
    starts, whole = window_starts(np.array([1, 3, 2, 1, 1]), np.array([1, 3, 1]), 4)  # 1 | 3 | 2 1 and 1
    assert (starts, whole) == ([0, 1, 2], False)


def test_a_word_longer_than_a_segment_is_cut():
    item = DocumentItem("d", (("a", "abbbbbbbb", "c"),), chains=(((1, 1), (2, 2)),))
    encoded = Coreference().encode([item], Codec(TOKENIZER, VOCABULARY, 6))
    assert [len(example.tokens) for example in encoded.examples] == [3, 6, 3] and encoded.cut == 1
    assert encoded.lost == [9 - 4]


def test_rankings_are_the_same_in_any_batch_and_in_any_portions():
    case = Case(11, documents=4)
    everything = list(range(len(case.encoded.examples)))
    with torch.no_grad():
        together, _ = case.read(everything)
    predictions = case.task.predict(case.items, case.encoded, np.array(everything), together, {})
    rng = np.random.default_rng(0)
    for number, item in enumerate(case.items):
        members = rng.permutation(case.windows_of(number))
        (alone,), reading = case.read(members)
        for name in ("starts", "ends", "antecedents"):
            assert torch.equal(getattr(alone, name), getattr(together[number], name))
        torch.testing.assert_close(alone.scores, together[number].scores, rtol=1e-10, atol=1e-10)
        assert case.task.predict([item], case.encoded, members, [alone], reading) == [predictions[number]]
    shuffled = rng.permutation(everything)
    rankings, reading = case.read(shuffled)
    assert case.task.predict(case.items, case.encoded, shuffled, rankings, reading) == predictions
    head = case.model.heads["coreference"]
    head.candidates_at_once, head.pair.pairs_at_once, head.spans_at_once = 3, 5, 2
    for small, whole in zip(case.read(everything)[0], together, strict=True):
        assert torch.equal(small.antecedents, whole.antecedents)
        torch.testing.assert_close(small.scores, whole.scores, rtol=1e-10, atol=1e-10)


def test_a_document_that_is_twice_in_a_batch_is_read_as_two():
    case = Case(5)
    once, reading = case.read(case.windows_of(0, 1))
    twice, read_twice = case.read([*case.windows_of(0, 1), *case.windows_of(1)])
    assert case.task.loss_count(read_twice) == len(twice) == 3
    for ranking, expected in zip(twice, [once[0], once[1], once[1]], strict=True):
        assert torch.equal(ranking.starts, expected.starts) and torch.equal(ranking.antecedents, expected.antecedents)
        torch.testing.assert_close(ranking.scores, expected.scores)
    alone, reading_alone = case.read(case.windows_of(1))
    added = case.task.loss(alone, reading_alone).total
    torch.testing.assert_close(case.task.loss(twice, read_twice).total, case.task.loss(once, reading).total + added)


@pytest.mark.slow
def test_runs_of_segments_keep_their_mentions():
    """What training reads of a document: spans are matched with the chains of the whole document."""
    found = 0
    for seed in range(10):
        case = Case(seed, documents=2, longest=10, spans_per_word=2.0)
        item, members = case.items[1], case.windows_of(1)
        for begin in range(len(members)):
            run = members[begin : begin + 2]
            (ranking,), reading = case.read(run)
            before = case.encoded.notes[run[0]]
            chain_of = {}
            for number, chain in enumerate(item.chains):
                for mention in chain:
                    chain_of.setdefault(mention, number)
            chains = gold_chains(ranking, reading["mentions"]).tolist()
            spans = list(zip((ranking.starts - before).tolist(), (ranking.ends - before).tolist(), strict=True))
            same = {(chain_of.get(span), chain) for span, chain in zip(spans, chains, strict=True)}
            assert len({one for one, _ in same}) == len({other for _, other in same}) == len(same)
            assert all((one is None) == (other == 0) for one, other in same)
            found += sum(chain > 0 for chain in chains)
    assert found > 40


def test_runs_are_drawn_evenly():
    units = units_of(np.repeat([0, 1, 2], [5, 2, 3]), together=True)
    rng, begins = np.random.default_rng(0), []
    for _ in range(600):
        runs = runs_of(units, 3, rng)
        assert [len(run) for run in runs] == [3, 2, 3] and all((np.diff(run) == 1).all() for run in runs)
        assert runs[1][0] == 5 and runs[2][0] == 7
        begins.append(int(runs[0][0]))
    assert np.bincount(begins).min() > 150 and max(begins) == 2


@pytest.mark.slow
def test_the_gradient_is_that_of_the_loss():
    """Finite differences: spans are chosen without gradients, and scored again with them."""
    case = Case(1, documents=2)
    members, head = range(len(case.encoded.examples)), case.model.heads["coreference"]

    def loss():
        return case.task.loss(*case.read(members)).total

    loss().backward()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for name, parameter in [*head.named_parameters(), *case.model.transformer.layers.named_parameters()]:
            flat, gradient = parameter.view(-1), parameter.grad.view(-1)
            for index in rng.choice(len(flat), min(2, len(flat)), replace=False):
                old, sides = flat[index].item(), []
                for step in (1e-6, -1e-6):
                    flat[index] = old + step
                    sides.append(float(loss()))
                flat[index] = old
                slope = (sides[0] - sides[1]) / 2e-6
                assert gradient[index].item() == pytest.approx(slope, rel=1e-4, abs=1e-6), name


@pytest.mark.parametrize(
    ("sentences", "chains"),
    [
        ((("a",),), ()),
        ((("a",),), (((0, 0),),)),
        ((("a", "b"), ("c",)), ()),
        ((("a", "b", "c", "a", "b"),), (((0, 0),), ((2, 2),))),
        ((("a", "b", "c"),), (((0, 0), (0, 2)),)),
    ],
)
def test_documents_with_little_in_them_have_finite_gradients(sentences, chains):
    for dropout in (0.0, 0.5):
        case = Case(0, dropout=dropout)
        case.items = [DocumentItem("0", sentences, chains=chains)]
        case.encoded = case.task.encode(case.items, Codec(TOKENIZER, VOCABULARY, 16))
        case.model.train()
        rankings, reading = case.read([0])
        loss = case.task.loss(rankings, reading)
        loss.total.backward()
        assert math.isfinite(float(loss.total)) and 0 <= float(loss.correct) <= 1 == loss.count
        for parameter in case.model.heads.parameters():
            assert parameter.grad is not None and bool(parameter.grad.isfinite().all())
        (prediction,) = case.task.predict(case.items, case.encoded, np.array([0]), rankings, reading)
        assert prediction["id"] == "0"


def test_of_a_mention_in_two_chains_the_first_counts():
    ranking = Ranking(torch.tensor([3, 4, 9]), torch.tensor([3, 6, 9]), torch.zeros(3, 1).long(), torch.zeros(3, 2))
    mentions = torch.tensor([[4, 6, 2], [3, 3, 5], [4, 6, 1], [3, 5, 8], [90, 91, 9]])
    assert gold_chains(ranking, mentions).tolist() == [5, 2, 0]
    assert gold_chains(ranking, mentions[:0]).tolist() == [0, 0, 0]


def test_the_best_antecedent_is_right_where_it_is_in_the_chain():
    scores = torch.tensor([[0, -math.inf, -math.inf], [0, 2, -math.inf], [0, 1, 3], [0, -1, -1]])
    ranking = Ranking(torch.arange(4), torch.arange(4), torch.tensor([[0, 1], [0, 1], [0, 1], [2, 1]]), scores)
    losses, right = antecedent_losses(ranking, torch.tensor([1, 1, 0, 2]))
    assert right.tolist() == [True, True, False, True]
    expected = [0, math.log(1 + math.exp(-2)), math.log(1 + math.e + math.e**3), math.log(1 + 2 / math.e)]
    assert losses.tolist() == pytest.approx(expected)
    assert chains_of(ranking) == [[(0, 0), (1, 1), (2, 2)]]
    assert chains_of(ranking, before=-5) == [[(5, 5), (6, 6), (7, 7)]]


def test_mentions_that_are_no_candidates_are_counted():
    sentences, chains = (("a",) * 5, ("b",) * 2), (((0, 3), (1, 4)), ((0, 4), (4, 5)))
    codec = Codec(TOKENIZER, VOCABULARY, 9)
    for most, beyond in ((4, 2), (5, 1), (3, 4)):
        encoded = Coreference(max_width=most).encode([DocumentItem("d", sentences, chains=chains)] * 2, codec)
        assert encoded.remarks == [
            f"{2 * beyond} of 8 mentions have more than {most} words or parts of several sentences"
        ]
    for chains in ((), None, (((0, 0), (1, 1)),)):
        assert not Coreference().encode([DocumentItem("d", sentences, chains=chains)], codec).remarks


def test_settings():
    entry = parse_head("coreference(hidden=64, max_windows=5)")
    items = [DocumentItem(str(i), (("a",),), genre=genre) for i, genre in enumerate(["nw", None, "bc", "nw"])]
    task = entry.for_items(items)
    assert entry.head_class is Coreference and (task.hidden, task.longest_run, task.genres) == (64, 5, ("bc", "nw"))
    encoded = task.encode([*items, DocumentItem("9", (("a",),), genre="new")], Codec(TOKENIZER, VOCABULARY, 9))
    assert [int(genre[0]) for genre in encoded.head_inputs["genres"]] == [2, 0, 1, 2, 0]
    assert Coreference.of(items, genres=["x"]).genres == ("x",)
    for setting, message in (
        ("depth=0", "depth must be from 1 to 1,000"),
        ("spans_per_word=0", "spans_per_word must be"),
    ):
        with pytest.raises(UnifiedError, match=f"coreference.*: {message}"):
            parse_head(f"coreference({setting})").for_items(items)


def test_all_windows_of_a_document_stay_in_one_batch():
    task, item = Coreference(), DocumentItem("d", (("a",) * 3, ("b",) * 2))
    encoded = task.encode([item, item], Codec(TOKENIZER, VOCABULARY, 6))
    assert task.reads_windows and encoded.owners.tolist() == [0, 0, 1, 1]
    assert [unit.tolist() for unit in units_of(encoded.owners, task.together)] == [[0, 1], [2, 3]]


def test_chains_are_scored_by_conlls_rules():
    task = Coreference()
    assert task.measures == ("average_f1", "muc_f1", "bcub_f1", "ceafe_f1", "mentions_recall")
    assert task.signature == "rules:conll2012-8.01|average:muc,bcub,ceafe|singletons:yes"
    key = (((0, 0), (1, 2)), ((3, 3),))
    items = [DocumentItem("1", (("a", "b", "c", "d"),), chains=key)]
    assert task.encode(items, Codec(TOKENIZER, VOCABULARY, 9)).remarks == []
    found = [{"id": "1", "chains": [[[0, 0], [1, 2], [3, 3]]]}]
    scores = task.score(items, found)
    assert scores == score_coreference([key], [[[(0, 0), (1, 2), (3, 3)]]]) and 0 < scores["average_f1"] < 100
    assert set(task.measures) < set(scores) and task.loss_count({"owners": torch.tensor([4])}) == 1
