"""`unified masks`: masks as text and as JSON, the list in its help, additions to a mask, and refusals."""

from __future__ import annotations

import inspect
import json

import pytest
import torch

from docs.examples.gist_mask import gist
from tests.support.commands import leaving
from tests.support.mask_samples import triangle
from unified import masks
from unified.cli import main
from unified.cli.commands.masks import BUILDERS
from unified.cli.commands.showing.mask_fields import fields_of

#: Named below as a builder of masks, which it is not.
NO_FUNCTION = 3


def neighbours() -> masks.AttentionMask:
    return masks.sliding_window(2, 1, 1)


def read_back(fields: dict) -> masks.AttentionMask:
    """The mask of fields that were printed as JSON."""
    return masks.AttentionMask(
        **{name: torch.tensor(field) if isinstance(field, list) else field for name, field in fields.items()}
    )


def limited() -> masks.AttentionMask:
    return masks.bidirectional(5).windowed(2).causal()


@pytest.mark.parametrize(
    ("words", "mask"),
    [
        ("bidirectional 3 --without-self", masks.bidirectional(3).without_self()),
        ("permutation 0,2,1 --memory 2 --without-self", masks.permutation([0, 2, 1]).with_memory(2).without_self()),
        ("permutation 0,2,1 --query-stream 1", masks.permutation([0, 2, 1]).query_stream([1])),
        ("pack 7 seq2seq:2,2 left_to_right:2", masks.pack([masks.seq2seq(2, 2), masks.left_to_right(2)], 7)),
        ("tests.unit.cli.test_masks_command:limited", limited()),
    ],
)
def test_json_has_all_that_decides_who_sees_whom(words, mask, capsys):
    assert main(["masks", "show", *words.split(), "--json"]) == 0
    assert read_back(json.loads(capsys.readouterr().out)) == mask


def test_json_has_the_fields_of_a_mask(tmp_path, capsys):
    mask = masks.seq2seq(2, 3)
    assert main(["masks", "show", "seq2seq", "2", "3", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == fields_of(mask)
    path = str(tmp_path / "mask.svg")
    assert main(["masks", "plot", "seq2seq", "2", "3", "--json", "--output", path]) == 0
    assert json.loads(capsys.readouterr().out) == {"output": path} | fields_of(mask)
    assert main(["masks", "plot", "seq2seq", "2", "3", "--output", path, "--overwrite"]) == 0
    assert capsys.readouterr().out == f"wrote {path}\n"


def test_help_lists_every_mask_with_what_it_takes(capsys):
    for verb in ("show", "plot"):
        _, out, _ = leaving(capsys, "masks", verb, "--help")
        listed = out[out.index("\nmasks:\n") :].splitlines()[2:]
        assert listed == [
            *(f"  {name}{parameters}" for name, parameters in BUILDERS.items()),
            "  pack(length, MASK:ARGUMENTS ...), several documents in one row",
        ]


def test_every_function_that_makes_a_mask_of_lengths_is_known_by_all_its_names():
    named = {name for name in masks.__all__ if inspect.isfunction(vars(masks)[name])}
    assert set(BUILDERS) == {name for name in named if vars(masks)[name].__module__ == "unified.masks.builders"}


def test_what_a_mask_takes_is_what_its_function_takes():
    for name, parameters in BUILDERS.items():
        taken = inspect.signature(vars(masks)[name]).parameters.values()
        defaults = ["" if one.default is one.empty else f"={one.default!r}" for one in taken]
        named = [f"{one.name}{default}" for one, default in zip(taken, defaults, strict=True)]
        assert parameters == f"({', '.join(named)})"


def test_a_query_stream_without_queries_is_shown(capsys):
    assert main(["masks", "show", "bidirectional", "3", "--query-stream", ""]) == 0
    assert capsys.readouterr().out == f"{masks.bidirectional(3).query_stream([])}\n"


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        ("--sinks 1", lambda mask: mask.with_sinks(1)),
        ("--memory 2", lambda mask: mask.with_memory(2)),
        ("--without-self", lambda mask: mask.without_self()),
        ("--sinks 1 --memory 2 --without-self", lambda mask: mask.with_sinks(1).with_memory(2).without_self()),
        ("--sinks 0 --memory 0", lambda mask: mask),
    ],
)
def test_options_add_to_a_mask_what_its_methods_add(words, changed, capsys):
    assert main(["masks", "show", "sliding_window", "5", "1", "None", *words.split()]) == 0
    assert capsys.readouterr().out == f"{changed(masks.sliding_window(5, 1, None))}\n"


@pytest.mark.parametrize(
    ("document", "mask"),
    [
        ("permutation:0,2,1", masks.permutation([0, 2, 1])),
        ("permutation:steps=0,2,1", masks.permutation([0, 2, 1])),
        ("tree:-1,0,0", masks.tree([-1, 0, 0])),
        ("pseudo_masked:0,1", masks.pseudo_masked([0, 1])),
        ("left_to_right:3", masks.left_to_right(3)),
        ("bidirectional:length=3", masks.bidirectional(3)),
        ("seq2seq:2,target_length=1", masks.seq2seq(2, 1)),
        ("sliding_window:4,1,right=none", masks.sliding_window(4, 1, None)),
        ("docs.examples.gist_mask:gist:6,3", gist(6, 3)),
        ("docs.examples.gist_mask:gist:6,size=3", gist(6, 3)),
        ("tests.support.mask_samples:triangle:3", triangle(3)),
        ("tests.unit.cli.test_masks_command:neighbours", masks.sliding_window(2, 1, 1)),
    ],
)
def test_every_mask_is_packed(document, mask, capsys):
    assert main(["masks", "show", "pack", "9", document, "block_causal:3,2"]) == 0
    assert capsys.readouterr().out == f"{masks.pack([mask, masks.block_causal(3, 2)], 9)}\n"


KNOWN = ", ".join((*BUILDERS, "pack"))


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("pak 3", "mask 'pak': no such mask (did you mean 'pack'?)"),
        ("zzz 3", "mask 'zzz': no such mask; known are {known}, and any package.module:function"),
        ("tests.unit.cli.test_masks_command:NO_FUNCTION 3",
         "mask 'tests.unit.cli.test_masks_command:NO_FUNCTION': NO_FUNCTION is not a function"),
        ("builtins:len 1,2", "builtins:len must return an AttentionMask of unified.masks, got int"),
        ("bidirectional", "bidirectional: missing a required argument: 'length'; it takes (length)"),
        ("sliding_window 8 1 x", "sliding_window: argument 3 must be an integer, got 'x'"),
        ("sliding_window 8 1 right=1,y", "sliding_window: right must be integers separated by commas, got '1,y'"),
        ("sliding_window 8 left=1 left=2", "sliding_window: left is given twice"),
        ("bidirectional 3 --query-stream x", "--query-stream must be integers separated by commas, got 'x'"),
        ("bidirectional 3 --query-stream 9", "--query-stream 9: targets must lie within the row of 3 tokens, got 9"),
        ("pack x bidirectional:1", "the length of the row must be an integer, got 'x'"),
        ("pack 9 left_to_right:1,2", "length must be an integer of at least 0, got [1, 2]"),
        ("pack 9 seq2seq:1,2,3", "seq2seq: too many positional arguments; it takes (source_length, target_length)"),
        ("pack 9 seq2seq",
         "seq2seq: missing a required argument: 'source_length'; it takes (source_length, target_length)"),
        ("pack 9 bidirectional:x", "bidirectional: argument 1 must be an integer, got 'x'"),
        ("pack 9 zzz:3", "mask 'zzz': no such mask; known are {known}, and any package.module:function"),
        ("pack 9 docs.examples.gist_mask:gits:6,3",
         "mask 'docs.examples.gist_mask:gits': module docs.examples.gist_mask has no 'gits' (did you mean 'gist'?)"),
        ("pack 9 docs.examples.gist_mask:gist:6:3",
         "docs.examples.gist_mask:gist: argument 1 must be an integer, got '6:3'"),
        ("pack", "pack needs the length of the row and its documents: pack 9 seq2seq:2,2 right_to_left:3"),
    ],
)  # fmt: skip
def test_words_that_name_no_mask_are_refused(words, says, capsys):
    assert main(["masks", "show", *words.split()]) == 2
    told = capsys.readouterr().err.removeprefix("unified masks: error: ").removesuffix("\n")
    assert told == says.format(known=KNOWN)


@pytest.mark.parametrize("option", ["--sinks", "--memory"])
def test_a_number_below_zero_is_refused_by_its_option(option, capsys):
    status, _, told = leaving(capsys, "masks", "show", "bidirectional", "3", f"{option}=-1")
    assert status == 2 and f"argument {option}: must be an integer of at least 0, got '-1'" in told
