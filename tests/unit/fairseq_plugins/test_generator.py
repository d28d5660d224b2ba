"""fairseq's search with our limits, penalty and blocker, and the scores of given texts."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator

from fairseq_plugins.dictionary import fairseq_dictionary
from fairseq_plugins.generator import ForcedScorer, UnifiedSequenceGenerator
from fairseq_plugins.models.unified_lm import UnifiedLMModel
from tests.support import tiny_models
from unified.generation import GenerationConfig
from unified.generation.search import generate

WORDS = tiny_models.vocabulary()
DICTIONARY = fairseq_dictionary(WORDS)
TASK = SimpleNamespace(special=WORDS.special, source_dictionary=DICTIONARY, target_dictionary=DICTIONARY)
SOURCES = tiny_models.sources([5, 2, 3, 9])
#: Of the model's 48 positions, [CLS] and the 10 tokens of a source leave so many.
LEFT = 48 - 10 - 1


def model_of(scheme="cloze", seed=0) -> UnifiedLMModel:
    core = tiny_models.decoder(scheme, seed=seed).model
    core.heads["token"].bias.data[[2, 7]] += torch.tensor([1.5, 2.0])  # some texts end early, and one word comes again
    return UnifiedLMModel(core, TASK, scheme).eval()


def sample(sources=SOURCES, **more):
    lengths = (sources != WORDS.special.pad).sum(1)
    return {"net_input": {"src_tokens": sources, "src_lengths": lengths}, **more}


def generator_of(models=None, **options) -> UnifiedSequenceGenerator:
    return UnifiedSequenceGenerator(models or [model_of()], DICTIONARY, **options)


def rows(hypotheses):
    return [[(one["tokens"].tolist(), float(one["score"])) for one in some] for some in hypotheses]


@pytest.mark.parametrize("scheme", ["cloze", "next"])
@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({}, {"beam": 1}),
        ({"beam_size": 4, "min_len": 3}, {"beam": 4, "min_length": 3}),
        ({"beam_size": 3, "no_repeat_ngram_size": 2}, {"beam": 3, "no_repeat_ngram_size": 2}),
        (
            {"beam_size": 3, "no_repeat_ngram_size": 1, "ngram_ignore": [7]},
            {"beam": 3, "no_repeat_ngram_size": 1, "no_repeat_ngram_ignore": {7}},
        ),
        (
            {"beam_size": 3, "len_penalty": 0.5, "unilm_lenpen": True, "normalize_scores": False},
            {"beam": 3, "lenpen": 0.5, "length_penalty": "unilm"},
        ),
    ],
)
def test_the_search_finds_what_our_own_finds(scheme, options, own):
    """Sentences of unequal lengths, whose texts end at different steps."""
    model = model_of(scheme)
    found = generator_of([model], max_target=8, **options).generate([model], sample())
    config = GenerationConfig(nbest=own["beam"], max_length=8, **own)
    wanted = generate(model.decoder.cached[0], SOURCES, config)
    for some, others in zip(rows(found), wanted, strict=True):
        assert [tokens for tokens, _ in some] == [[*other.tokens.tolist(), 2] for other in others]
        assert [score for _, score in some] == pytest.approx([other.score for other in others], rel=1e-4)


def limits(monkeypatch, sources=SOURCES, **options):
    """What fairseq's search may write at most, the end symbol counted, and what it is given."""
    seen = []

    def searched(self, *given, **keywords):
        seen.append((self.max_len, given[1:], keywords))
        return []

    monkeypatch.setattr(SequenceGenerator, "_generate", searched)
    own = generator_of(**options)
    for _ in range(2):  # nothing of one batch stays for the next
        assert own.generate([], sample(sources), prefix_tokens="prefix", constraints="none") == []
    assert seen[0] == seen[1] and seen[0][1:] == ((), {"prefix_tokens": "prefix", "constraints": "none"})
    return seen[0][0]


@pytest.mark.parametrize(
    ("target", "most"), [(0, LEFT), (1, 2), (LEFT - 2, LEFT - 1), (LEFT - 1, LEFT), (LEFT, LEFT), (99, LEFT)]
)
def test_texts_end_at_the_limit_of_positions_or_of_training(monkeypatch, target, most):
    assert limits(monkeypatch, max_target=target) == most
    assert limits(monkeypatch) == LEFT
    assert limits(monkeypatch, tiny_models.sources([20]), max_target=99) == 48 - 21 - 1


def test_unilms_penalty_divides_the_sum_and_ranks_anew(monkeypatch):
    def hypothesis(score, *scores):
        return {"score": score, "tokens": torch.zeros(len(scores)), "positional_scores": torch.tensor(scores)}

    def searched(self, *given, **keywords):
        return [[hypothesis("a", -1.0, -2.0), hypothesis("b", -1.0, -0.5, -1.0), hypothesis("c", -2.9)], []]

    monkeypatch.setattr(SequenceGenerator, "_generate", searched)
    plain = generator_of(len_penalty=2.0).generate([], sample())
    assert [one["score"] for one in plain[0]] == ["a", "b", "c"]
    ranked, nothing = generator_of(len_penalty=2.0, unilm_lenpen=True).generate([], sample())
    expected = [-2.5 / (8 / 6) ** 2, -3.0 / (7 / 6) ** 2, -2.9]
    assert [float(one["score"]) for one in ranked] == pytest.approx(expected) and nothing == []
    assert [len(one["tokens"]) for one in ranked] == [3, 2, 1]


def test_the_blocker_reads_what_is_written_between_the_start_symbol_and_the_empty_end():
    assert generator_of().repeat_ngram_blocker is None
    assert generator_of(no_repeat_ngram_size=0).repeat_ngram_blocker is None
    buffer = torch.tensor([[2, 5, 6, 5, 1, 1], [2, 7, 7, 8, 1, 1]])
    scores = torch.zeros(2, len(WORDS))

    def banned(own, step):
        found = own.repeat_ngram_blocker(buffer, scores, 2, 1, step)
        return [row.nonzero().squeeze(1).tolist() for row in found.isinf()]

    pairs = generator_of(no_repeat_ngram_size=2)
    assert [banned(pairs, step) for step in (0, 1, 2, 3)] == [[[], []], [[], []], [[], [7]], [[6], []]]
    words = generator_of(no_repeat_ngram_size=1, ngram_ignore=[5])
    assert banned(words, 3) == [[6], [7, 8]] and banned(words, 1) == [[], [7]]


@pytest.mark.parametrize("count", [1, 2])
def test_given_texts_have_the_scores_of_the_models_together(count):
    """Several models score by the mean of their probabilities."""
    models = [model_of(seed=seed) for seed in range(count)]
    targets = torch.tensor([[5, 6, 2, 1], [7, 2, 1, 1], [4, 5, 5, 2], [2, 1, 1, 1]])
    scorer = ForcedScorer(models)
    assert scorer.eos == 2
    found = scorer.generate("fairseq's own ensemble", sample(target=targets), prefix_tokens=None)
    assert len(found) == 4 and all(len(some) == 1 for some in found)
    for (one,), source, target in zip(found, SOURCES, targets.tolist(), strict=True):
        tokens = [token for token in target if token != 1]
        expected = []
        for i, token in enumerate(tokens):
            logits = [
                tiny_models.next_logits(model.core, WORDS.special, "cloze", source, tokens[:i]) for model in models
            ]
            mean = torch.stack([own.softmax(-1) for own in logits]).mean(0)
            expected.append(float(mean[token].log().detach()))
        assert one["tokens"].tolist() == tokens
        assert one["positional_scores"].tolist() == pytest.approx(expected, abs=1e-4)
        assert float(one["score"]) == pytest.approx(sum(expected) / len(expected), abs=1e-4)
        assert one["attention"] is None and one["alignment"].shape == (0,)
        assert not one["score"].requires_grad
