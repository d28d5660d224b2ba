"""Samples of a language model: words that it fills in, texts that it goes on with, and texts that it writes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.task_folders import WORDS, language_model, tokenizer, vocabulary
from unified.data.token_files import TokenFileWriter
from unified.generation.lengths import PairLengths
from unified.inference.language_model import UnifiedLM
from unified.inference.length_rules import LengthRules
from unified.reports.run_page import Sample
from unified.tasks.language_samples import continuation, language_samples
from unified.tokenization import tokenizer_files

#: Sentences of 4 to 61 words; five to sixty are enough and not too many.
LENGTHS = (4, 5, 6, 8, 20, 60, 61)
TEXTS = [" ".join(WORDS[(length + i) % 30] for i in range(length)) for length in LENGTHS]


def model(folder: Path, writes: str = "nothing", **shape) -> UnifiedLM:
    return UnifiedLM.from_pretrained(
        language_model(folder, writes=writes, token_types=6, initializer_range=0.4, **{"max_positions": 128} | shape)
    )


def always_says(lm: UnifiedLM, word: str) -> UnifiedLM:
    """The model, which predicts this word everywhere."""
    parameters = dict(lm.model.named_parameters())
    parameters["heads.token.bias"].data[lm.vocabulary.index(word)] = 1000.0
    return lm


def split(path: Path, texts: list[str]) -> None:
    known, divided = vocabulary(), tokenizer()
    with TokenFileWriter(path, "uint16") as writer:
        for text in texts:
            writer.add([*known.encode(divided.encode(text)), known.special.separator])


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    for name in ("train", "valid"):
        split(folder / name, TEXTS if name == "valid" else ["w0 w1 w2 w3 w4 w5"])
    return folder


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("pairs")
    for side, texts in (("source", TEXTS[:4]), ("target", [f"w{i}" for i in range(4)])):
        split(folder / f"valid.source-target.{side}", texts)
    return folder


def test_a_word_is_hidden_and_the_model_says_what_it_takes_it_for(tmp_path, documents):
    lm = model(tmp_path / "lm")
    found = language_samples(lm, documents, 20, random.Random(1))
    shown = []
    for sample in found:
        words = sample.fields["sentence"].split()
        place = words.index("<mask>")
        words[place] = sample.fields["hidden word"]
        shown.append(len(words))
        assert " ".join(words) in TEXTS and list(sample.fields) == ["sentence", "hidden word", "model"]
        best = lm.fill_mask(sample.fields["sentence"], top=3)[0]
        assert sample.fields["model"] == ", ".join(f"“{symbol}” {share:.0%}" for symbol, share in best)
    assert sorted(shown) == [5, 6, 8, 20, 60]


def test_a_hidden_word_is_right_where_the_model_says_it(tmp_path):
    lm = always_says(model(tmp_path / "lm"), "w5")
    split(tmp_path / "valid", ["w5 w5 w5 w5 w5", "w4 w4 w4 w4 w4"])
    found = {sample.fields["hidden word"]: sample for sample in language_samples(lm, tmp_path, 9, random.Random(1))}
    assert {word: sample.right for word, sample in found.items()} == {"w5": True, "w4": False}
    assert all(sample.fields["model"].startswith("“w5” 100%, ") for sample in found.values())


def test_the_seed_draws_texts_and_words(tmp_path, documents):
    lm = model(tmp_path / "lm")
    drawn = [
        [sample.fields["sentence"] for sample in language_samples(lm, documents, 2, random.Random(seed))]
        for seed in (1, 1, 2, 3)
    ]
    assert drawn[0] == drawn[1] and len({tuple(one) for one in drawn}) > 1 and all(len(one) == 2 for one in drawn)


def test_a_model_that_goes_on_with_texts_does_so_behind_their_first_half(tmp_path, documents):
    lm = model(tmp_path / "lm", "left_to_right")
    found = language_samples(lm, documents, 2, random.Random(1))
    assert [list(sample.fields)[0] for sample in found] == ["sentence"] * 2 + ["beginning"] * 2
    order = random.Random(1).sample(range(len(TEXTS)), len(TEXTS))
    fitting = [TEXTS[i] for i in order if 5 <= LENGTHS[i] <= 60][:2]
    for sample, text in zip(found[2:], fitting, strict=True):
        words = text.split()
        begun, rest = " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
        assert sample.fields == {
            "beginning": begun, "as it goes on": rest, "model": lm.generate([begun], max_length=30, beam=1)[0],
        }  # fmt: skip
        assert sample.right is None and sample.fields["model"].startswith(f"{begun} ")


def test_four_times_as_many_texts_are_tried_as_are_shown(tmp_path):
    unknown = "x1 x2 x3 x4 x5"
    lm = model(tmp_path / "lm")
    for count in (3, 4):  # texts without a known word before the one that has some
        for seed in range(40):
            order = random.Random(seed).sample(range(count + 1), count + 1)
            if order[-1] == count:
                break
        folder = tmp_path / f"texts{count}"
        folder.mkdir()
        split(folder / "valid", [unknown] * count + ["w1 w2 w3 w4 w5"])
        assert len(language_samples(lm, folder, 1, random.Random(seed))) == (count == 3)


def test_a_text_that_the_positions_have_no_room_for_is_passed_over(tmp_path, documents):
    samples = {}
    for limit in (64, 128):
        lm = model(tmp_path / f"{limit}", max_positions=limit)
        found = language_samples(lm, documents, 9, random.Random(1))
        samples[limit] = sorted(len(lm.encode(sample.fields["sentence"])) for sample in found)
    assert samples[64] == [length for length in samples[128] if length + 4 <= 64]
    longest = samples[128][-1]
    for limit, count in ((longest + 4, 5), (longest + 3, 4)):
        lm = model(tmp_path / f"just {limit}", max_positions=limit)
        assert len(language_samples(lm, documents, 9, random.Random(1))) == count


def test_what_is_written_behind_a_beginning_has_room_in_the_positions(tmp_path, documents):
    for limit, shown in (
        (34, [5, 6, 8, 20, 60]),
        (33, [5, 6, 8, 20]),
        (16, [5, 6, 8, 20]),
        (13, [5, 6, 8]),
    ):
        lm = model(tmp_path / f"{limit}", "left_to_right", max_positions=limit)
        found = language_samples(lm, documents, 7, random.Random(1))
        begun = [sample.fields for sample in found if "beginning" in sample.fields]
        assert sorted(len(f"{one['beginning']} {one['as it goes on']}".split()) for one in begun) == shown
        for one in begun:
            most = min(30, lm.length_rules.tokens_left(len(one["beginning"].split())))
            assert most > 0 and one["model"] == lm.generate([one["beginning"]], max_length=most, beam=1)[0]


def test_a_model_of_pairs_writes_from_their_sources(tmp_path, pairs):
    lm = model(tmp_path / "lm", "cloze")
    found = language_samples(lm, pairs, 3, random.Random(2))
    order = random.Random(2).sample(range(4), 4)[:3]
    written = lm.generate([TEXTS[i] for i in order], beam=1)
    assert [list(sample.fields.items()) for sample in found] == [
        [("source", TEXTS[i]), ("right", f"w{i}"), ("model", text)] for i, text in zip(order, written, strict=True)
    ]
    assert len(language_samples(lm, pairs, 9, random.Random(2))) == 4
    assert language_samples(model(tmp_path / "no", "nothing"), pairs, 3, random.Random(2)) == []


def test_a_text_is_right_where_it_is_the_target(tmp_path, pairs):
    lm = always_says(model(tmp_path / "lm", "cloze"), "w2")
    lm.lengths = PairLengths(longest_target=1)
    found = language_samples(lm, pairs, 4, random.Random(2))
    assert {sample.fields["model"] for sample in found} == {"w2"}
    assert {sample.fields["right"]: sample.right for sample in found} == {
        "w0": False, "w1": False, "w2": True, "w3": False,
    }  # fmt: skip


def test_a_model_of_pairs_goes_on_with_no_document(tmp_path, documents):
    found = language_samples(model(tmp_path / "lm", "cloze"), documents, 2, random.Random(1))
    assert [list(sample.fields)[0] for sample in found] == ["sentence"] * 2


def test_without_validation_texts_or_a_head_for_tokens_there_are_no_samples(tmp_path, documents):
    lm = model(tmp_path / "lm")
    split(tmp_path / "train", TEXTS)
    assert language_samples(lm, tmp_path, 3, random.Random(1)) == []
    headless = model(tmp_path / "headless", token_head="none")
    assert language_samples(headless, documents, 3, random.Random(1)) == []


def test_a_word_that_the_model_does_not_know_is_not_hidden(tmp_path):
    """Without a tokenizer words are symbols of the dictionary, and an unknown one is a token, too."""
    folder = language_model(tmp_path / "lm", token_types=6)
    for name in tokenizer_files(folder):
        (folder / name).unlink()
    lm = UnifiedLM.from_pretrained(folder)
    assert lm.encode("x1") == [lm.special.unknown]
    (tmp_path / "data").mkdir()
    split(tmp_path / "data" / "valid", ["x1 x2 x3 x4 w5", "x1 x2 x3 x4 x5"])
    for seed in range(5):
        [sample] = language_samples(lm, tmp_path / "data", 3, random.Random(seed))
        assert sample.fields["hidden word"] == "w5"


@pytest.mark.parametrize("room", [0, 1, 5])
def test_a_text_goes_on_where_a_token_has_room(room):
    class Model:
        """Says how much it was allowed to write."""

        def encode(self, text):
            return text.split()

        length_rules = LengthRules(PairLengths(), 2 + room + 3)  # beside what is read and three special symbols

        def generate(self, sources, beam, max_length):
            return [f"{max_length} more"] * len(sources)

    found = continuation(Model(), "a b c d e")
    expected = {"beginning": "a b", "as it goes on": "c d e", "model": f"{room} more"}
    assert found == (Sample(expected) if room else None)
