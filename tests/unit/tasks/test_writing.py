"""Models that write: how much of a source they read, how texts are searched for, and what is said of each."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from pathlib import Path

import pytest

from tests.support.task_folders import language_model
from unified import UnifiedLM
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.tasks.datasets.texts import source_item
from unified.tasks.metrics.examples import Noted, SingleScores
from unified.tasks.settings import Training
from unified.tasks.windows import TokenCounter
from unified.tasks.writing import TokenBudget, Writer, WritingItem, WritingTask, WritingTraining
from unified.tokenization.anna import AnnaTokenizer
from unified.tokenization.sentencepiece_tokenizer import train_sentencepiece
from unified.tokenization.wordpiece import WordPieceTokenizer

POSITIONS = 48
#: Positions that a target of eight tokens leaves beside the three special symbols.
LEFT = POSITIONS - 8 - 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    shape = {"max_positions": POSITIONS, "token_types": 6, "initializer_range": 0.4}
    return language_model(tmp_path_factory.mktemp("writer") / "model", ".", "|", writes="cloze", **shape)


@pytest.fixture
def lm(folder) -> UnifiedLM:
    return UnifiedLM.from_pretrained(folder)


def scored(items, texts, bert_words):
    notes = {"items": list(items), "texts": texts, "bert_words": bert_words}
    return Noted(SingleScores(items, {"rougeL": [0.0] * len(items)}), notes)


TASK = WritingTask(
    name="mine",
    read=lambda folder, budget: {},
    item=source_item,
    scored=scored,
    training=WritingTraining(max_length=POSITIONS, max_source=20, max_target=8),
    decoding={"beam": 2, "max_length": 8, "no_repeat_ngram_size": 3},
    may_repeat=(".",),
    separator="|",
)


def words(count: int, first: int = 0) -> str:
    return " ".join(f"w{(first + i) % 30}" for i in range(count))


def written(lm: UnifiedLM, sources: list[str], read: int) -> list[str]:
    """Texts for the first tokens of sources, each by itself."""
    short = [" ".join(source.split()[:read]) for source in sources]
    ignored = frozenset([lm.vocabulary.index(".")])
    return [
        lm.generate([one], prompt=False, max_source=0, **TASK.decoding, no_repeat_ngram_ignore=ignored)[0]
        for one in short
    ]


# ---------------------------------------------------------------- items and settings


def test_what_is_right_of_an_item():
    assert WritingItem("1", "s").right == [""] and WritingItem("1", "s", "t").right == ["t"]
    assert WritingItem("1", "s", "t", ("a", "b")).right == ["a", "b"]
    assert WritingItem("1", "s", "t", ()).right == ["t"]


def test_what_a_generation_task_need_not_say():
    needed = {name: getattr(TASK, name) for name in ("name", "read", "item", "scored", "training", "decoding")}
    plain = WritingTask(**needed)
    assert (plain.parts, plain.may_repeat, plain.separator, plain.published) == ({}, (), None, {})
    assert (plain.source, plain.unlabelled, plain.official) == ("", (), None)
    assert plain.measures == ("rougeL", "rouge1", "rouge2")
    with pytest.raises(TypeError):
        WritingTask(*needed.values())


def test_a_task_has_published_settings_and_those_for_an_encoder():
    assert TASK.as_in("published") == TASK
    assert TASK.as_in("encoder") == replace(TASK, training=TASK.training.for_encoder())
    with pytest.raises(UnifiedError) as raised:
        TASK.as_in("encode")
    assert str(raised.value) == (
        "no settings of 'encode' for mine (did you mean 'encoder'?); known are published, encoder"
    )


@pytest.mark.parametrize("name", ["max_source", "max_target"])
def test_lengths_are_positive(name):
    assert getattr(WritingTraining(**{name: 1}), name) == 1
    for value in (0, -1):
        with pytest.raises(UnifiedError) as raised:
            WritingTraining(**{name: value})
        assert str(raised.value) == f"{name} must be at least 1, got {value}"
    for field, wanted in (("lr", "above 0"), ("epochs", "at least 1")):  # as of any fine-tuning
        with pytest.raises(UnifiedError, match=f"^{field} must be {wanted}, got 0$"):
            WritingTraining(**{field: 0})


@pytest.mark.parametrize("max_length", [20, 40, 60])
@pytest.mark.parametrize("given", [(), ("max_source",), ("max_target",), ("max_source", "max_target")])
def test_lengths_that_are_changed_leave_room_to_the_others(max_length, given):
    """By the rules: of 40 tokens, 25 of a source and 10 of a target, with three special symbols."""
    before = WritingTraining(max_length=40, max_source=25, max_target=10)
    room = max_length - 3
    for source in (1, 7, 15, 26, 36, 56):
        for target in (1, 9, 11, 36, 56):
            changes = {"max_source": source, "max_target": target}
            changes = {name: changes[name] for name in given}
            wanted_target = changes.get("max_target", 10)
            wanted_source = changes.get("max_source", 25)
            if given == ("max_source",):
                wanted_target = max(1, min(10, room - source))
            elif given == ("max_target",) or (not given and max_length > 40):
                wanted_source = max(1, room - wanted_target)
            if given and wanted_source + wanted_target > room:
                options = " and ".join(f"--{name.replace('_', '-')} {changes[name]}" for name in given)
                with pytest.raises(UnifiedError) as raised:
                    before.changed(max_length=max_length, **changes)
                assert str(raised.value) == (
                    f"{options}: a sequence of {max_length} tokens (--max-length) has room for {room} of a source and "
                    "its target together"
                )
                continue
            found = before.changed(max_length=max_length, **changes)
            assert (found.max_source, found.max_target) == (wanted_source, wanted_target)
            assert found.max_source_tokens == min(wanted_source, max_length - wanted_target - 3)
    assert before.changed(lr=1e-3) == replace(before, lr=1e-3)
    assert isinstance(before, Training)


# ---------------------------------------------------------------- what is read


def test_a_writer_reads_so_many_tokens_as_it_learnt_to(lm):
    for lengths, most in (
        (PairLengths(), 20), (PairLengths(12, 8, 8), 12), (PairLengths(0, 8, 8), LEFT), (PairLengths(40, 8, 8), LEFT),
    ):  # fmt: skip
        lm.lengths = lengths
        writer = Writer(lm, TASK)
        assert writer.max_source_tokens == most and writer.reads == f"the first {most} tokens of a source"
        assert Writer(lm, TASK, max_source=5).max_source_tokens == 5


@pytest.mark.parametrize(
    ("lengths", "written_at_most", "read"),
    [
        # A model without pairs: a quarter of its positions, and sources have the rest.
        (PairLengths(), POSITIONS // 4, POSITIONS - POSITIONS // 4 - 3),
        # Pairs that were learnt whole, or of which the sources were cut: as long as the longest target.
        (PairLengths(0, 0, 8), 8, LEFT),
        (PairLengths(30, 0, 8), 8, 30),
        (PairLengths(0, 9, 8), 9, LEFT - 1),
    ],
)
def test_published_lengths_leave_positions_to_sources(lm, lengths, written_at_most, read):
    """Of 48 positions, published settings take 45 for the text and 384 for its source."""
    training = WritingTraining(max_length=512, max_source=384, max_target=125)
    lm.lengths = lengths
    writer = Writer(lm, replace(TASK, training=training, decoding={"max_length": 45, "no_repeat_ngram_size": 3}))
    assert (writer.config.max_length, writer.max_source_tokens) == (written_at_most, read)
    (found,) = writer.predict([WritingItem("a", words(3))])
    assert "cut" not in found
    assert replace(writer, max_source=5).max_source_tokens == 5


def test_a_target_that_leaves_no_position_to_a_source_is_refused(lm):
    lm.lengths = PairLengths(0, 0, POSITIONS)
    with pytest.raises(UnifiedError) as refused:
        next(Writer(lm, TASK).predict([WritingItem("a", words(3))]))
    assert str(refused.value) == (
        "the model's 48 positions leave none for a source beside a target of 45 tokens; a target must be shorter"
    )


def test_a_number_of_tokens_that_the_positions_have_no_room_for_is_refused(lm):
    assert [Writer(lm, TASK, max_source=given).max_source_tokens for given in (1, LEFT)] == [1, LEFT]
    for given in (0, -1, LEFT + 1):
        with pytest.raises(UnifiedError) as raised:
            Writer(lm, TASK, max_source=given)
        assert str(raised.value) == (
            f"--max-source {given}: the model has room for 1 to {LEFT} tokens of a source beside the 8 that may be "
            "written"
        )


def test_a_users_object_is_made_an_item_within_the_budget(lm):
    budgets = []
    task = replace(
        TASK, item=lambda fields, number, budget: budgets.append(budget) or WritingItem("3", fields["source"])
    )
    assert Writer(lm, task, max_source=7).item({"source": "a"}, 3) == WritingItem("3", "a")
    [budget] = budgets
    assert budget.tokens == 7 and budget.counter("w1 w2 w3") == 3
    assert Writer(lm, TASK).item({"source": "a"}, 3) == WritingItem("3", "a")
    with pytest.raises(UnifiedError, match="^'source' holds half of a surrogate pair, such as a part of an emoji$"):
        Writer(lm, TASK).item({"source": ["a", "\ud83d"]}, 3)
    assert TokenBudget(TokenCounter(str.split), 3).counter("a b") == 2


# ---------------------------------------------------------------- the search


@pytest.mark.parametrize(
    ("max_target", "learnt", "written_at_most"), [(8, 0, 6), (8, 4, 4), (8, 7, 6), (8, 8, 6), (8, 9, 9), (5, 6, 6)]
)
def test_texts_are_as_long_as_targets_were(lm, max_target, learnt, written_at_most):
    task = replace(
        TASK,
        training=replace(TASK.training, max_target=max_target),
        decoding={"max_length": 6, "no_repeat_ngram_size": 3},
    )
    lm.lengths = PairLengths(20, learnt, learnt)
    assert Writer(lm, task).config.max_length == written_at_most
    assert task.decoding == {"max_length": 6, "no_repeat_ngram_size": 3}


def test_the_search_is_the_tasks_and_marks_may_be_repeated(lm):
    config = Writer(lm, TASK).config
    assert (config.beam, config.max_length) == (2, 8)
    assert config.no_repeat_ngram_ignore == {lm.vocabulary.index(".")}
    both = Writer(lm, replace(TASK, may_repeat=(".", "|"))).config
    assert both.no_repeat_ngram_ignore == {lm.vocabulary.index("."), lm.vocabulary.index("|")}


def test_marks_that_no_rule_blocks_are_refused():
    with pytest.raises(UnifiedError) as refused:
        replace(TASK, decoding={"beam": 2})
    assert str(refused.value) == "task mine: may_repeat needs a no_repeat_ngram_size of decoding"
    assert replace(TASK, decoding={"beam": 2}, may_repeat=()).may_repeat == ()


# ---------------------------------------------------------------- what is written


def test_each_source_is_written_from_and_what_was_not_read_is_counted(lm):
    sources = [words(3), words(25, 4), words(20, 9), words(21, 2)]
    items = [WritingItem(f"i{i}", source, unread=[None, 4, 2, None][i]) for i, source in enumerate(sources)]
    found = list(Writer(lm, TASK).predict(items))
    texts = written(lm, sources, 20)
    assert found == [
        {"id": "i0", "text": texts[0]}, {"id": "i1", "text": texts[1], "cut": 5 + 4},
        {"id": "i2", "text": texts[2], "cut": 2}, {"id": "i3", "text": texts[3], "cut": 1},
    ]  # fmt: skip
    parts = list(Writer(lm, TASK).predict([WritingItem("p", (words(2), words(3)))]))
    assert parts[0]["text"] == lm.generate(
        [(words(2), words(3))], prompt=False, **TASK.decoding, no_repeat_ngram_ignore=["."]
    )[0]  # fmt: skip


def test_items_are_read_ahead_in_groups_and_written_in_their_order(lm, monkeypatch):
    read, batches = [], []
    hypotheses = lm.hypotheses
    monkeypatch.setattr(
        lm, "hypotheses", lambda ids, config, **named: batches.append(named) or hypotheses(ids, config, **named)
    )

    def items():
        for i in range(5):
            read.append(i)
            yield WritingItem(str(i), words(5 - i, i))

    found = Writer(lm, TASK, ahead=2, batch_size=3).predict(items())
    assert read == []
    assert next(found)["id"] == "0" and read == [0, 1]
    assert [one["id"] for one in found] == ["1", "2", "3", "4"] and read == [0, 1, 2, 3, 4]
    assert batches == [{"prompt": False, "batch_size": 3, "max_source": 0}] * 3
    assert list(Writer(lm, TASK).predict([])) == []
    plain = Writer(lm, TASK)
    assert (plain.ahead, plain.batch_size, plain.max_source, plain.windows) == (512, 32, None, False)


def test_a_source_that_is_too_long_may_be_divided_into_windows(lm, monkeypatch):
    asked = []
    shortened = lm.shortened
    monkeypatch.setattr(
        lm, "shortened", lambda sources, config, **named: asked.append(named) or shortened(sources, config, **named)
    )
    writer = Writer(lm, TASK, batch_size=5, windows=True)
    assert writer.reads == "the first 20 tokens of a source that was written from windows"
    sources = [words(30), words(4)]
    found = list(writer.predict([WritingItem(str(i), source) for i, source in enumerate(sources)]))
    assert asked == [{"prompt": False, "batch_size": 5, "max_source": 20, "separator": "|"}]
    assert found[0]["windows"] >= 2 and "windows" not in found[1]
    short = shortened(sources, writer.config, prompt=False, max_source=20, separator="|")
    assert found[0]["windows"] == short.windows[0] and found[0].get("cut", 0) == short.cut[0]
    texts = lm.hypotheses(short.ids, writer.config, prompt=False, max_source=0)
    assert [one["text"] for one in found] == [lm.decode(best.tokens.tolist()) for best, *_ in texts]


def test_texts_are_scored_by_the_task_which_knows_whose_words_they_have(lm):
    items, predictions = [WritingItem("1", "a", "b")], [{"id": "1", "text": "x y"}]
    assert isinstance(lm.tokenizer, WordPieceTokenizer)
    found = {"items": items, "texts": ["x y"], "bert_words": True, "rougeL": 0.0, "total": 1}
    assert Writer(lm, TASK).scored(items, predictions).scores() == found
    lm.tokenizer = AnnaTokenizer(list(lm.tokenizer.entries), ["U.S."], "none")
    assert (
        Writer(lm, TASK).scored(items, predictions).scores() == found
    )  # it holds a WordPiece tokenizer, whose words they are
    lm.tokenizer = train_sentencepiece(["a b c . |"] * 20, "char")
    assert Writer(lm, TASK).scored(items, predictions).scores()["bert_words"] is False


def test_files_for_an_official_program_are_made_where_there_is_one(lm):
    items, predictions = [WritingItem("1", "a", "b")], [{"id": "1", "text": "x y"}]
    assert Writer(lm, TASK).official(items, predictions) == {}
    task = replace(TASK, official=lambda some, found: {"a.txt": (some, found)})
    assert Writer(lm, task).official(items, predictions) == {"a.txt": (items, predictions)}


def test_settings_that_are_not_given():
    training = WritingTraining()
    assert (training.max_source, training.max_target, training.smoothing) == (384, 64, 0.1)
    assert training.objective == "target_cloze(mask_probability=0.7)"
    own = {field.name: field.default for field in fields(Writer) if field.default is not MISSING}
    assert own == {"ahead": 512, "batch_size": 32, "max_source": None, "windows": False}


def test_a_row_that_is_three_tokens_longer_leaves_room_to_sources():
    """Also where it is not longer by as many special symbols as a row has."""
    for more in (1, 3, 6, 7):
        assert WritingTraining(max_length=40, max_source=25, max_target=10).changed(max_length=40 + more) == (
            WritingTraining(max_length=40 + more, max_source=27 + more, max_target=10)
        )
