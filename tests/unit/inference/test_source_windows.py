"""Windows of long sources: where texts are divided, and that what is written from them equals a loop by hand."""

from __future__ import annotations

import math
import random
import re

import pytest

from tests.support.checkpoint_samples import checkpoint, data_folder
from unified import UnifiedLM
from unified.corpus.cleaning.sentences import split_sentences
from unified.errors import UnifiedError
from unified.generation import GenerationConfig
from unified.inference.source_windows import divided, shortened

WORDS = "cat dog bird mat Monday sang sat barked 12 a".split()


def words(text: str) -> int:
    return len(text.split())


def random_text(rng: random.Random, sentences: int, longest: int) -> str:
    made = (" ".join(rng.choices(WORDS, k=rng.randint(1, longest))) + rng.choice(".!?") for _ in range(sentences))
    return " ".join(sentence.capitalize() for sentence in made)


@pytest.mark.parametrize("lower", [False, True])
def test_windows_are_short_end_with_sentences_and_lose_nothing(lower):
    rng = random.Random(4)
    several = within = 0
    for _ in range(400):
        text, limit = random_text(rng, rng.randint(1, 40), rng.choice((5, 30))), rng.randint(4, 60)
        text = text.lower() if lower else text
        windows = divided(text.replace(" ", " \n", 3), limit, words)
        assert " ".join(windows) == text
        assert all(1 <= words(window) <= limit for window in windows)
        ends, position = {match.end() for match in re.finditer(r"[.!?](?= |$)", text)}, 0
        for window in windows:
            position += len(window) + 1
            if position - 1 not in ends:  # then the sentence there is longer than a window
                last = max((end for end in ends if end < position), default=-1)
                assert words(text[last + 1 : min(end for end in ends if end >= position)]) > limit
                within += 1
        several += len(windows) > 2
    assert several > 100 and within > 20


def test_windows_have_like_lengths():
    """Sentences of five words each: as many windows as needed, none of which is half as long as another."""
    for count in range(2, 60):
        text = " ".join(["The cat sat on mats."] * count)
        windows = divided(text, 40, words)
        assert -(-count // 8) <= len(windows) <= -(-count // 8) + 2 * (count > 8)
        assert max(map(words, windows)) <= 2 * min(map(words, windows))


def test_a_text_without_spaces_is_divided_within():
    assert "".join(windows := divided("字" * 1001, 100, len)) == "字" * 1001
    assert max(map(len, windows)) <= 100 and len(windows) <= 16
    with pytest.raises(UnifiedError, match="a window of 2 tokens has no room for '字', which has 3"):
        divided("字字", 2, lambda text: 3 * len(text))


def ids_of(source: str | list[str]) -> list[str]:
    """Words, and a mark between the parts."""
    return (source if isinstance(source, str) else " | ".join(source)).split()


class Writer:
    """Writes some first words of each window, another number of them in each round, and keeps what it was given."""

    def __init__(self, *counts: int):
        self.counts, self.given, self.owners = list(counts), [], []

    def __call__(self, windows: list[list[str]], owners: list[int]) -> list[str]:
        assert self.counts, "a round too many"
        self.given.append([" ".join(window) for window in windows])
        self.owners.append(owners)
        count = self.counts.pop(0)
        return [" ".join(window[:count]) for window in windows]


def numbers(first: int, stop: int) -> str:
    """Sentences of five words each."""
    return " ".join(f"{number}." if number % 5 == 4 else str(number) for number in range(first, stop))


def test_sources_that_fit_are_left_as_they_are():
    """Up to the limit itself, and nothing is written."""
    sources = [numbers(0, 10), ["a b", numbers(0, 7)], ""]
    found = shortened(sources, 10, ids_of, Writer())
    assert [len(ids) for ids in found.ids] == [10, 10, 0] and found.ids == list(map(ids_of, sources))
    assert found.windows == found.cut == [0, 0, 0]


def test_what_is_written_from_windows_stands_in_their_place_and_is_divided_again():
    """Two long sources between short ones: the windows of all of them are written in one call."""
    write = Writer(3, 2)
    found = shortened(["a", numbers(0, 40), "b", numbers(50, 65)], 10, ids_of, write)
    first = [numbers(0, 10), numbers(10, 20), numbers(20, 30), numbers(30, 40), numbers(50, 55), numbers(55, 65)]
    assert write.given == [first, ["0 1 2 10 11 12", "20 21 22 30 31 32"]]
    assert write.owners == [[1, 1, 1, 1, 3, 3], [1, 1]]
    assert [" ".join(ids) for ids in found.ids] == ["a", "0 1 20 21", "b", "50 51 52 55 56 57"]
    assert (found.windows, found.cut) == ([0, 4, 0, 2], [0, 0, 0, 0])  # windows of the first round


@pytest.mark.parametrize("question_first", [False, True])
def test_the_part_of_most_characters_is_divided_and_the_others_stand_beside_each_window(question_first):
    def parts(question: str, document: str) -> list[str]:
        return [question, document] if question_first else [document, question]

    document = [f"{'x' * 30}{number}." for number in range(9)]
    write = Writer(1)  # the question and its mark take half of the limit
    shortened([parts("a b c", " ".join(document))], 8, ids_of, write)
    (windows,) = write.given
    written = [window.removeprefix("a b c | ").removesuffix(" | a b c") for window in windows]
    assert " ".join(written).split() == document and all(1 <= words(window) <= 4 for window in written)
    assert windows == [" | ".join(parts("a b c", window)) for window in written]


def test_a_source_is_cut_where_its_other_parts_take_more_than_half_of_the_limit():
    source, write = ["a b c d", numbers(0, 20)], Writer(1)
    found = shortened([source, numbers(20, 40)], 9, ids_of, write)
    assert found.ids == [ids_of(source)[:9], ["20", "25", "30", "35"]] and write.owners == [[1, 1, 1, 1]]
    assert (found.windows, found.cut) == ([0, 4], [25 - 9, 0])


@pytest.mark.parametrize(("counts", "left", "cut"), [([10], 15, 5), ([7, 7], 12, 2)])
def test_a_source_is_cut_where_what_is_written_is_no_shorter(counts, left, cut):
    """In the first round, or in the second one, whose windows are written out whole."""
    write = Writer(*counts)
    found = shortened([numbers(0, 15)], 10, ids_of, write)
    whole = [word for window in write.given[-1] for word in window.split()]
    assert len(whole) == left and not write.counts
    assert (found.ids, found.windows, found.cut) == ([whole[:10]], [2], [cut])


@pytest.fixture(scope="module")
def lm(tmp_path_factory) -> UnifiedLM:
    """A random model that writes characters, with a tokenizer of characters."""
    folder = tmp_path_factory.mktemp("model")
    checkpoint(folder / "model.pt", data_folder(folder / "data", pairs=True), str(folder / "data"))
    lm = UnifiedLM.from_pretrained(folder / "model.pt")
    lm.model.symbols.scored[lm.special.ordinary_stop :] = 0  # their names are long texts
    return lm


def with_text(parts: list[str], text: str) -> list[str]:
    """The longest part replaced."""
    return [text if part == max(parts, key=len) else part for part in parts]


def by_hand(lm: UnifiedLM, parts: list[str], limit: int, before=math.inf, **options) -> tuple[str, int]:
    """What is written from a source with windows, one call of ``generate`` for each text; and the number of rounds."""

    def tokens(text: str) -> int:
        return len(lm.encode_source(with_text(parts, text)))

    length = len(lm.encode_source(parts))
    assert length < before
    if length <= limit:
        return lm.generate([parts], max_source=0, **options)[0], 0
    windows = divided(max(parts, key=len), limit, tokens)
    written = [lm.generate([with_text(parts, window)], max_source=0, **options)[0] for window in windows]
    text, rounds = by_hand(lm, with_text(parts, " ".join(written)), limit, length, **options)
    return text, rounds + 1


@pytest.mark.slow
def test_windows_equal_a_loop_by_hand(lm):
    """Short and long sources in one call, some in two rounds, one of two parts whose longer one is divided."""
    rng = random.Random(2)
    texts = [random_text(rng, count, 6) for count in (1, 3, 5, 9, 40)]
    sources = [*texts, ["A cat?", texts[3]], [texts[2], "A dog"]]
    options = {"beam": 2, "min_length": 12, "max_length": 14}
    found = lm.generate(sources, max_source=60, windows=True, batch_size=3, **options)
    hands = [by_hand(lm, [s] if isinstance(s, str) else s, 60, **options) for s in sources]
    assert found == [text for text, _ in hands]
    rounds = [number for _, number in hands]
    assert rounds[0] == 0 and rounds[3] >= 1 and rounds[4] >= 2
    windows = lm.shortened(sources, GenerationConfig(**options), max_source=60).windows  # at first
    assert windows[0] == 0 and windows[4] == len(divided(texts[4], 60, lambda text: len(lm.encode(text))))
    cut = lm.generate(sources, max_source=60, **options)
    assert cut[0] == found[0] and cut != found
    # By default a window has as many tokens as the positions leave.
    assert lm.generate(texts, windows=True, **options) == lm.generate(
        texts, windows=True, max_source=lm.length_rules.tokens_left(14), **options
    )
    # The best hypothesis of each window is read, however many of the final text are wanted.
    several = lm.generate(sources, max_source=60, windows=True, nbest=2, **options)
    assert [best for best, _ in several] == found


def test_sources_that_windows_do_not_shorten_are_cut_and_counted(lm):
    """What is written is as long as the windows, or the other parts leave no room for windows."""
    text = random_text(random.Random(5), 12, 6)
    options = {"beam": 1, "min_length": 30, "max_length": 30}
    with pytest.warns(UserWarning, match="^1 of 2 texts get no shorter in windows; what is too long is not read$"):
        (_, found) = lm.generate(["A cat.", text], max_source=20, windows=True, **options)
    windows = divided(text, 20, lambda text: len(lm.encode(text)))
    together = " ".join(lm.generate(windows, max_source=20, **options))
    assert [found] == lm.generate([lm.decode(lm.encode(together)[:20])], max_source=20, **options)
    with pytest.warns(UserWarning, match="^1 of 1 texts get no shorter"):
        found = lm.generate([[text, text[:31]]], max_source=60, windows=True, beam=1, max_length=9)
    ids = lm.encode_source([text, text[:31]])
    assert len(lm.encode(text[:31])) >= 30 and found == lm.generate([text], max_source=60, beam=1, max_length=9)
    assert ids[:60] == lm.encode(text)[:60]


def test_prompts_have_no_windows(lm):
    with pytest.raises(UnifiedError, match="windows divide sources, but the model continues prompts"):
        lm.generate(["A cat"], prompt=True, windows=True)


def test_sentences_of_a_text_without_capitals():
    assert split_sentences("the cat sat . dr. berg came! why?", any_case=True) == [
        "the cat sat .", "dr. berg came!", "why?"
    ]  # fmt: skip
