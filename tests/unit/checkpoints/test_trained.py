"""Contents of a checkpoint: where it and its dictionary are found, what is read of it, and what is refused."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path

import pytest
import torch

from tests.support.tiny_models import model, vocabulary
from unified import masks
from unified.checkpoints.files import fingerprint, load_checkpoint
from unified.checkpoints.trained import (
    Checkpoint,
    Trained,
    contents,
    dictionary_file,
    find_checkpoint,
    find_data,
    heads_of,
    pair_lengths,
    restore,
    sequence_length,
    trained_objectives,
    write,
)
from unified.errors import UnifiedError
from unified.files.hashes import hashes
from unified.generation.lengths import PairLengths
from unified.reports.results import write_result
from unified.tokenization import FILES
from unified.tokenization.wordpiece import WordPieceTokenizer

TOKENS = "core.transformer.embeddings.tokens.weight"
ADVICE = (
    "copy dict.txt and the tokenizer's files (tokenizer*, vocab.txt, anna.json, *.model) beside it, or give data= to "
    "unified.load"
)
WORDS = vocabulary()


def trained(**changes) -> Trained:
    lm = model()
    return replace(Trained(lm.config, "cloze", lm.state_dict(), WORDS), **changes)


def written(folder: Path, **changes) -> dict:
    """The content of the checkpoint that :func:`write` makes in ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    write(trained(**changes), folder)
    return load_checkpoint(folder / "checkpoint_last.pt")


def refusal(call, *arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        call(*arguments)
    return raised.value.details  # the whole text, however long the path of the test's folder is


def results(folder: Path, **more) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    write_result(
        folder, task="t", run="r", scores={}, seed=1, command=[], model={"name": "m", "sha256": None}, settings={},
        data={}, published={}, **more,
    )  # fmt: skip


def touched(*paths: Path) -> None:
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


# Where things are


def test_a_file_is_the_checkpoint_whether_it_is_there_or_not(tmp_path):
    assert find_checkpoint(str(tmp_path / "x.pt")) == tmp_path / "x.pt"


def test_a_folder_gives_its_best_checkpoint_or_else_its_last(tmp_path):
    touched(tmp_path / "checkpoint_last.pt", tmp_path / "checkpoint3.pt")
    assert find_checkpoint(tmp_path) == tmp_path / "checkpoint_last.pt"
    touched(tmp_path / "checkpoint_best.pt")
    assert find_checkpoint(tmp_path) == tmp_path / "checkpoint_best.pt"


def test_a_folder_with_results_gives_the_checkpoint_that_was_scored(tmp_path):
    touched(tmp_path / "checkpoint_best.pt", tmp_path / "checkpoint_last.pt")
    results(tmp_path, checkpoint="last")
    assert find_checkpoint(tmp_path) == tmp_path / "checkpoint_last.pt"
    (tmp_path / "checkpoint_last.pt").unlink()
    assert find_checkpoint(tmp_path) == tmp_path / "checkpoint_best.pt"
    results(tmp_path)
    assert find_checkpoint(tmp_path) == tmp_path / "checkpoint_best.pt"


def test_results_of_several_tasks_that_were_learnt_together_name_their_common_checkpoint(tmp_path):
    touched(tmp_path / "checkpoint_best.pt", tmp_path / "checkpoint_last.pt")
    results(tmp_path / "alone", checkpoint="last")  # a run of its own, whose checkpoints are not these
    assert find_checkpoint(tmp_path).name == "checkpoint_best.pt"
    results(tmp_path / "one", checkpoint="last", together=["one", "two"])
    assert find_checkpoint(tmp_path).name == "checkpoint_last.pt"


def test_a_grid_gives_the_checkpoint_of_its_chosen_run(tmp_path):
    touched(tmp_path / "checkpoint_best.pt", tmp_path / "runs" / "2" / "checkpoint_last.pt")
    (tmp_path / "results.json").write_text(json.dumps({"chosen": {"folder": "runs/2"}}))
    assert find_checkpoint(tmp_path) == tmp_path / "runs" / "2" / "checkpoint_last.pt"


def test_a_folder_without_a_checkpoint_is_refused(tmp_path):
    said = f"{tmp_path}: holds neither checkpoint_best.pt nor checkpoint_last.pt"
    assert refusal(find_checkpoint, tmp_path) == said
    touched(tmp_path / "b" / "checkpoint_last.pt", tmp_path / "a" / "checkpoint_best.pt", tmp_path / "c" / "other.pt")
    touched(tmp_path / "a" / "checkpoint_last.pt")
    assert refusal(find_checkpoint, tmp_path) == f"{said}; name one of its folders that hold checkpoints: a, b"


def test_a_data_folder_has_one_dictionary_or_one_for_each_language(tmp_path):
    advice = "unified prepare` or fairseq-preprocess"
    assert (
        refusal(dictionary_file, tmp_path / "no") == f"{tmp_path / 'no'}: no such data folder; make one with `{advice}"
    )
    assert refusal(dictionary_file, tmp_path) == f"{tmp_path}: holds no dict.txt; give a folder of `{advice}"
    touched(tmp_path / "dict.target.txt", tmp_path / "dict.source.txt")
    assert dictionary_file(tmp_path) == tmp_path / "dict.source.txt"
    touched(tmp_path / "dict.txt")
    assert dictionary_file(tmp_path) == tmp_path / "dict.txt"


def test_the_dictionary_is_where_the_user_says_or_beside_the_checkpoint_or_where_it_was_trained(tmp_path):
    given, beside, before, below = (tmp_path / name for name in ("given", "run", "before", "run/data"))
    path, content = beside / "x.pt", {"cfg": {"task": {"data": f"{before}{os.pathsep}{given}"}}}
    touched(path)
    gone = f"{path}: there is no dictionary now in {before}, on which it was trained; {ADVICE}"
    assert refusal(find_data, path, content) == gone
    touched(below / "dict.txt")
    assert find_data(path, content) == below
    touched(before / "dict.en.txt")
    assert find_data(path, content) == before
    touched(beside / "dict.txt")
    assert find_data(path, content) == beside
    touched(given / "dict.txt")
    assert find_data(path, content, str(given)) == given
    assert "no such data folder" in refusal(find_data, path, content, tmp_path / "nowhere")


@pytest.mark.parametrize("task", [{}, {"data": ""}, {"data": 5}, {"data": "a\0b"}, None])
def test_a_checkpoint_that_names_no_data_folder_is_refused(tmp_path, task):
    path = tmp_path / "x.pt"
    said = f"{path}: no dict.txt is beside it, and it names no data folder; {ADVICE}"
    assert refusal(find_data, path, {"cfg": {"task": task}}) == refusal(find_data, path, {}) == said
    # Every file that a tokenizer is read from has one of the names.
    assert all(any(fnmatch(name, one) for one in ("tokenizer*", "vocab.txt", "anna.json", "*.model")) for name in FILES)


# What is in a checkpoint


def test_a_checkpoint_is_loaded_with_the_folder_of_its_dictionary(tmp_path):
    content, path = written(tmp_path), tmp_path / "checkpoint_last.pt"
    loaded = Checkpoint.load(path)
    assert (loaded.path, loaded.folder) == (path, tmp_path) and loaded.content.keys() == content.keys()
    touched(tmp_path / "data" / "dict.txt")
    assert Checkpoint.load(path, tmp_path / "data", mapped=True).folder == tmp_path / "data"


def test_a_checkpoint_does_not_depend_on_where_it_is_written(tmp_path):
    """A conversion is made anew in another cache, and a run that began from it goes on with the same contents."""
    for name in ("one", "two"):
        written(tmp_path / name)
    one, two = ((tmp_path / name / "checkpoint_last.pt").read_bytes() for name in ("one", "two"))
    assert one == two


def test_what_is_written_is_read(tmp_path):
    lm = model()
    for changes in (
        {},
        {"writes": "nothing", "objectives": "bert:0.5", "lengths": PairLengths(3, 0, 9)},
        {"heads": {"t": {"head": "tagging", "settings": {"labels": ("a", "b")}}}, "longest": 24},
    ):
        own = trained(**changes)
        found = Checkpoint(tmp_path / "x.pt", written(tmp_path, **changes), tmp_path).trained()
        assert (
            found.config == replace(lm.config, attention_backend="auto") and found.vocabulary.symbols == WORDS.symbols
        )
        assert found.parameters.keys() == lm.state_dict().keys()
        assert all(torch.equal(value, lm.state_dict()[name]) for name, value in found.parameters.items())
        names = ("writes", "heads", "longest", "lengths", "objectives")
        assert [getattr(found, name) for name in names] == [getattr(own, name) for name in names]


def test_a_file_is_what_fairseq_writes_at_the_begin_of_an_epoch(tmp_path):
    heads = {"t": {"head": "tagging", "settings": {}}}
    content = written(tmp_path, heads=heads, longest=24, lengths=PairLengths(1, 2, 3))
    settings = {name: value for name, value in asdict(model().config).items() if name != "vocabulary_size"}
    state = content.pop("model")
    assert content == {
        "args": None,
        "cfg": {
            "_name": None,
            "model": {"_name": "unified_lm", "writes": "cloze", **settings},
            "task": {"_name": "unified_understanding", "data": "", "tokens_per_sample": 24},
        },
        "criterion": None,
        "optimizer_history": [{"optimizer_name": None, "lr_scheduler_state": {"best": None}, "num_updates": 0}],
        "task_state": {"pair_lengths": {"max_source": 1, "max_target": 2, "longest_target": 3}},
        "extra_state": {
            "train_iterator": {"epoch": 1, "iterations_in_epoch": 0, "shuffle": True},
            "UnifiedUnderstandingTask": heads,
        },
        "last_optimizer_state": None,
    }
    assert state.pop("dictionary_version") == fingerprint(WORDS.symbols)
    assert state.keys() == {f"core.{name}" for name in model().state_dict()}


def test_a_language_model_has_no_settings_of_tasks(tmp_path):
    content = written(tmp_path)
    assert content["cfg"]["task"] == {"_name": "unified_lm", "data": ""}
    assert content["task_state"] == {} and list(content["extra_state"]) == ["train_iterator"]
    assert written(tmp_path, objectives="bert")["cfg"]["task"]["objectives"] == "bert"
    assert heads_of(content) == {} and pair_lengths(content) == PairLengths() and trained_objectives(content) == ""


def test_settings_may_be_namespaces_or_missing():
    task = argparse.Namespace(tokens_per_sample=7, objectives="bert")
    content = {
        "cfg": argparse.Namespace(task=task),
        "extra_state": {"UnifiedUnderstandingTask": {"t": argparse.Namespace(head="span")}},
    }
    assert sequence_length(content) == 7 and trained_objectives(content) == "bert"
    assert heads_of(content) == {"t": {"head": "span"}}
    assert heads_of({}) == {} and heads_of({"extra_state": 3}) == {} and trained_objectives({"cfg": 5}) == ""
    assert trained_objectives({"cfg": {"task": {"objectives": None}}}) == ""


@pytest.mark.parametrize("tokens", [None, 0, "24"])
def test_the_length_of_sequences_must_be_a_number(tokens):
    content = {"cfg": {"task": {"tokens_per_sample": tokens}}}
    wanted = f"tokens_per_sample must be an integer of at least 1, got {tokens!r}"
    assert refusal(sequence_length, content) == wanted
    assert sequence_length({"cfg": {"task": {"tokens_per_sample": 1}}}) == 1


def test_objectives_must_be_a_text():
    assert refusal(trained_objectives, {"cfg": {"task": {"objectives": 3}}}) == "objectives must be a text, got 3"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda c: c.pop("cfg"), "not a checkpoint of a unified_lm model"),
        (lambda c: c["cfg"].pop("model"), "not a checkpoint of a unified_lm model"),
        (lambda c: c.update(model=[1]), "not a checkpoint of a unified_lm model"),
        (lambda c: c["model"].pop(TOKENS), "not a checkpoint of a unified_lm model"),
        (lambda c: c["model"].update(x=5), "the parameter 'x' is 5, not a tensor by a name"),
        (lambda c: c["model"].update({7: torch.ones(1)}), "the parameter 7 is tensor([1.]), not a tensor by a name"),
        (lambda c: c["cfg"]["model"].pop("writes"), "does not say how the model writes (writes=None)"),
        (lambda c: c["cfg"]["model"].update(writes="x"), "does not say how the model writes (writes='x')"),
        (lambda c: c["cfg"]["model"].update(writes=[]), "does not say how the model writes (writes=[])"),
        (lambda c: c["model"].update({TOKENS: torch.ones(3)}), "its table of symbols is no matrix, or "
         "dictionary_version no number"),
        (lambda c: c["model"].update(dictionary_version=torch.ones(2)), "its table of symbols is no matrix, or "
         "dictionary_version no number"),
        (lambda c: c["model"].update(dictionary_version=torch.ones(1) * 1j), "its table of symbols is no matrix, or "
         "dictionary_version no number"),
        (lambda c: c["model"].update({TOKENS: torch.ones(3, 2)}), "has 3 symbols, but the dictionary in HERE has "
         f"{len(WORDS)}"),
        (lambda c: c["model"].update(dictionary_version=torch.tensor(5)), "was trained with another dictionary than "
         "the one in HERE, of the same size"),
    ],
)  # fmt: skip
def test_what_is_no_checkpoint_is_refused(tmp_path, change, said):
    content, path = written(tmp_path), tmp_path / "x.pt"
    change(content)
    assert refusal(Checkpoint(path, content, tmp_path).trained) == f"{path}: {said.replace('HERE', str(tmp_path))}"


def test_the_dictionary_decides_how_many_symbols_a_model_has(tmp_path):
    content = written(tmp_path)
    content["cfg"]["model"]["vocabulary_size"] = 7
    assert Checkpoint(tmp_path / "x.pt", content, tmp_path).trained().config.vocabulary_size == len(WORDS)


def test_a_checkpoint_without_a_fingerprint_is_read(tmp_path):
    content = written(tmp_path)
    del content["model"]["dictionary_version"]
    assert Checkpoint(tmp_path / "x.pt", content, tmp_path).trained().writes == "cloze"


# The model


def test_a_restored_model_is_that_of_the_checkpoint_in_eval_mode(tmp_path):
    checkpoint = Checkpoint(tmp_path / "x.pt", written(tmp_path), tmp_path)
    lm, found, kept, new = model(), *restore(checkpoint)
    assert (kept.vocabulary.symbols, kept.writes, new, found.training) == (WORDS.symbols, "cloze", [], False)
    ids = torch.randint(4, 16, (2, 7))
    given = ids, torch.arange(7).expand(2, -1), torch.zeros_like(ids), masks.batch([masks.bidirectional(7)] * 2)
    with torch.no_grad():
        torch.testing.assert_close(found.transformer(*given), lm.transformer(*given), atol=1e-5, rtol=1e-5)


def test_a_language_model_may_lack_the_next_sentence_head_alone(tmp_path):
    content, path = written(tmp_path), tmp_path / "x.pt"
    pooler = [name for name in content["model"] if name.startswith("core.heads.next_sentence.")]
    for name in pooler:
        del content["model"][name]
    assert restore(Checkpoint(path, content, tmp_path))[2] == [name.removeprefix("core.") for name in pooler]
    del content["model"]["core.heads.token.bias"]
    wanted = f"{path}: the checkpoint's parameters do not fit the model: missing: heads.token.bias"
    assert refusal(restore, Checkpoint(path, content, tmp_path)) == wanted


def test_heads_of_objectives_are_left_out_and_named(tmp_path, caplog):
    content, path = written(tmp_path), tmp_path / "x.pt"
    caplog.set_level("INFO", "unified.checkpoints.trained")

    def told() -> list[str]:
        assert restore(Checkpoint(path, content, tmp_path))[2] == []
        return [one.getMessage() for one in caplog.records if one.name == "unified.checkpoints.trained"]

    assert told() == []
    content["model"] |= {"core.heads.mine.a": torch.ones(1), "core.heads.yours.b": torch.ones(1)}
    assert told() == [f"{path}: left out, as only training reads it: head mine, head yours"]


def test_contents_are_named_by_the_hashes_of_checkpoint_dictionary_and_tokenizer(tmp_path):
    written(tmp_path)
    own = WordPieceTokenizer(["[UNK]", "a"])
    own.save(tmp_path)
    path = tmp_path / "checkpoint_last.pt"
    files = ["dict.txt", "tokenizer_config.json", "vocab.txt"]
    assert contents([path], WORDS, own) == hashes([path, *(tmp_path / name for name in files)])
    assert contents([path], WORDS, None) == hashes([path, tmp_path / "dict.txt"])
