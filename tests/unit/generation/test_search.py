"""Searches against enumeration of every text, against fairseq's generator, and against each other."""

from collections import Counter
from functools import cache

import pytest
import torch

from tests.support.tiny_models import EIGHT, decoder, eight_symbols, next_logits, sources
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder, GenerationConfig, Hypothesis, generate, score

END = EIGHT.separator
WORDS = (3, 5, 6, 7)  # what a text over eight symbols may hold: the unknown symbol is a legitimate prediction
ROWS = torch.tensor([[5, 6, 7, 5, 2], [7, 7, 2, 1, 1], [2, 1, 1, 1, 1]])


def is_cut(scheme: str, text: tuple[int, ...], longest: int) -> bool:
    """Whether the end of a text is not the model's: continuations of prompts end where they are as long as allowed."""
    return SCHEMES[scheme].prompt and len(text) == longest


def enumerated(cached: CachedDecoder, scheme: str, row: torch.Tensor, longest: int) -> dict[tuple[int, ...], float]:
    """Log-probability of every text of at most ``longest`` words, its own end included, by full forward passes."""
    found, open_texts = {}, {(): 0.0}
    while open_texts:
        text, total = open_texts.popitem()
        log_probs = next_logits(cached.model, EIGHT, scheme, row, list(text)).log_softmax(-1)
        found[text] = total + (0 if is_cut(scheme, text, longest) else float(log_probs[END]))
        if len(text) < longest:
            open_texts |= {(*text, word): total + float(log_probs[word]) for word in WORDS}
    return found


@cache
@torch.no_grad()
def every_text(scheme: str, number: int) -> dict[tuple[int, ...], float]:
    """All texts of at most three words that :func:`eight_symbols` may write after one of ``ROWS``."""
    return enumerated(eight_symbols(scheme), scheme, ROWS[number], 3)


def texts(hypotheses: list[Hypothesis]) -> list[tuple[int, ...]]:
    return [tuple(h.tokens.tolist()) for h in hypotheses]


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(("penalty", "exponent"), [("fairseq", 0.0), ("fairseq", 1.3), ("unilm", 0.8)])
@torch.no_grad()
def test_a_wide_beam_finds_every_text_in_the_right_order(scheme, penalty, exponent):
    cached = eight_symbols(scheme)
    count = sum(4**n for n in range(4))
    config = GenerationConfig(
        beam=count, nbest=count, max_length=3, min_length=0, length_penalty=penalty, lenpen=exponent
    )
    for number, hypotheses in enumerate(generate(cached, ROWS, config)):
        truth = every_text(scheme, number)
        divide = {"fairseq": lambda n: n**exponent, "unilm": lambda n: ((5 + n) / 6) ** exponent}[penalty]
        expected = {t: total / divide(len(t) + (not is_cut(scheme, t, 3))) for t, total in truth.items()}
        assert len(hypotheses) == count and set(texts(hypotheses)) == set(expected)
        for hypothesis, text in zip(hypotheses, texts(hypotheses), strict=True):
            assert hypothesis.score == pytest.approx(expected[text], abs=1e-4)
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        assert texts(hypotheses)[0] == max(expected, key=expected.get)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_greedy_search_is_a_loop_of_argmax(scheme):
    cached = decoder(scheme)
    special = cached.special
    rows = sources([5, 1, 9, 3, 7])
    config = GenerationConfig(beam=1, max_length=12, min_length=2)
    lengths = set()
    for row, (hypothesis,) in zip(rows, generate(cached, rows, config), strict=True):
        written: list[int] = []
        while len(written) < 12:
            logits = next_logits(cached.model, special, scheme, row, written)
            logits[[special.begin, special.pad, special.mask]] = -torch.inf
            if len(written) < 2:
                logits[special.separator] = -torch.inf
            best = int(logits.argmax())
            if best == special.separator:
                break
            written.append(best)
        assert hypothesis.tokens.tolist() == written
        lengths.add(len(written))
    assert lengths != {0}


@pytest.mark.slow
@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0])
@torch.no_grad()
def test_hypotheses_are_those_of_fairseqs_generator(beam, exponent):
    """The same scores, step by step from full recomputation, go into fairseq's own beam search."""
    pytest.importorskip("fairseq")
    from fairseq.data import Dictionary
    from fairseq.models import FairseqDecoder, FairseqEncoder, FairseqEncoderDecoderModel
    from fairseq.sequence_generator import SequenceGenerator

    cached = eight_symbols(seed=5)
    bias = cached.model.heads["token"].bias
    bias.data[[EIGHT.begin, EIGHT.mask]] = -100.0  # ours never writes these two, fairseq would
    bias.data[END] += 1.0
    dictionary = Dictionary()
    for i in range(4):
        dictionary.add_symbol(f"w{i}")

    class Encoder(FairseqEncoder):
        def forward(self, src_tokens, src_lengths=None):
            return {"tokens": src_tokens}

        def forward_torchscript(self, net_input):
            return self.forward(**net_input)

        def reorder_encoder_out(self, encoder_out, new_order):
            return {"tokens": encoder_out["tokens"][new_order]}

    class Decoder(FairseqDecoder):
        def forward(self, prev_output_tokens, encoder_out=None):
            pairs = zip(encoder_out["tokens"], prev_output_tokens[:, 1:].tolist(), strict=True)
            logits = [next_logits(cached.model, EIGHT, "cloze", row, written) for row, written in pairs]
            return torch.stack(logits).unsqueeze(1), None

        def max_positions(self):
            return 20

    theirs = SequenceGenerator(
        [FairseqEncoderDecoderModel(Encoder(dictionary), Decoder(dictionary))],
        dictionary, beam_size=beam, max_len_b=5, min_len=1, len_penalty=exponent,
    )  # fmt: skip
    expected = theirs.generate([], {"net_input": {"src_tokens": ROWS, "src_lengths": (ROWS != 1).sum(1)}})
    config = GenerationConfig(beam=beam, nbest=beam, max_length=5, lenpen=exponent)
    for mine, other in zip(generate(cached, ROWS, config), expected, strict=True):
        assert texts(mine) == [tuple(h["tokens"].tolist()[:-1]) for h in other]
        for hypothesis, reference in zip(mine, other, strict=True):
            assert hypothesis.score == pytest.approx(float(reference["score"]), abs=1e-4)
            torch.testing.assert_close(hypothesis.log_probs, reference["positional_scores"], atol=1e-4, rtol=1e-4)


OPTIONS = {
    "beam": {"beam": 4, "nbest": 4},
    "greedy": {"beam": 1},
    "blocked": {"beam": 3, "nbest": 3, "no_repeat_ngram_size": 2},
    "sampled": {"beam": 3, "nbest": 3, "sampling": True, "top_k": 8, "seed": 4},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_batch_is_each_sentence_alone_on_either_side_of_padding(scheme, name):
    cached = decoder(scheme)
    config = GenerationConfig(max_length=9, **OPTIONS[name])
    lengths = [5, 1, 9, 3, 7, 0]
    together = generate(cached, sources(lengths), config)
    left = generate(cached, sources(lengths, left=True, width=15), config)
    for i, row in enumerate(sources(lengths)):
        alone = generate(cached, row[row != cached.special.pad][None], config, indices=[i])[0]
        for other in (together[i], left[i]):
            assert texts(other) == texts(alone)
            for a, b in zip(other, alone, strict=True):
                torch.testing.assert_close(a.log_probs, b.log_probs, atol=1e-4, rtol=1e-4)
    assert len({text for hypotheses in together for text in texts(hypotheses)}) > 3


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_log_probs_are_those_of_forced_decoding(scheme, name):
    cached = decoder(scheme)
    rows = sources([5, 1, 9])
    for row, hypotheses in zip(
        rows, generate(cached, rows, GenerationConfig(max_length=7, **OPTIONS[name])), strict=True
    ):
        for hypothesis in hypotheses:
            target = torch.cat([hypothesis.tokens, torch.tensor([cached.special.separator])])
            torch.testing.assert_close(score(cached, row[None], target[None])[0], hypothesis.log_probs)
            counted = hypothesis.log_probs[: 7 if is_cut(scheme, tuple(hypothesis.tokens), 7) else None]
            assert hypothesis.score == pytest.approx(float(counted.mean()), abs=1e-5)


def test_lengths_stay_within_their_limits():
    cached = decoder()
    rows = sources([5, 1, 9, 3])
    for end in (-3.0, 0.0, 6.0):  # a model that ends too late, and one that ends too early
        cached.model.heads["token"].bias.data[END] = end
        for least, most in ((0, 1), (1, 4), (3, 8), (8, 8)):
            config = GenerationConfig(beam=4, nbest=4, min_length=least, max_length=most)
            lengths = [len(h.tokens) for hypotheses in generate(cached, rows, config) for h in hypotheses]
            assert len(lengths) == 16 and min(lengths) >= least and max(lengths) <= most


def test_sentences_that_are_done_leave_and_the_search_stops_early(monkeypatch):
    cached = decoder()
    sizes = []
    step = CachedDecoder.step

    def counting(self, last, state, temperature):
        sizes.append((len(state.source.visible), state.keys[0].size(0)))
        return step(self, last, state, temperature)

    monkeypatch.setattr(CachedDecoder, "step", counting)
    cached.model.heads["token"].bias.data[END] += 8.0
    generate(cached, sources([5, 1, 9, 3, 2, 8]), GenerationConfig(beam=2, max_length=35))
    assert all(rows == 2 * sentences for sentences, rows in sizes)
    assert sizes[0] == (6, 12) and len(sizes) < 36
    assert [s for s, _ in sizes] == sorted((s for s, _ in sizes), reverse=True)
    assert 0 < sizes[-1][0] < 6


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_prefixes_of_different_lengths_are_forced_and_the_rest_is_searched(scheme):
    cached = eight_symbols(scheme)
    prefix = torch.tensor([[5, 7], [6, 1], [1, 1]])
    config = GenerationConfig(beam=85, nbest=85, max_length=3, min_length=0, lenpen=0.0)
    for number, (start, hypotheses) in enumerate(zip(prefix, generate(cached, ROWS, config, prefix), strict=True)):
        start = tuple(start[start != 1].tolist())
        expected = {t: p for t, p in every_text(scheme, number).items() if t[: len(start)] == start}
        assert set(texts(hypotheses)) == set(expected)
        for text, hypothesis in zip(texts(hypotheses), hypotheses, strict=True):
            assert hypothesis.score == pytest.approx(expected[text], abs=1e-4)


def test_a_prefix_that_ends_gives_one_text_and_wins_over_length_limits():
    prefix = torch.tensor([[5, END], [1, 1], [6, 6]])
    config = GenerationConfig(beam=3, nbest=3, min_length=3, max_length=4, no_repeat_ngram_size=1)
    results = generate(eight_symbols(), ROWS, config, prefix)
    assert texts(results[0]) == [(5,)]
    assert all(text[:2] == (6, 6) for text in texts(results[2])) and results[2]


def test_prefixes_that_cannot_be_written_are_refused():
    cached, config = eight_symbols(), GenerationConfig(max_length=2, min_length=0)
    with pytest.raises(UnifiedError, match=r"prefix must be \(N, P\) for 3 sources, got shape \(2, 1\)"):
        generate(cached, ROWS, config, torch.full((2, 1), 5))
    with pytest.raises(UnifiedError, match="prefix of 3 tokens exceeds max_length 2"):
        generate(cached, ROWS, config, torch.full((3, 3), 5))
    with pytest.raises(UnifiedError, match="prefix must hold ids from 0 to 7, got 8 .. 8"):
        generate(cached, ROWS, config, torch.full((3, 1), 8))
    for prefix in (torch.tensor([[1, 5], [5, 5], [5, 1]]), torch.tensor([[5, 5], [5, 5], [1, 5]])):
        with pytest.raises(UnifiedError, match="prefix must be padded on the right"):
            generate(cached, ROWS, config, prefix)
    for prefix, shown in (([[5]] * 3, r"list \[\[5\], "), (torch.full((3, 1), 5.0), r"Tensor tensor\(\[\[5\.\]")):
        with pytest.raises(UnifiedError, match=rf"prefix must be a tensor of ids \(int32 or int64\), got {shown}"):
            generate(cached, ROWS, config, prefix)


def test_an_index_of_a_source_is_no_negative_number():
    config = GenerationConfig(max_length=2, sampling=True)
    with pytest.raises(UnifiedError, match="an index of a source must be an integer of at least 0, got -1"):
        generate(eight_symbols(), ROWS, config, indices=[0, -1, 2])


def test_positions_are_counted_before_anything_is_written():
    with pytest.raises(UnifiedError, match="33 positions are needed .* table has 32"):
        generate(eight_symbols(), ROWS, GenerationConfig(max_length=26))
    assert len(generate(eight_symbols(), ROWS, GenerationConfig(max_length=25))) == 3


def test_no_sentences_no_texts():
    assert generate(eight_symbols(), ROWS[:0], GenerationConfig()) == []


def repeated(text: tuple[int, ...], size: int) -> set[tuple[int, ...]]:
    counts = Counter(text[i : i + size] for i in range(len(text) - size + 1))
    return {ngram for ngram, count in counts.items() if count > 1}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_blocked_ngrams_do_not_repeat(size):
    cached, rows = decoder(), sources([5, 1, 9, 3])
    cached.model.heads["token"].bias.data[END] = -5.0
    free = generate(cached, rows, GenerationConfig(beam=3, max_length=25))
    blocked = generate(cached, rows, GenerationConfig(beam=3, max_length=25, no_repeat_ngram_size=size))
    assert any(repeated(text, size) for hypotheses in free for text in texts(hypotheses))
    assert not any(repeated(text, size) for hypotheses in blocked for text in texts(hypotheses))


@pytest.mark.parametrize("scheme", [name for name in SCHEMES if SCHEMES[name].prompt])
@pytest.mark.parametrize("options", [{"beam": 3}, {"beam": 4, "sampling": True, "top_k": 6}])
def test_ngrams_of_a_prompt_are_not_written_again(scheme, options):
    """There are four words alone, so that an n-gram across the end of the prompt is soon due again."""
    cached, shared = eight_symbols(scheme), {"max_length": 12, "min_length": 6, "nbest": 3, **options}
    rows = torch.tensor([[5, 6, 7, 5, 2], [7, 6, 2, 1, 1], [3, 2, 1, 1, 1], [2, 1, 1, 1, 1]])
    prompts = [tuple(token for token in row.tolist() if token > 2) for row in rows]
    free, blocked = (
        [
            {ngram for text in texts(some) for ngram in repeated((*prompt, *text), 2)}
            for prompt, some in zip(prompts, generate(cached, rows, GenerationConfig(**shared, **more)), strict=True)
        ]
        for more in ({}, {"no_repeat_ngram_size": 2})
    )
    assert all(free) and not any(blocked)


@pytest.mark.parametrize("size", [1, 2])
def test_a_prompt_of_several_parts_forbids_no_end(size):
    """The separator of its parts is the symbol that ends a text; ``5 6`` ends the first part, and all."""
    prompt = torch.tensor([[5, 6, END, 7, 5, 6, END]])
    config = GenerationConfig(beam=40, nbest=40, max_length=2, min_length=0, no_repeat_ngram_size=size)
    found = texts(generate(eight_symbols("left_to_right"), prompt, config)[0])
    assert () in found and all(not repeated((7, 5, 6, *text), size) for text in found)
    assert size == 1 or (7,) in found  # behind the separator, which is no n-gram's part


def test_ignored_tokens_may_repeat():
    cached, rows = decoder(), sources([5, 1, 9, 3])
    cached.model.heads["token"].bias.data[[7, END]] += torch.tensor([4.0, -8.0])
    config = GenerationConfig(beam=3, max_length=25, no_repeat_ngram_size=1, no_repeat_ngram_ignore=frozenset({7}))
    again = [repeated(text, 1) for hypotheses in generate(cached, rows, config) for text in texts(hypotheses)]
    assert {(7,)} in again and all(some <= {(7,)} for some in again)


def test_where_blocking_leaves_nothing_the_text_ends_early():
    config = GenerationConfig(beam=2, nbest=2, min_length=8, max_length=9, no_repeat_ngram_size=1)
    for hypotheses in generate(eight_symbols(), ROWS, config):
        assert hypotheses and all(sorted(text) == sorted(WORDS) for text in texts(hypotheses))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, "beam must be at least 1, got 0"),
        ({"beam": 2.0}, "beam must be an integer or None, got 2.0"),
        ({"max_length": 0}, "max_length must be at least 1, got 0"),
        ({"min_length": -1}, "min_length must be at least 0, got -1"),
        ({"min_length": 9, "max_length": 8}, "min_length 9 exceeds max_length 8"),
        ({"nbest": 6}, "nbest 6 exceeds beam 5"),
        ({"length_penalty": "gnmt"}, "length_penalty must be one of fairseq, unilm, got 'gnmt'"),
        ({"temperature": 0}, "temperature must be above 0, got 0"),
        ({"sampling": True, "top_p": 0}, "top_p must be above 0 and at most 1, got 0"),
        ({"beam": 10**30}, "^beam must be an integer or None, got an integer of more than 64 bits"),
        ({"lenpen": 10**30}, "^lenpen must be a number, got an integer of more than 64 bits"),
        ({"length_penalty": [1]}, r"^length_penalty must be a text, got \[1\]"),
        ({"top_k": 3}, "top_k 3 says what is drawn from; it needs sampling"),
    ],
)
def test_settings_that_make_no_sense_are_refused(options, message):
    with pytest.raises(UnifiedError, match=message):
        GenerationConfig(**options)
