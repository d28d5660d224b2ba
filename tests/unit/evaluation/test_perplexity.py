"""Perplexity against loops that are written out, and windows of long documents."""

import json
import math

import numpy as np
import pytest
import torch

from tests.support.tiny_models import model, vocabulary
from unified import UnifiedLM, masks
from unified.errors import UnifiedError
from unified.evaluation.patterns import Sampling
from unified.evaluation.perplexity import Perplexity, TextSizes, read_documents, score_documents
from unified.evaluation.scorings import SCORINGS
from unified.evaluation.token_scores import token_scores
from unified.evaluation.windows import scores_in_windows, window_size, windows
from unified.files.text_files import CHUNK_BYTES
from unified.tasks.metrics.bootstrap import bootstrap_intervals
from unified.tokenization.symbol_tokenizer import SymbolTokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer

TEXT = "w1 w2 w3\nw4 w5 w6 w7\n\nw8 w9 w0 w1\nw2 w3 w4 w5 w6 w7 w8\n\n\nw1 é w2\n"


def handle(writes="left_to_right", **changes):
    words = vocabulary()
    return UnifiedLM(model(**changes), words, SymbolTokenizer(words.symbols), writes, None)


def sizes(tokens, counts):
    """Documents with so many tokens, none of them unknown, and equal numbers of words, characters and bytes."""
    return TextSizes(tokens, counts, counts, counts, np.zeros_like(tokens))


@pytest.mark.parametrize("seed", range(20))
def test_windows_score_each_token_once_behind_as_much_context_as_fits(seed):
    rng = np.random.default_rng(seed)
    length, size = (int(n) for n in rng.integers(1, (60, 20)))
    stride = int(rng.integers(1, size + 1))
    found = windows(length, size, stride)
    assert [token for start, stop, given in found for token in range(start + given, stop)] == list(range(length))
    assert all(stop - start == min(size, length) and start >= 0 for start, stop, _ in found)
    assert all(stop - start - given == stride for start, stop, given in found[1:-1])


def test_documents_are_those_of_pretraining_and_counted_in_words_characters_and_bytes(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    rows = [{"body": "w1 w2 w3\nw4 w5 w6 w7"}, {"body": "w8 w9 w0 w1\nw2 w3 w4 w5 w6 w7 w8"}, {"body": "w1 é w2"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lm = handle()
    found = read_documents(tmp_path / "text.txt", lm)
    others = read_documents(tmp_path / "rows.jsonl", lm, "body")
    for own in (found, others):
        sizes = own.sizes
        assert [len(tokens) for tokens in own.tokens] == sizes.tokens.tolist() == sizes.words.tolist() == [7, 11, 3]
        assert sizes.characters.tolist() == [20, 32, 7] and sizes.bytes.tolist() == [20, 32, 8]
        assert sizes.unknown.tolist() == [0, 0, 1]
    assert all(np.array_equal(a, b) for a, b in zip(found.tokens, others.tokens, strict=True))
    (tmp_path / "rows.jsonl").write_text(json.dumps({"text": "w1 w2"}) + "\n")
    assert read_documents(tmp_path / "rows.jsonl", lm).sizes.words.tolist() == [2]
    (tmp_path / "windows.txt").write_bytes(b"w1 w2\r\nw3\r\n\r\nw4\r\n")
    assert read_documents(tmp_path / "windows.txt", lm).sizes.bytes.tolist() == [8, 2]
    pieces = WordPieceTokenizer([*vocabulary().symbols[:5], "[UNK]", "[CLS]", "[SEP]", "[MASK]", "w1"])
    (tmp_path / "invisible.txt").write_text("w1\n\n\u200b\n\nw1 w1\n")
    by_pieces = UnifiedLM(lm.model, lm.vocabulary, pieces, "left_to_right", None)
    assert read_documents(tmp_path / "invisible.txt", by_pieces).sizes.words.tolist() == [1, 2]
    (tmp_path / "empty.txt").write_text("\n \n")
    with pytest.raises(UnifiedError, match="empty.txt: holds no text"):
        read_documents(tmp_path / "empty.txt", lm)


def test_a_document_that_is_read_in_several_chunks_is_one(tmp_path):
    line = "w1 " * 3000 + "w2\n"
    count = CHUNK_BYTES // len(line) + 2
    (tmp_path / "text.txt").write_text(line * count + "\nw3 w4\n")
    assert read_documents(tmp_path / "text.txt", handle()).sizes.words.tolist() == [3001 * count, 2]


def test_perplexity_is_that_of_a_loop_over_windows_and_tokens(tmp_path):
    (tmp_path / "text.txt").write_text(TEXT)
    lm = handle()
    documents = read_documents(tmp_path / "text.txt", lm)
    found = score_documents(lm, documents, SCORINGS["left_to_right"], size=5, stride=2).scores()
    nats = 0.0
    for tokens in documents.tokens:
        for index in range(len(tokens)):
            # Windows end at 5, 7, 9, ...; the first one scores all of itself.
            stop = min(max(5, index + 1 + (index % 2 == 1)), len(tokens))
            seen = [lm.special.begin, *tokens[max(0, stop - 5) : index], lm.special.mask]
            types = torch.full((1, len(seen)), 2)
            states = lm.model.transformer(
                torch.tensor([seen]), torch.arange(len(seen))[None], types, masks.left_to_right(len(seen))
            )
            nats -= float(lm.model.logits(states[0, -1:])[0].detach().double().log_softmax(-1)[tokens[index]])
    assert found["log_likelihood"] == pytest.approx(-nats, abs=1e-4)
    assert found["token_perplexity"] == pytest.approx(math.exp(nats / 21))
    assert found["word_perplexity"] == pytest.approx(math.exp(nats / 21))
    assert found["bits_per_character"] == pytest.approx(nats / math.log(2) / 59)
    assert found["bits_per_byte"] == pytest.approx(nats / math.log(2) / 60)
    counts = {name: found[name] for name in ("documents", "tokens", "words", "characters", "bytes", "unknown")}
    assert counts == {"documents": 3, "tokens": 21, "words": 21, "characters": 59, "bytes": 60, "unknown": 1}


def test_a_text_that_fits_is_one_window_and_another_scoring_counts_as_its_own():
    lm, text = handle(), np.array([5, 6, 7, 8])
    for name in ("pseudo_likelihood", "diffusion"):
        [whole] = scores_in_windows(lm, [text], SCORINGS[name], size=4, stride=2)
        assert whole.log_probs.shape == (4,) and whole.total < 0
    one_sided = SCORINGS["left_to_right"]
    assert window_size(lm, one_sided) == window_size(lm, one_sided, 46) == 46 and window_size(lm, one_sided, 7) == 7
    assert window_size(handle("next"), one_sided) == 45
    with pytest.raises(UnifiedError, match="windows of 47 tokens: the model reads 46 beside its special symbols"):
        window_size(lm, one_sided, 47)
    assert window_size(handle("permutation", positions="relative"), one_sided) == 512


def test_windows_are_scored_with_the_draws_that_are_asked_for_and_counted():
    lm, text, told = handle(), np.array([5, 6, 7, 8, 9, 10]), []
    scoring, sampling = SCORINGS["permutation"], Sampling(3, seed=7)
    (found,) = scores_in_windows(lm, [text], scoring, size=4, stride=2, sampling=sampling, done=told.append)
    first, second = token_scores(lm, [text[:4], text[2:]], scoring, given=[0, 2], sampling=sampling)
    assert found.log_probs.tolist() == pytest.approx([*first.log_probs, *second.log_probs[2:]], abs=1e-6)
    assert sum(told) == 2


def test_a_perplexity_of_e_to_the_700_or_more_is_infinite():
    counts = np.array([2])
    for nats, expected in ((699.9, math.exp(699.9)), (700.0, math.inf), (1e6, math.inf)):
        own = Perplexity(sizes(np.array([2]), counts), np.array([-2 * nats]))
        assert own.measures()["token_perplexity"] == own.measures()["word_perplexity"] == pytest.approx(expected)


def test_intervals_are_over_documents():
    counts = np.array([10, 20])
    own = Perplexity(sizes(np.array([10, 20]), counts), np.array([-10.0, -40.0]))
    assert own.measures()["token_perplexity"] == pytest.approx(math.exp(50 / 30))
    assert own.measures(np.array([2.0, 0]))["word_perplexity"] == pytest.approx(math.e)
    low, high = bootstrap_intervals(own, samples=50)["token_perplexity"]
    assert (low, high) == (pytest.approx(math.e), pytest.approx(math.e**2))


@pytest.mark.parametrize(("length", "ends"), [(11, [5, 5, 7, 7, 9, 9]), (10, [5, 6, 6, 8, 8]), (4, [])])
def test_windows_from_right_to_left_have_their_context_behind(length, ends):
    """Windows of 5 tokens, of which all but the last one score 2; positions are distances, so parts say the same."""
    lm, scoring = handle(positions="relative"), SCORINGS["right_to_left"]
    text = np.random.default_rng(0).integers(5, 15, length)
    (found,) = scores_in_windows(lm, [text], scoring, size=5, stride=2)
    stops = ends + [length] * (length - len(ends))
    single = [token_scores(lm, [text[index:stop]], scoring)[0] for index, stop in enumerate(stops)]
    assert found.log_probs.tolist() == pytest.approx([one.log_probs[0] for one in single], abs=1e-5)
    assert found.greedy.tolist() == [one.greedy[0] for one in single]


def test_rows_without_text_are_left_out_and_scores_that_are_no_numbers_refused(tmp_path):
    rows = [{"text": "w1 w2"}, {"text": ""}, {"text": " "}, {"text": "w3"}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lm = handle()
    documents = read_documents(tmp_path / "rows.jsonl", lm)
    assert documents.sizes.words.tolist() == [2, 1]
    lm.model.heads["token"].bias.data[5] = float("nan")
    with pytest.raises(UnifiedError, match="^the model's scores are not numbers; its parameters seem to be damaged$"):
        score_documents(lm, documents, SCORINGS["left_to_right"], size=5, stride=2)
