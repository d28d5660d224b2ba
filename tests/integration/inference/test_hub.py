"""``UnifiedLM`` on checkpoint files: the same numbers as the model in them; and what it refuses."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.checkpoint_samples import TEXT, checkpoint, data_folder
from tests.support.tiny_models import next_logits
from unified import UnifiedLM, masks
from unified.checkpoints import load_checkpoint, save
from unified.checkpoints.trained import contents
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.generation import GenerationConfig, score
from unified.inference.sequences import Codec
from unified.model import UnifiedModel
from unified.tasks.composing import ask


@pytest.fixture(scope="module")
def samples(tmp_path_factory) -> Path:
    """``pairs`` and ``documents`` are data folders, ``run/*.pt`` checkpoints of models with the same weights."""
    folder = tmp_path_factory.mktemp("hub")
    vocabulary = data_folder(folder / "pairs", pairs=True)
    data_folder(folder / "documents", pairs=False)
    for writes in ("cloze", "next", "left_to_right"):
        checkpoint(folder / "run" / f"{writes}.pt", vocabulary, str(folder / "pairs"), writes)
    return folder


def loaded(samples: Path, writes: str = "cloze") -> UnifiedLM:
    return UnifiedLM.from_pretrained(samples / "run" / f"{writes}.pt")


def greedy(lm: UnifiedLM, scheme: str, text: str, most: int) -> list[int]:
    """A loop of full forward passes."""
    special, written = lm.special, []
    source = torch.tensor([*lm.encode(text), special.separator])
    while len(written) < most:
        logits = next_logits(lm.model, special, scheme, source, written)
        logits[[special.begin, special.pad, special.mask] + [special.separator] * (not written)] = -torch.inf
        if int(logits.argmax()) == special.separator:
            break
        written.append(int(logits.argmax()))
    return written


@pytest.mark.parametrize("writes", ["cloze", "next", "left_to_right"])
@torch.no_grad()
def test_greedy_texts_are_those_of_the_model_in_the_file(samples, writes):
    lm = loaded(samples, writes)
    assert not lm.model.training
    written = lm.generate(TEXT, beam=1, max_length=12)
    for text, result in zip(TEXT, written, strict=True):
        start = lm.encode(text) if writes == "left_to_right" else []
        assert result == lm.decode(start + greedy(lm, writes, text, 12))
    assert len(set(written)) == 3


def with_boundary_head(lm: UnifiedLM, reach: int) -> UnifiedLM:
    torch.manual_seed(0)
    model = UnifiedModel.for_language(replace(lm.model.config, boundary_offsets=reach, initializer_range=0.3))
    return UnifiedLM(model, lm.vocabulary, lm.tokenizer, lm.writes, lm.folder)


@torch.no_grad()
def test_fill_span_asks_the_boundary_head_of_each_run(samples):
    lm = with_boundary_head(loaded(samples), 4)
    results = lm.fill_span("The <mask><mask> cat <mask> sat", top=3)
    hidden = [lm.special.mask]
    ids = [0, *lm.encode("The "), *hidden, *hidden, *lm.encode("cat "), *hidden, *lm.encode(" sat"), 2]
    tokens, indices = torch.tensor([ids]), torch.arange(len(ids))[None]
    seen = masks.batch([masks.bidirectional(len(ids))])
    states = lm.model.transformer(tokens, indices, torch.zeros_like(indices), seen)[0]
    gaps = (tokens[0] == lm.special.mask).nonzero().ravel().tolist()
    assert len(results) == len(gaps) == 3 and gaps[1] == gaps[0] + 1 and gaps[2] > gaps[1] + 1
    ends = [(gaps[0] - 1, gaps[1] + 1, 0), (gaps[0] - 1, gaps[1] + 1, 1), (gaps[2] - 1, gaps[2] + 1, 0)]
    for result, (before, behind, distance) in zip(results, ends, strict=True):
        scores = lm.model.heads["boundary"](
            states[[before]], states[[behind]], torch.tensor([distance]), lm.model.symbols
        )[0]
        best = scores.softmax(-1).topk(3)
        assert [symbol for symbol, _ in result] == [lm.vocabulary.symbols[i] for i in best.indices.tolist()]
        assert [p for _, p in result] == pytest.approx(best.values.tolist(), rel=1e-5)


@pytest.mark.parametrize(
    ("text", "reach", "message"),
    [
        ("a <mask> b", 0, "no span-boundary head"),
        ("a <mask><mask><mask> b", 2, "a run of 3 <mask> is longer than the span-boundary head reaches: 2"),
        ("<mask> b", 4, "at an end of the text"),
        ("a <mask>", 4, "at an end of the text"),
        ("a b", 4, "at least one <mask>"),
    ],
)
def test_fill_span_refuses(samples, text, reach, message):
    with pytest.raises(UnifiedError, match=message):
        with_boundary_head(loaded(samples), reach).fill_span(text)


@torch.no_grad()
def test_any_model_continues_prompts_and_answers_sources_when_asked(samples):
    for writes, prompt, scheme in (("cloze", True, "left_to_right"), ("next", True, "left_to_right"),
                                   ("left_to_right", False, "cloze")):  # fmt: skip
        lm = loaded(samples, writes)
        (result,) = lm.generate(["the cat"], prompt=prompt, beam=1, max_length=9)
        start = lm.encode("the cat") if prompt else []
        assert result == lm.decode(start + greedy(lm, scheme, "the cat", 9))
        assert not prompt or result.startswith("the cat")


def test_batches_do_not_matter_and_n_best_comes_in_order(samples):
    lm = loaded(samples)
    options = {"beam": 4, "nbest": 3, "max_length": 10}
    results = lm.generate(TEXT * 2, batch_size=4, **options)
    assert results == lm.generate(TEXT * 2, batch_size=1, **options)
    assert results[:3] == results[3:] and all(len(some) == 3 for some in results)
    config = GenerationConfig(**options)
    ids = [lm.encode(text) for text in TEXT]
    for some in lm.hypotheses(ids, config):
        assert [h.score for h in some] == sorted((h.score for h in some), reverse=True)
    assert [some[0] for some in results[:3]] == lm.generate(TEXT, beam=4, max_length=10)
    assert lm.generate([], beam=2) == []


@pytest.mark.parametrize("writes", ["cloze", "left_to_right"])
@torch.no_grad()
def test_scores_are_the_models_log_probabilities(samples, writes):
    lm = loaded(samples, writes)
    sources, targets = ["the cat", "a", "on monday"], ["The cat.", "A dog", "O"]
    results = lm.score(sources, targets, batch_size=2)
    for source, target, values in zip(sources, targets, results, strict=True):
        ids = lm.encode(target) + ([lm.special.separator] if writes == "cloze" else [])
        given = torch.tensor([*lm.encode(source), lm.special.separator])
        assert len(values) == len(ids)
        for i, value in enumerate(values):
            log_probs = next_logits(lm.model, lm.special, writes, given, ids[:i]).log_softmax(-1)
            assert value == pytest.approx(float(log_probs[ids[i]]), abs=1e-4)


@torch.no_grad()
def test_fill_mask_reads_in_both_directions(samples):
    lm = loaded(samples)
    results = lm.fill_mask("The <mask> at sat<mask>", top=4)
    ids = [0, *lm.encode("The "), lm.special.mask, *lm.encode("at sat"), lm.special.mask, 2]
    indices = [i for i, token in enumerate(ids) if token == lm.special.mask]
    tokens = torch.tensor([ids])
    mask = masks.batch([masks.bidirectional(len(ids))])
    states = lm.model.transformer(tokens, torch.arange(len(ids))[None], torch.zeros_like(tokens), mask)
    expected = lm.model.logits(states[0, indices]).softmax(-1)
    for row, result in zip(expected, results, strict=True):
        assert [symbol for symbol, _ in result] == [lm.vocabulary.symbols[i] for i in row.topk(4).indices]
        assert [p for _, p in result] == pytest.approx(row.topk(4).values.tolist(), abs=1e-5)
    assert lm.fill_mask("<mask> cat") != lm.fill_mask("<mask> dog")


def test_encode_and_decode_go_there_and_back(samples):
    lm = loaded(samples)
    for text in TEXT:
        ids = lm.encode(text)
        assert lm.decode(ids) == text
        assert lm.decode([lm.special.begin, *ids, lm.special.separator, lm.special.pad]) == text


def test_ignored_symbols_may_be_named(samples):
    lm = loaded(samples)
    ids = GenerationConfig.of_options(
        lm.vocabulary, no_repeat_ngram_size=3, no_repeat_ngram_ignore=[".", 7]
    ).no_repeat_ngram_ignore
    assert ids == {lm.vocabulary.index("."), 7}
    with pytest.raises(UnifiedError, match="no_repeat_ngram_ignore: 'xyz' is not a symbol"):
        lm.generate(["a"], no_repeat_ngram_ignore=["xyz"])
    with pytest.raises(
        UnifiedError, match=r"unknown option 'beams' \(did you mean 'beam'\?\); generation knows beam, max_length"
    ):
        lm.generate(["a"], beams=3)


def test_by_default_texts_may_be_as_long_as_the_positions_allow(samples):
    lm = loaded(samples)
    lm.model.heads["token"].bias.data[lm.special.separator] = -100.0  # never ends by itself
    ids = lm.encode("the cat")
    (hypotheses,) = lm.hypotheses([ids], GenerationConfig(beam=1, max_length=96 - 3 - len(ids)))
    assert len(hypotheses[0].tokens) == 96 - 3 - len(ids)
    assert lm.generate(["the cat", "a"], beam=1)[0] == lm.decode(hypotheses[0].tokens)


# Where the parts come from


def test_a_folder_gives_its_best_checkpoint_else_its_last(samples, tmp_path):
    vocabulary = Vocabulary.load(samples / "documents" / "dict.txt")
    with pytest.raises(UnifiedError, match=r"holds neither checkpoint_best\.pt nor checkpoint_last\.pt"):
        UnifiedLM.from_pretrained(tmp_path)
    for name, layers in (("checkpoint_last.pt", 1), ("checkpoint_best.pt", 3)):
        checkpoint(tmp_path / name, vocabulary, str(samples / "documents"), layers=layers)
        assert UnifiedLM.from_pretrained(tmp_path).model.config.layers == layers


def test_data_is_given_or_beside_the_checkpoint_or_where_it_was(samples, tmp_path):
    assert loaded(samples).folder == samples / "pairs"
    path = samples / "run" / "cloze.pt"
    assert UnifiedLM.from_pretrained(path, data=samples / "documents").folder == samples / "documents"
    vocabulary = data_folder(tmp_path / "moved", pairs=False)
    checkpoint(tmp_path / "moved" / "model.pt", vocabulary, "/nowhere")
    assert UnifiedLM.from_pretrained(tmp_path / "moved" / "model.pt").folder == tmp_path / "moved"
    checkpoint(tmp_path / "alone" / "model.pt", vocabulary, "/nowhere")
    with pytest.raises(UnifiedError, match="there is no dictionary now in /nowhere, on which it was trained"):
        UnifiedLM.from_pretrained(tmp_path / "alone" / "model.pt")
    with pytest.raises(UnifiedError, match=r"holds no dict\.txt"):
        UnifiedLM.from_pretrained(path, data=tmp_path)


def test_a_folder_without_tokenizer_takes_symbols_separated_by_blanks(tmp_path):
    vocabulary = Vocabulary(["the", "cat"])
    (tmp_path / "data").mkdir()
    vocabulary.save(tmp_path / "data" / "dict.txt")
    checkpoint(tmp_path / "model.pt", vocabulary, str(tmp_path / "data"))
    lm = UnifiedLM.from_pretrained(tmp_path / "model.pt")
    assert lm.encode("the  cat dog") == [4, 5, 3] and lm.decode([4, 5]) == "the cat"
    # Tasks ask their tokenizer for more, and `unified predict --output` for a hash of it.
    codec = Codec.for_model(lm.model.config, lm.tokenizer, vocabulary, longest=16)
    (tokens,) = codec.encode(["the  cat dog"])
    ((again, indices),) = codec.encode_offsets(["the  cat dog"])
    assert tokens.tolist() == again.tolist() == [4, 5, 3] and indices.tolist() == [[0, 3], [5, 8], [9, 12]]
    assert list(contents([], vocabulary, lm.tokenizer)) == ["dict.txt"]


def test_another_dictionary_is_refused(samples, tmp_path):
    path = samples / "run" / "cloze.pt"
    vocabulary = Vocabulary.load(samples / "documents" / "dict.txt")
    ordinary = vocabulary.symbols[4:-101]
    for symbols, message in ((ordinary[:-1], "has .* symbols, but the dictionary in"),
                             (ordinary[::-1], "was trained with another dictionary .* of the same size")):  # fmt: skip
        Vocabulary(symbols).save(tmp_path / "dict.txt")
        with pytest.raises(UnifiedError, match=message):
            UnifiedLM.from_pretrained(path, data=tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.pop("cfg"), "not a checkpoint of a unified_lm model"),
        (lambda c: c.pop("model"), "not a checkpoint of a unified_lm model"),
        (lambda c: c["cfg"]["model"].pop("writes"), r"does not say how the model writes \(writes=None\)"),
        (lambda c: c["model"].pop("core.heads.token.bias"), "missing: heads.token.bias"),
        (lambda c: c["model"].update({"core.extra": torch.zeros(1)}), "unknown: extra"),
        (
            lambda c: c["model"].update(dictionary_version=torch.tensor(float("nan"))),
            "was trained with another dictionary .* of the same size",
        ),
        (lambda c: c["cfg"]["model"].update(width=16), "shape .*, the settings say"),
        (lambda c: c["cfg"]["model"].update(heads=5), "width must be a multiple of heads, got width 32 and heads 5"),
    ],
)
def test_checkpoints_that_do_not_fit_are_refused(samples, tmp_path, change, message):
    content = load_checkpoint(samples / "run" / "cloze.pt")
    change(content)
    save(content, tmp_path / "model.pt")
    with pytest.raises(UnifiedError, match=message):
        UnifiedLM.from_pretrained(tmp_path / "model.pt", data=samples / "pairs")


def test_long_text_is_the_best_of_several_samples_without_repeated_ngrams(samples):
    """Draws among the most probable tokens, no 4-gram twice, continue a prompt; the model ranks them (UniLM, 3.5)."""
    lm = loaded(samples, "left_to_right")
    prompts = ["The cat ", "On Monday the bird sang"]
    shared = {"prompt": True, "sampling": True, "max_length": 40, "seed": 3}
    options = {**shared, "top_k": 5, "no_repeat_ngram_size": 4, "beam": 10, "nbest": 10}
    found = lm.hypotheses([lm.encode(prompt) for prompt in prompts], GenerationConfig(
        **{name: value for name, value in options.items() if name != "prompt"}), prompt=True)  # fmt: skip
    decoder = lm.decoder(prompt=True)
    for prompt, hypotheses in zip(prompts, found, strict=True):
        assert len(hypotheses) == 10 and len({tuple(h.tokens.tolist()) for h in hypotheses}) > 5
        start = lm.encode(prompt)
        means = []
        for hypothesis in hypotheses:
            text = [*start, *hypothesis.tokens.tolist()]
            ngrams = [tuple(text[i : i + 4]) for i in range(len(text) - 3)]
            assert len(set(ngrams)) == len(ngrams)
            target = hypothesis.tokens if len(hypothesis.tokens) == 40 else torch.tensor([*hypothesis.tokens, 2])
            means.append(float(score(decoder, torch.tensor([[*start, 2]]), target[None])[0].mean()))
        assert means == sorted(means, reverse=True) and means[0] > means[-1] + 0.1
    # The best alone is what is returned by default.
    assert lm.generate(prompts, **{**options, "nbest": 1}) == [some[0] for some in lm.generate(prompts, **options)]
    repeating = lm.generate(prompts, **shared, top_k=2, beam=10, nbest=10)
    texts = [lm.encode(text) for some in repeating for text in some]
    assert any(len({tuple(t[i : i + 4]) for i in range(len(t) - 3)}) < len(t) - 3 for t in texts)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda lm: lm.fill_mask("no gap"), "a text with at least one <mask> is needed, got 'no gap'"),
        (lambda lm: lm.fill_mask(["a <mask>"]), r"text: expected one text, got list \['a <mask>'\]"),
        (lambda lm: lm.fill_span(["a <mask> b"]), "text: expected one text, got list"),
        (lambda lm: lm.fill_mask("a <mask>", top=0), "top must be an integer of at least 1, got 0"),
        (lambda lm: lm.fill_mask("a <mask>", top="5"), "top must be an integer of at least 1, got '5'"),
        (lambda lm: lm.generate([3]), "source: expected a list of texts, got int 3"),
        (lambda lm: lm.generate([["a", None]]), r"source\[1\]: expected one text, got NoneType None"),
        (lambda lm: lm.generate(["a"], batch_size="3"), "batch_size must be an integer of at least 1, got '3'"),
        (lambda lm: lm.generate(["a"], temperature="hot"), "temperature must be a number, got 'hot'"),
        (lambda lm: lm.generate(["a"], sampling="no"), "sampling must be True or False, got 'no'"),
        (
            lambda lm: lm.generate(["a"], no_repeat_ngram_ignore=5),
            "no_repeat_ngram_ignore must be a list of symbols or ids, got 5",
        ),
        (lambda lm: lm.embed(["a"], max_tokens="2"), "max_tokens must be an integer of at least 0, got '2'"),
        (lambda lm: lm.score(["a"], [None]), "text: expected one text, got NoneType None"),
        (lambda lm: lm.encode(["a"]), r"text: expected one text, got list \['a'\]"),
        (lambda lm: lm.decode([10**6]), "ids must be from 0 to 129, got 1000000"),
        (lambda lm: lm.decode([-1]), "ids must be from 0 to 129, got -1"),
        (lambda lm: ask(lm, ["the cat"], "cat"), r"passage: expected one text, got list \['the cat'\]"),
        (lambda lm: ask(lm, "the cat", None), "answer: expected one text, got NoneType None"),
        (lambda lm: lm.fill_mask("<mask>" + "a " * 60), "tokens with its special symbols, the model takes 96"),
        (lambda lm: lm.generate("a text"), "texts: expected a list of texts, got one text"),
        (
            lambda lm: lm.generate(["a", "b" * 90], max_length=20, max_source=0),
            "sentence 1: 91 tokens, .* leave room for 73",
        ),
        (lambda lm: lm.generate(["a"], batch_size=0), "batch_size must be an integer of at least 1, got 0"),
        (
            lambda lm: lm.generate(["a" * 96], max_source=0),
            "sentence 0: 97 tokens, but .* leave room for 69 beside the 24",
        ),
        (
            lambda lm: lm.generate(["a" * 96], prompt=True),
            "sentence 0: 97 tokens, but .* leave room for 92 beside the 1 ",
        ),
        (lambda lm: lm.generate(["a"], max_length=93), "leave none for a source beside a target of 93 tokens"),
        (
            lambda lm: lm.generate(["a"], max_source=-1),
            r"max_source must be 0 \(whole texts\) or a number of tokens, got -1",
        ),
        (lambda lm: lm.score(["a"], ["b", "c"]), "1 source but 2 targets"),
        (lambda lm: lm.score(["a" * 60], ["b" * 60], max_source=0), "positions are needed"),
        (lambda lm: lm.score(["a"], ["b" * 93]), "leave none for a source beside a target of 94 tokens"),
    ],
)
def test_input_that_cannot_be_used_is_refused(samples, call, message):
    with pytest.raises(UnifiedError, match=message):
        call(loaded(samples))


def test_a_model_writes_without_fairseq_and_without_torchs_compiler(samples):
    """Each takes seconds to import; torch imports its compiler to draw first values on the device ``meta``."""
    program = f"""
import sys
from unified import UnifiedLM
UnifiedLM.from_pretrained({str(samples / "run" / "cloze.pt")!r}).generate(["a"], beam=2, max_length=3)
sys.exit(bool({{"fairseq", "torch._dynamo"}} & sys.modules.keys()))
"""
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
