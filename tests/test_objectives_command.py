"""`unified objectives`: the list, and one example shown."""

import argparse
from dataclasses import fields

import pytest

from unified import masks
from unified.commands import objectives as command
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES


def printed(capsys, *arguments: str) -> str:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args(arguments))
    return capsys.readouterr().out


def test_command_lists_every_objective(capsys):
    lines = printed(capsys).splitlines()
    for name, kind in OBJECTIVES.items():
        assert any(line.startswith(f"{name}: ") for line in lines)
        assert sum(line.startswith("    ") for line in lines) == sum(len(fields(k)) for k in OBJECTIVES.values())
        assert fields(kind) is not None


def test_command_shows_an_example(capsys):
    shown = printed(capsys, "show", "target_next", "--text", "a b c", "--second", "x y")
    table = [line.split() for line in shown.split("\n\n")[0].splitlines()]
    assert table == [
        ["place", "token", "type", "visible", "predict"],
        ["0", "<s>", "4", "given"],
        ["1", "a", "4", "given"],
        ["2", "b", "4", "given"],
        ["3", "c", "4", "given"],
        ["4", "</s>", "4", "given"],
        ["5", "<s>", "5", "step", "0", "x"],
        ["6", "x", "5", "step", "1", "y"],
        ["7", "y", "5", "step", "2", "</s>"],
    ]
    assert str(masks.seq2seq(source_length=5, target_length=3)) in shown


def test_command_splits_a_text_and_asks_for_the_next_sentence(capsys):
    shown = printed(capsys, "show", "bidirectional(mask_share=1)", "--text", "a b c d <mask>", "--seed", "3")
    assert "is_next=1 from place 0" in shown
    assert printed(capsys, "show", "left_to_right", "--text", "a") != ""


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["show", "seq2seq,left_to_right", "--text", "a b"], "show takes one objective, got 2"),
        (["show", "left_to_right", "--text", "a", "--second", "b"], "left_to_right reads one segment"),
        (["show", "left_to_right", "--text", " "], "--text is empty"),
        (["show", "left_to_right", "--text", "a", "--seed", "-1"], "--seed must be at least 0, got -1"),
        (["show", "nothing", "--text", "a"], "no objective 'nothing'"),
    ],
)
def test_command_refusals(capsys, arguments, message):
    with pytest.raises(UnifiedError, match=message):
        printed(capsys, *arguments)
