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


@pytest.mark.parametrize("scheme", ["left_to_right", "permutation"])
@pytest.mark.parametrize(
    ("options", "own"),
    [
        ({}, {}),
        ({"len_penalty": 0.5, "min_len": 2}, {"lenpen": 0.5, "min_length": 2}),
        ({"normalize_scores": False}, {"lenpen": 0.0}),
        ({"no_repeat_ngram_size": 2}, None),
        (
            {"len_penalty": 2.0, "unilm_lenpen": True, "normalize_scores": False},
            {"lenpen": 2.0, "length_penalty": "unilm"},
        ),
    ],
)
@pytest.mark.parametrize("seed", [0, 3])
def test_behind_a_prompt_an_end_that_the_limit_sets_does_not_count(scheme, options, own, seed):
    """Prompts of unequal lengths, and texts of which some end before the limit."""
    model = model_of(scheme, seed)
    found = generator_of([model], beam_size=3, max_len_b=6, **options).generate([model], sample())
    for some in found:
        assert len(some) == 3 and [float(one["score"]) for one in some] == sorted(
            (float(one["score"]) for one in some), reverse=True
        )
        for one in some:
            ends_by_itself = len(one["tokens"]) < 7
            assert ends_by_itself == (float(one["positional_scores"][-1]) != 0)
    if own is None:  # our own blocker reads the prompt, too
        return
    config = GenerationConfig(beam=3, nbest=3, max_length=6, **own)
    wanted = generate(model.decoder.cached[0], SOURCES, config)
    for some, others in zip(rows(found), wanted, strict=True):
        assert [tokens for tokens, _ in some] == [[*other.tokens.tolist(), 2] for other in others]
        assert [score for _, score in some] == pytest.approx([other.score for other in others], rel=1e-4)


def lengths(model, sources, prefix=None, **options):
    """Tokens of the best text of each source, the end symbol not counted."""
    found = generator_of([model], beam_size=1, **options).generate([model], sample(sources), prefix_tokens=prefix)
    return [len(some[0]["tokens"]) - 1 for some in found]


@pytest.fixture(scope="module")
def endless():
    """A model that writes until it may not go on."""
    model = model_of()
    model.core.heads["token"].bias.data[2] -= 30
    return model


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({"max_target": 0}, LEFT - 1), ({"max_target": 1}, 1), ({"max_target": LEFT - 2}, LEFT - 2),
        ({"max_target": LEFT - 1}, LEFT - 1), ({"max_target": LEFT}, LEFT - 1), ({"max_target": 99}, LEFT - 1),
        ({"max_len_b": 7}, 7), ({"max_len_b": 7, "max_target": 6}, 6), ({"max_len_b": 7, "max_target": 8}, 7),
        ({"max_len_a": 2, "max_len_b": 3}, 23),
    ],
)  # fmt: skip
def test_texts_end_at_the_limit_of_positions_or_of_training_or_of_fairseq(endless, options, most):
    assert lengths(endless, SOURCES[3:], **options) == [most]


@pytest.mark.parametrize("options", [{}, {"max_target": 9}, {"unilm_lenpen": True, "normalize_scores": False}])
def test_no_text_depends_on_its_neighbours(endless, options):
    """Each source leaves other positions: what is written from it beside longer ones is what is written alone."""
    both = tiny_models.sources([2, 40, 9, 40, 44])
    prefix = torch.tensor([[5, 6], [7, 1], [5, 5], [1, 1], [1, 1]])
    batched = generator_of([endless], beam_size=3, **options)
    found = batched.generate([endless], sample(both, id=torch.arange(5)), prefix_tokens=prefix)
    for i, some in enumerate(rows(found)):
        source = both[i : i + 1, : int((both[i] != 1).sum())]
        (alone,) = rows(generator_of([endless], beam_size=3, **options).generate(
            [endless], sample(source), prefix_tokens=prefix[i : i + 1]
        ))  # fmt: skip
        assert [tokens for tokens, _ in some] == [tokens for tokens, _ in alone] and len(some) == 3
        assert [score for _, score in some] == pytest.approx([score for _, score in alone], rel=1e-4)
    most = options.get("max_target", 48)
    assert [len(some[0]["tokens"]) - 1 for some in found] == [min(most, 48 - n - 3) for n in (2, 40, 9, 40, 44)]


@pytest.mark.parametrize(
    ("longest", "options", "says"),
    [
        (40, {"min_len": 6}, "a text of 40 tokens leaves 5 of the model's 48 positions to what is written, fewer than "
                             "--min-len 6; cut it with --max-source"),
        (40, {"min_len": 5}, None),
        (45, {}, "a text of 45 tokens leaves 0 of the model's 48 positions to what is written, fewer than --min-len 1; "
                 "cut it with --max-source"),
        (46, {"min_len": 0}, "a text of 46 tokens leaves 0 of the model's 48 positions to what is written, fewer than "
                             "--min-len 0; cut it with --max-source"),
        (44, {}, None),
        (5, {"min_len": 8, "max_len_b": 7}, "--min-len 8 is more than --max-len-a and --max-len-b allow, 7 tokens"),
        (5, {"min_len": 7, "max_len_b": 7}, None),
        (40, {"match_source_len": True}, "49 positions are needed (source and generated tokens together), the model's "
                                         "table has 48; shorten the source or what is generated"),
    ],
)  # fmt: skip
def test_a_source_that_leaves_too_few_positions_is_refused_in_one_line(longest, options, says):
    sources = sample(tiny_models.sources([2, longest]))
    if says is None:
        generator_of(beam_size=2, **options).generate([model_of()], sources)
        return
    with pytest.raises(SystemExit) as raised:
        generator_of(beam_size=2, **options).generate([model_of()], sources)
    assert str(raised.value) == f"unified_lm: error: {says}"


@pytest.mark.parametrize("size", [0, 1, 2])
@pytest.mark.parametrize("prefix", [[[8, 9, 5, 7]] * 4, [[5, 6, 5, 6], [8, 8, 8, 1], [7, 1, 1, 1], [1, 1, 1, 1]]])
def test_given_tokens_come_whatever_they_repeat(size, prefix):
    model, prefix = model_of(), torch.tensor(prefix)
    batched = generator_of([model], beam_size=2, max_target=8, no_repeat_ngram_size=size)
    found = rows(batched.generate([model], sample(), prefix_tokens=prefix))
    config = GenerationConfig(beam=2, nbest=2, max_length=8, no_repeat_ngram_size=size)
    wanted = generate(model.decoder.cached[0], SOURCES, config, prefix=prefix)
    for some, others in zip(found, wanted, strict=True):
        assert [tokens for tokens, _ in some] == [[*other.tokens.tolist(), 2] for other in others]
    again = rows(batched.generate([model], sample()))  # nothing of one batch stays for the next
    assert again == rows(
        generator_of([model], beam_size=2, max_target=8, no_repeat_ngram_size=size).generate([model], sample())
    )


def test_unilms_penalty_divides_the_sum_and_ranks_anew(monkeypatch):
    def hypothesis(score, *scores):
        return {"score": score, "tokens": torch.zeros(len(scores)), "positional_scores": torch.tensor(scores)}

    def searched(self, *given, **keywords):
        return [[hypothesis("a", -1.0, -2.0), hypothesis("b", -1.0, -0.5, -1.0), hypothesis("c", -2.9)], []]

    monkeypatch.setattr(SequenceGenerator, "_generate", searched)
    plain = generator_of(len_penalty=2.0, max_target=9).generate([], sample(SOURCES[:2], id=torch.arange(2)))
    assert [one["score"] for one in plain[0]] == ["a", "b", "c"]
    ranked, nothing = generator_of(len_penalty=2.0, max_target=9, unilm_lenpen=True).generate([], sample(SOURCES[:2]))
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


@pytest.mark.parametrize("scheme", ["left_to_right", "permutation"])
def test_the_end_of_a_given_text_behind_a_prompt_does_not_count(scheme):
    """Running text has no end, and what continues it never learnt one."""
    model = model_of(scheme)
    targets = torch.tensor([[5, 6, 2, 1], [7, 2, 1, 1], [4, 5, 5, 2], [2, 1, 1, 1]])
    found = ForcedScorer([model]).generate([model], sample(target=targets))
    for (one,), source, target in zip(found, SOURCES, targets.tolist(), strict=True):
        tokens = target[: target.index(2)]
        expected = [
            float(tiny_models.next_logits(model.core, WORDS.special, scheme, source, tokens[:i]).log_softmax(-1)[token])
            for i, token in enumerate(tokens)
        ]
        assert one["tokens"].tolist() == [*tokens, 2]
        assert one["positional_scores"].tolist() == pytest.approx([*expected, 0.0], abs=1e-4)
        assert float(one["score"]) == pytest.approx(sum(expected) / max(len(expected), 1), abs=1e-4)
