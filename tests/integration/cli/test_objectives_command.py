"""`unified objectives`: the list, and one example shown."""

import argparse
import json
from dataclasses import fields

import pytest

from unified import masks
from unified.cli.commands import objectives as command
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES


def printed(capsys, *arguments: str) -> str:
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    command.run(parser.parse_args(arguments))
    return capsys.readouterr().out


def test_command_lists_every_objective_with_paper_needs_and_settings(capsys):
    lines = printed(capsys).splitlines()
    for name, kind in OBJECTIVES.items():
        start = next(i for i, line in enumerate(lines) if line.startswith(f"{name}: "))
        assert lines[start + 1].startswith(f"    from {kind.paper}; needs ")
        settings = [f"    {field.name}={field.default!r}" for field in fields(kind)]
        assert lines[start + 2 : start + 2 + len(settings)] == settings
    assert len(lines) == sum(2 + len(fields(kind)) for kind in OBJECTIVES.values())


def test_command_lists_for_programs(capsys):
    listed = {entry["name"]: entry for entry in json.loads(printed(capsys, "--json"))["objectives"]}
    assert list(listed) == list(OBJECTIVES)
    assert listed["bidirectional"]["needs"] == ["several documents"]
    assert listed["target_next"]["needs"] == ["source/target pairs"]
    assert listed["random_spans"]["needs"] == ["documents", "sentinels"]
    assert listed["anna"]["needs"] == ["documents", "word starts", "annotation noun_phrases"]
    assert listed["random_spans"]["settings"] == {"noise_density": 0.15, "closing_sentinel": False, "mean_span": 3.0}


def test_command_shows_an_example(capsys):
    shown = printed(capsys, "show", "target_next", "--text", "a b c", "--second", "x y")
    table = [line.split() for line in shown.split("\n\n")[0].splitlines()]
    assert table == [
        ["index", "token", "type", "visible", "predict"],
        ["0", "<s>", "4", "given"],
        ["1", "a", "4", "given"],
        ["2", "b", "4", "given"],
        ["3", "c", "4", "given"],
        ["4", "</s>", "4", "given"],
        ["5", "<s>", "5", "step", "1", "x"],
        ["6", "x", "5", "step", "2", "y"],
        ["7", "y", "5", "step", "3", "</s>"],
    ]
    assert str(masks.seq2seq(source_length=5, target_length=3)) in shown


def test_command_splits_a_text_and_asks_for_the_next_sentence(capsys):
    shown = printed(capsys, "show", "bidirectional(mask_share=1)", "--text", "a b c d <mask>", "--seed", "3")
    assert "is_next=1 from index 0" in shown
    assert printed(capsys, "show", "left_to_right", "--text", "a") != ""


def test_command_takes_spans_in_brackets(capsys):
    settings = "mask_share=0.3, span_share=1, word_share=0, mask_replace_share=1, random_replace_share=0"
    for seed in range(5):
        shown = printed(
            capsys, "show", f"anna({settings})", "--text", "a [b c d] e f [g] h [i] j k", "--seed", f"{seed}"
        )
        hidden = [line.split()[-1] for line in shown.splitlines() if "<mask>" in line]
        assert hidden in (["b", "c", "d"], ["g", "i", hidden[-1]], [hidden[0], "g", "i"], ["g", hidden[1], "i"])
    # An objective that reads no spans takes brackets as they are; a span across two segments is none.
    assert "[b" in printed(capsys, "show", "left_to_right", "--text", "a [b c] d")
    both = "spanbert(scheme='noun_phrase', next_sentence=True)"
    assert "[" not in printed(capsys, "show", both, "--text", "a [b] c [d e] f")
    assert "[" not in printed(capsys, "show", both, "--text", "a [b]", "--second", "[c d]")


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["show", "anna", "--text", "a [b c"], "--text: a bracket is not closed"),
        (["show", "anna", "--text", "a [b [c]]"], "a bracket opens at '.c..' before the one before it closes"),
        (["show", "anna", "--text", "a b] c"], "the bracket that closes at 'b.' was never opened"),
        (["show", "anna", "--text", "[]"], "--text is empty"),
        (["show", "seq2seq,left_to_right", "--text", "a b"], "show takes one objective, got 2"),
        (["show", "left_to_right", "--text", "a", "--second", "b"], "left_to_right reads one segment"),
        (["show", "left_to_right", "--text", " "], "--text is empty"),
        (["show", "left_to_right", "--text", "a", "--seed", "-1"], "--seed must be at least 0, got -1"),
        (["show", "nothing", "--text", "a"], "objective 'nothing': no such objective"),
    ],
)
def test_command_refusals(capsys, arguments, message):
    with pytest.raises(UnifiedError, match=message):
        printed(capsys, *arguments)
