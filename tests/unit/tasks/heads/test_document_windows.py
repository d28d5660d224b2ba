"""Windows of long documents beside a loop over their words, and the numbers that every token of them has."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tests.support import understanding_runs as runs
from tests.support.trained_tokenizers import byte_level_codec
from unified.tasks.heads.document_windows import encode_documents, window_starts
from unified.tasks.heads.documents import DocumentItem

LETTERS = ["a", "##b"]  # "a" is one piece, "abb" are three


def windows_by_definition(sizes: list[int], lengths: list[int], most: int) -> tuple[list[int], bool]:
    """Sentence after sentence: into the last window where it fits, else into a new one; too long ones are divided."""
    windows: list[list[int]] = [[]]
    word, whole = 0, True
    for length in lengths:
        own = list(range(word, word + length))
        word += length
        if windows[-1] and sum(sizes[i] for i in [*windows[-1], *own]) > most:
            windows.append([])
        for i in own:
            if windows[-1] and sum(sizes[j] for j in [*windows[-1], i]) > most:
                windows.append([])
                whole = False
            windows[-1].append(i)
    return [window[0] for window in windows], whole


def test_windows_take_whole_sentences_where_they_fit():
    rng = random.Random(1)
    for _ in range(1000):
        lengths = [rng.randint(1, 6) for _ in range(rng.randint(1, 6))]
        most = rng.randint(3, 9)
        sizes = [rng.randint(1, min(3, most)) for _ in range(sum(lengths))]
        expected = windows_by_definition(sizes, lengths, most)
        assert window_starts(np.array(sizes), np.array(lengths), most) == expected


def random_item(rng: random.Random, number: int, labelled: bool) -> DocumentItem:
    lengths = [rng.randint(1, 6) for _ in range(rng.randint(1, 4))]
    sentences = tuple(tuple(rng.choice(["w1", "w2", "ab", "abb", "abbbbbbb"]) for _ in range(n)) for n in lengths)
    speakers = tuple(tuple(rng.choice(["A", "B", None]) for _ in words) for words in sentences)
    count = sum(lengths)
    sizes = [rng.randint(0, 3) for _ in range(rng.randint(0, 3))]
    chains = tuple(tuple(sorted(rng.choices(range(count), k=2)) for _ in range(size)) for size in sizes)
    return DocumentItem(str(number), sentences, speakers if rng.random() < 0.7 else None, None,
                        tuple(tuple(map(tuple, chain)) for chain in chains) if labelled else None)  # fmt: skip


def pieces_of(word: str, most: int) -> list[str]:
    return ([word] if word[0] == "w" else ["a", *["##b"] * (len(word) - 1)])[:most]


def numbered(names: list) -> list[int]:
    """Numbers of names in the order in which they occur first."""
    known = list(dict.fromkeys(names))
    return [known.index(name) for name in names]


@pytest.mark.parametrize("labelled", [True, False])
@pytest.mark.parametrize("cls_last", [False, True])
def test_every_token_knows_its_word_sentence_speaker_and_window(labelled, cls_last):
    rng, most = random.Random(2), 6
    codec = runs.codec(most + 2, *LETTERS, cls_last=cls_last)
    for _ in range(40):
        items = [random_item(rng, i, labelled) for i in range(3)]
        encoded = encode_documents(items, codec)
        assert list(encoded.head_inputs) == [
            "words", "sentences", "speakers", "windows", *(["mentions"] if labelled else []),
        ]  # fmt: skip
        before = dict.fromkeys(("words", "sentences", "speakers", "chains"), 0)
        example, cut = 0, 0
        for owner, item in enumerate(items):
            pieces = [pieces_of(word, most) for word in item.words]
            sizes = list(map(len, pieces))
            starts, whole = windows_by_definition(sizes, list(map(len, item.sentences)), most)
            lost = sum(len(pieces_of(word, 99)) - size for word, size in zip(item.words, sizes, strict=True))
            assert encoded.lost[owner] == lost
            cut += not whole or lost > 0
            sentences = [n for n, words in enumerate(item.sentences) for _ in words]
            names = item.speakers or [[None] * len(words) for words in item.sentences]
            speakers = numbered([name for own in names for name in own])
            for window, (start, end) in enumerate(zip(starts, [*starts[1:], len(sizes)], strict=True)):
                own = range(start, end)
                symbols = runs.symbols(encoded.examples[example], codec)
                inside = [piece for word in pieces[start:end] for piece in word]
                assert symbols == ([*inside, "</s>", "<s>"] if cls_last else ["<s>", *inside, "</s>"])
                read = encoded.examples[example].targets["task"].output_indices[:, 0].tolist()
                assert [symbols[index] for index in read] == inside
                expected = {
                    "words": [before["words"] + i for i in own for _ in pieces[i]],
                    "sentences": [before["sentences"] + sentences[i] for i in own for _ in pieces[i]],
                    "speakers": [before["speakers"] + speakers[i] for i in own for _ in pieces[i]],
                    "windows": [window] * len(inside),
                }
                for name, numbers in expected.items():
                    found = encoded.head_inputs[name][example]
                    assert found.tolist() == numbers and found.dtype == np.int64, name
                if labelled:
                    mentions = [
                        [first + before["words"], last + before["words"], before["chains"] + chain]
                        for chain, found in enumerate(item.chains, 1) for first, last in found if first in own
                    ]  # fmt: skip
                    assert encoded.head_inputs["mentions"][example].reshape(-1, 3).tolist() == mentions
                assert encoded.owners[example] == owner and encoded.notes[example] == before["words"]
                example += 1
            before["words"] += len(sizes)
            before["sentences"] += len(item.sentences)
            before["speakers"] += max(speakers) + 1
            before["chains"] += len(item.chains or ()) if labelled else 0
        assert example == len(encoded.examples) and encoded.cut == cut


def test_a_document_without_chains_among_others_is_read_without_them():
    first = DocumentItem("1", (("w1",),), chains=(((0, 0),),))
    assert "mentions" not in encode_documents([first, DocumentItem("2", (("w1",),))], runs.codec(9)).head_inputs
    found = encode_documents([first, first], runs.codec(9)).head_inputs["mentions"]
    assert [mentions.tolist() for mentions in found] == [[[0, 0, 1]], [[1, 1, 2]]]
    nothing = encode_documents([DocumentItem("1", (("w1",),), chains=())], runs.codec(9)).head_inputs["mentions"]
    assert nothing[0].shape == (0, 3) and nothing[0].dtype == np.int64


def test_a_word_that_loses_one_token_is_cut():
    codec = runs.codec(8, *LETTERS)  # six tokens of words
    for word, lost in (("abbbbb", 0), ("abbbbbb", 1)):
        encoded = encode_documents([DocumentItem("1", (("w1",), (word,)))], codec)
        assert (encoded.cut, list(encoded.lost)) == (lost, [lost])


def test_words_of_byte_level_tokenizers_begin_with_their_mark():
    """But the first word of a document."""
    codec = byte_level_codec(6)
    sentences = (("Anna", "lives"), ("Rome", "is", "old"))
    found = encode_documents([DocumentItem("1", sentences), DocumentItem("2", sentences[1:])], codec)
    shown = [[symbol.replace("\u0120", "_") for symbol in runs.symbols(one, codec)] for one in found.examples]
    anna, rome = ([codec.vocabulary.symbols[i] for i in codec.encode([word])[0]] for word in ("Anna", "Rome"))
    assert shown == [["<s>", *anna, "_lives", "</s>"], ["<s>", "_Rome", "_is", "_old", "</s>"],
                     ["<s>", *rome, "_is", "_old", "</s>"]]  # fmt: skip


def test_a_word_without_pieces_is_read_as_an_unknown_one():
    (example,) = encode_documents([DocumentItem("1", (("w1", "\u200b"),))], runs.codec(9)).examples
    assert runs.symbols(example, runs.codec(9)) == ["<s>", "w1", "<unk>", "</s>"]
