"""``--json``: one object on standard output, and nothing else there, whatever a command prints otherwise."""

import argparse
import json

import pytest

from tests.support.published_models import published
from unified import masks
from unified.cli import main
from unified.cli.commands.showing.mask_fields import fields_of
from unified.cli.parsing import make_parser
from unified.objectives import OBJECTIVES
from unified.tasks.metrics import score_classification, score_generation

#: Commands that print no results: a script, a file of texts, a training.
OTHERS = {("completion",), ("generate",), ("pretrain",)}


def leaves(parser, *words):
    """Every parser without subcommands that are required, by the words that lead to it."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below or not below[0].required:
        yield words, parser
    for action in below:
        for name, own in action.choices.items():
            yield from leaves(own, *words, name)


def test_every_command_that_prints_results_can_print_json():
    without = {words for words, parser in leaves(make_parser()) if "--json" not in parser._option_string_actions}
    assert without == OTHERS


@pytest.fixture
def printed(capfd):
    """What a command prints as JSON; of the file descriptor, so that nothing else can be on standard output."""

    def printed(*words):
        capfd.readouterr()
        assert main([*map(str, words), "--json"]) == 0
        content = json.loads(capfd.readouterr().out)
        assert isinstance(content, dict)
        return content

    return printed


def test_scores(tmp_path, printed):
    for name, text in (("gold", "a\nb\na\n"), ("found", "a\na\na\n")):
        (tmp_path / name).write_text(text)
    files = (tmp_path / "gold", tmp_path / "found")
    assert printed("score", "classification", *files) == score_classification(["a", "b", "a"], ["a", "a", "a"])
    texts = score_generation(["a", "b", "a"], [["a"], ["a"], ["a"]]).to_dict()
    assert printed("score", "generation", *files) == texts


def test_objectives_and_masks(printed):
    assert [one["name"] for one in printed("objectives")["objectives"]] == list(OBJECTIVES)
    shown = printed("objectives", "show", "target_next", "--text", "a b", "--second", "x")
    mask = masks.seq2seq(source_length=4, target_length=2)
    fields = fields_of(mask)
    assert [name for name, field in fields.items() if isinstance(field, list)] == [
        "query_step",
        "key_start",
        "key_stop",
        "document_ends",
    ]
    assert shown == {
        "objective": "target_next",
        "tokens": ["<s>", "a", "b", "</s>", "<s>", "x"],
        "token_types": [4, 4, 4, 4, 5, 5],
        "predictions": [[], [], [], [], ["x"], ["</s>"]],
        "mask": fields,
    }
    assert printed("masks", "show", "seq2seq", "4", "2") == fields
    permuted = printed("objectives", "show", "xlnet", "--text", "a b c d")
    assert len(permuted["query_stream"]["query_step"]) == sum(map(len, permuted["predictions"]))


def test_folders_of_data_and_models(tmp_path, printed):
    (tmp_path / "text").write_text("the fox runs\n\nthe dog sleeps\n" * 20)
    made = printed("prepare", tmp_path / "text", "--output", tmp_path / "data", "--tokenizer", "char")
    manifest = json.loads((tmp_path / "data" / "manifest.json").read_text())
    del manifest["outputs"]
    assert made == {"output": str(tmp_path / "data"), **manifest} and made["splits"]["train"]["sentences"] == 40
    published("bert", tmp_path / "bert")
    imported = printed("convert", tmp_path / "bert" / "theirs", tmp_path / "ours")
    assert imported["output"] == str(tmp_path / "ours") and imported["tokenizer"]
    assert len(imported["new"]) == 4 and all("next_sentence" in name for name in imported["new"])
    changed = printed("convert", "--vocabulary", tmp_path / "ours", tmp_path / "ours", tmp_path / "same")
    assert len(changed["kept"]) > 100 and changed["new"] == changed["left_out"] == []
    wanted = {"output": str(tmp_path / "out"), "left_out": [], "remarks": []}
    assert printed("export", tmp_path / "ours", tmp_path / "out") == wanted
    assert (tmp_path / "out" / "config.json").is_file()


def test_pairs(tmp_path, printed):
    rows = [{"document": "One day it | rained.", "summary": "Rain."}, {"document": "", "summary": "Nothing."}]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("xsum", tmp_path / "rows.jsonl", "--output", tmp_path / "pairs.jsonl", "--skip-empty", "--workers", 1)
    expected = {"pairs": 1, "empty": 1, "replaced": 1, "without_oracle": 0, "limited": 0}
    assert printed("pairs", *words) == {"output": str(tmp_path / "pairs.jsonl"), **expected}
