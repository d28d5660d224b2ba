"""The log of a training: which statistics are read of it, and what is said of its end."""

from __future__ import annotations

import pytest

from tests.support.locales import plain_locale
from unified.reports.training_log import (
    LOG_NAME,
    loss_curves,
    next_sentence_note,
    outcome,
    read_training_log,
    seconds_per_update,
    statistics_of,
)


def logged(folder, *lines: str):
    (folder / LOG_NAME).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_training_log(folder / LOG_NAME)


def test_statistics_are_read_by_update_as_fairseq_writes_them(tmp_path):
    """Its numbers are texts; lines have a logger's prefix or none, and come again in its log file."""
    found = logged(
        tmp_path,
        "2026-01-01 10:00:00 | INFO | fairseq_cli.train | task: {not json}",
        '2026-01-01 | INFO | train_inner | {"epoch": 1, "update": 0.5, "loss": "7.5", "bi_loss": "7", "ups": "2", '
        '"num_updates": "20", "note": "text", "flag": true}',
        'INFO | train_inner | {"epoch": 1, "update": 0.2, "loss": "9", "num_updates": "10"}',
        '{"epoch": 1, "update": 0.5, "loss": "7.25", "num_updates": "20"}',
        'INFO | valid | {"epoch": 1, "valid_loss": "6.5", "valid_num_updates": "20", "loss": "1", "valid_nan": "nan"}',
        'INFO | train | {"epoch": 1, "train_loss": "8", "train_num_updates": "20"}',
        '{"loss": "3"}',
        '{"loss": "3", "num_updates": null}',
        '{"loss": "3", "num_updates": "nan"}',
        '["num_updates"]',
        "nothing",
    )
    assert found == {
        "loss": [(10, 9.0), (20, 7.25)],
        "bi_loss": [(20, 7.0)],
        "ups": [(20, 2.0)],
        "valid_loss": [(20, 6.5)],
        "train_loss": [(20, 8.0)],
    }
    assert all(type(update) is int and type(value) is float for points in found.values() for update, value in points)


def test_a_log_in_another_encoding_is_read_all_the_same(tmp_path):
    (tmp_path / "a").write_bytes(b'\xff\xfe{"loss": 1, "num_updates": 3}\n')
    assert read_training_log(str(tmp_path / "a")) == {"loss": [(3, 1.0)]}


def test_a_log_is_read_as_utf_8_in_any_locale(tmp_path):
    (tmp_path / "a").write_text('{"é_loss": 1, "num_updates": 3}\n', encoding="utf-8")
    with plain_locale():
        assert read_training_log(tmp_path / "a") == {"é_loss": [(3, 1.0)]}


def test_a_file_without_statistics_is_refused(tmp_path):
    for lines in (
        "",
        "INFO | train_inner | nothing",
        '{"num_updates": 3}',
        '{"epoch": 2, "update": 1, "num_updates": 3}',
    ):
        with pytest.raises(ValueError) as refused:
            logged(tmp_path, lines)
        assert str(refused.value) == (
            f"{tmp_path / 'train.log'}: no statistics; expected the output of fairseq-train --log-format json"
        )


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('{"a": 1}', {"a": 1}), ('x | {"a": {"b": NaN}} \n', "nan"), ("{", None), ("", None), ("a: 1", None),
        ('{"a": 1} behind', None), ('{a} {"b": 1}', None), ("[1]", None), ('[{"a": 1}]', None),
    ],
)  # fmt: skip
def test_the_statistics_of_a_line_stand_at_its_end(line, found):
    statistics = statistics_of(line)
    assert (repr(statistics) == "{'a': {'b': nan}}") if found == "nan" else (statistics == found)


LOG = {
    "loss": [(1, 9.0)], "valid_loss": [(1, 8.0)],
    "bi_loss": [(1, 7.0)], "valid_bi_loss": [(1, 6.0)],
    "bi_next_sentence_loss": [(1, 0.9)], "valid_bi_next_sentence_loss": [(1, 1.0), (2, 0.5)],
    "bi_next_sentence_accuracy": [(1, 10.0)], "valid_bi_next_sentence_accuracy": [(1, 50.0), (2, 81.25)],
    "own_loss": [(1, 5.0)], "train_loss": [(1, 3.0)], "valid_more_loss": [(1, 2.0)], "ups": [(1, 2.0)],
}  # fmt: skip


def test_losses_with_a_validation_are_drawn_but_not_those_of_next_sentences():
    assert loss_curves(LOG) == {"bi": [(1, 7.0)], "bi (valid)": [(1, 6.0)]}
    assert loss_curves(LOG, ["own", "more", "none", "bi_next_sentence"]) == {
        "own": [(1, 5.0)],
        "more (valid)": [(1, 2.0)],
        "bi_next_sentence": [(1, 0.9)],
        "bi_next_sentence (valid)": [(1, 1.0), (2, 0.5)],
    }
    assert loss_curves(LOG, iter(())) == loss_curves({}) == {}


def test_how_next_sentence_prediction_ended_is_said_in_words():
    said = (
        "Not drawn: next-sentence prediction, one question a row (does the second segment follow the first?) instead "
        "of one a token. It ended at {} bits, {} % right; guessing has 1 bit and 50 %."
    )
    assert next_sentence_note(LOG) == said.format("0.50", "81.2")
    unlearnt = " So it has not been learnt."
    for bits, shown, more in ((0.949, "0.95", ""), (0.95, "0.95", unlearnt), (1.02, "1.02", unlearnt)):
        log = LOG | {"valid_bi_next_sentence_loss": [(1, 0.1), (2, bits)]}
        assert next_sentence_note(log) == said.format(shown, "81.2") + more
    for log in ({}, {"bi_next_sentence_loss": [(1, 1.0)]}, {"valid_bi_loss": [(1, 1.0)]}):
        assert next_sentence_note(log) == ""


BEST, LOWEST = "--best-checkpoint-metric", "--maximize-best-checkpoint-metric"


def ended(losses: dict[int, float], scores: dict[int, float] | None = None, **options) -> str:
    log = {"valid_loss": list(losses.items())} | ({} if scores is None else {"valid_bleu": list(scores.items())})
    return outcome(log, {BEST: "bleu", **options})


def test_the_best_checkpoint_is_named_where_it_is_not_the_last():
    losses, highest = {1000: 3.0, 2000: 2.0, 3000: 2.0}, {LOWEST: True}
    assert ended(losses, {1000: 5.0, 2000: 7.125, 3000: 6.0}, **highest) == (
        "the best bleu was 7.125, after update 2,000 of 3,000 (checkpoint_best.pt), with a validation loss of 2"
    )
    assert ended(losses, {1000: 5.0, 2000: 7.0, 3000: 6.0}) == (
        "the best bleu was 5, after update 1,000 of 3,000 (checkpoint_best.pt), with a validation loss of 3"
    )
    # Of equal ones the latest, and nothing is said where it is the last of all.
    assert ended(losses, {1000: 7.0, 2000: 7.0, 3000: 6.0}, **highest).startswith(
        "the best bleu was 7, after update 2,000"
    )
    assert ended(losses, {1000: 1.0, 2000: 1.0, 3000: 6.0}).startswith("the best bleu was 1, after update 2,000")
    assert ended(losses, {1000: 5.0, 3000: 7.0}, **highest) == ended(losses, {1000: 7.0, 3000: 7.0}, **highest) == ""
    # A loss that is no number is not in the log.
    assert ended({1000: 3.0, 3000: 2.0}, {2000: 7.0, 3000: 6.0}, **highest) == (
        "the best bleu was 7, after update 2,000 of 3,000 (checkpoint_best.pt)"
    )


def test_a_validation_loss_that_has_risen_is_said():
    risen = "the lowest validation loss was {}, after update {}; at the end it is {}"
    assert ended({1000: 2.0, 2000: 2.12345}) == risen.format("2", "1,000", "2.123")
    assert ended({1000: 2.0, 2000: 2.1}) == "" and ended({1000: 2.0, 2000: 2.1001}) != ""
    assert ended({1: 3.0, 2: 1.23456, 3: 2.0}, {1: 9.0, 2: 8.0, 3: 7.0}, **{LOWEST: True}) == (
        "the best bleu was 9, after update 1 of 3 (checkpoint_best.pt), with a validation loss of 3; "
        + risen.format("1.235", "2", "2")
    )
    assert ended({1: 2.0}) == ended({1: 2.0, 2: 1.0}) == outcome({}, {BEST: "bleu"}) == ""
    assert outcome({"valid_bleu": [(1, 3.0), (2, 1.0)]}, {BEST: "bleu", LOWEST: True}) == ""


def test_the_loss_as_the_measure_is_said_once():
    log = {"valid_loss": [(1, 1.0), (2, 2.0)]}
    for options in ({BEST: "loss"}, {}):
        assert outcome(log, options) == "the lowest validation loss was 1, after update 1; at the end it is 2"


def test_the_time_of_an_update_is_the_median_of_what_was_logged():
    assert seconds_per_update({"ups": [(1, 4.0), (2, 0.5), (3, 2.0)]}) == 0.5
    assert seconds_per_update({"ups": [(1, 0.0), (2, 4.0), (3, 0.25), (4, 2.0)]}) == 0.5
    assert seconds_per_update({"ups": [(1, 0.0)]}) is None and seconds_per_update({}) is None
