"""Tables over another dictionary: which rows go where, how new ones begin, and which dictionaries are too different."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.support.tiny_models import model, vocabulary
from unified.checkpoints import fingerprint, load_checkpoint
from unified.checkpoints.trained import Checkpoint, Trained, write
from unified.checkpoints.vocabularies import (
    BIASES,
    BY_SYMBOL,
    SCORED,
    VocabularyChange,
    change_vocabulary,
    grown,
    over_symbols,
)
from unified.data.vocabulary import APPENDED, Vocabulary
from unified.errors import UnifiedError
from unified.tokenization.wordpiece import WordPieceTokenizer

TABLE = BY_SYMBOL[0]
OLD, NEW = ["a", "b", "c", "d"], ["x", "c", "y", "a"]


def tables(rows: int) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    found = {TABLE: torch.randn(rows, 3), **{name: torch.randn(rows) for name in BIASES}}
    return {**found, "transformer.other": torch.randn(rows, 2)}


def test_every_parameter_with_a_row_for_each_symbol_is_named():
    small, large = (model(words, boundary_offsets=3).state_dict() for words in (12, 13))
    assert {name for name in small if small[name].shape != large[name].shape} == set(BY_SYMBOL)
    assert {name for name in BY_SYMBOL if name.endswith(".bias")} == set(BIASES)


def test_rows_go_where_their_symbols_go_and_other_parameters_stay():
    before = tables(5)  # the last row stands for nothing
    moved = over_symbols(before, OLD, NEW, 0.1)
    assert moved.keys() == before.keys() | {SCORED} and moved["transformer.other"] is before["transformer.other"]
    for name in (TABLE, *BIASES):
        assert torch.equal(moved[name][[1, 3]], before[name][[2, 0]])
    assert moved[SCORED].tolist() == [0, 1, 0, 1]
    assert SCORED not in before


def test_new_embeddings_are_drawn_by_the_seed_and_the_deviation():
    before, new = {TABLE: torch.zeros(1, 50)}, [f"n{i}" for i in range(100)]
    found = {seed: over_symbols(before, ["a"], new, 0.5, seed)[TABLE] for seed in (1, 2)}
    assert torch.equal(found[1], 0.5 * torch.randn(100, 50, generator=torch.Generator().manual_seed(1)))
    assert torch.equal(found[1], over_symbols(before, ["a"], new, 0.5)[TABLE]) and not torch.equal(found[1], found[2])


def test_new_biases_begin_with_the_median_of_those_that_the_softmax_has():
    before = tables(5)
    before[BIASES[0]] = torch.tensor([3.0, 9.0, 1.0, 7.0, -100.0])
    # torch takes the lower middle one of an even number.
    assert over_symbols(before, OLD, NEW, 0.1)[BIASES[0]].tolist() == [3.0, 1.0, 3.0, 3.0]
    before[SCORED] = torch.tensor([1.0, 0.0, 0.0, 1.0])
    before[BIASES[0]] = torch.tensor([8.0, 1.0, 1.0, 7.0])
    before[BIASES[1]] = torch.zeros(4)
    moved = over_symbols({**before, TABLE: before[TABLE][:4]}, OLD, NEW, 0.1)
    assert moved[BIASES[0]].tolist() == [7.0, 1.0, 7.0, 8.0] and moved[SCORED].tolist() == [0, 0, 0, 1]


def test_tables_become_float32_and_only_those_that_are_there():
    moved = over_symbols({TABLE: torch.ones(4, 2).half()}, OLD, NEW, 0.1)
    assert moved.keys() == {TABLE, SCORED} and {value.dtype for value in moved.values()} == {torch.float32}


def test_a_dictionary_that_has_grown_at_its_end_gets_rows_for_the_new_symbols():
    before, saved = tables(4), fingerprint(OLD)
    found, new = grown(before, [*OLD, "e", "f"], saved, 0.1)
    assert new == ["e", "f"] and torch.equal(found[TABLE][:4], before[TABLE]) and len(found[TABLE]) == 6
    expected = over_symbols(before, OLD, [*OLD, "e", "f"], 0.1)
    assert all(torch.equal(found[name], expected[name]) for name in expected)


@pytest.mark.parametrize(
    "symbols", [OLD, OLD[:3], ["b", "a", "c", "d", "e"], ["z", *OLD]], ids=["same", "shorter", "other order", "before"]
)
def test_any_other_dictionary_changes_nothing(symbols):
    before = tables(4)
    found, new = grown(before, symbols, fingerprint(OLD), 0.1)
    assert new == [] and found == before and found is not before


def test_a_file_without_a_table_of_symbols_changes_nothing():
    assert grown({"x": torch.ones(1)}, OLD, fingerprint([]), 0.1) == ({"x": torch.ones(1)}, [])


# From folder to folder


def trained(folder: Path, words: list[str], tokenizer: WordPieceTokenizer | None = None) -> Path:
    folder.mkdir()
    lm, known = model(len(words)), Vocabulary(words)
    write(Trained(lm.config, "cloze", lm.state_dict(), known, objectives="bert"), folder)
    if tokenizer is not None:
        tokenizer.save(folder)
    return folder


def data(folder: Path, words: list[str], tokenizer: WordPieceTokenizer | None = None) -> Path:
    folder.mkdir()
    Vocabulary(words).save(folder / "dict.txt")
    if tokenizer is not None:
        tokenizer.save(folder)
    return folder


def refusal(*arguments) -> str:
    with pytest.raises(UnifiedError) as raised:
        change_vocabulary(*arguments)
    return str(raised.value)


def test_a_checkpoint_goes_over_to_the_dictionary_and_tokenizer_of_a_data_folder(tmp_path):
    words = vocabulary().symbols[4:16]
    own = WordPieceTokenizer(["[UNK]", *words[1:], "more", "again"])
    source = trained(tmp_path / "old", words, WordPieceTokenizer(["[UNK]", *words]))
    change = change_vocabulary(source, data(tmp_path / "data", [*words[1:], "more", "again"], own), tmp_path / "out")
    kept = (*Vocabulary([]).symbols[:4], *words[1:], *APPENDED)
    assert change == VocabularyChange(kept=kept, new=("more", "again"), left_out=("w0",))
    content = load_checkpoint(tmp_path / "out" / "checkpoint_last.pt")
    found = Checkpoint(tmp_path / "x", content, tmp_path / "out").trained()
    before = Checkpoint.load(source / "checkpoint_last.pt").trained()
    expected = over_symbols(before.parameters, before.vocabulary.symbols, found.vocabulary.symbols, 0.3)
    assert all(torch.equal(found.parameters[name], expected[name]) for name in expected)
    assert (found.writes, found.objectives) == ("cloze", "bert")
    assert found.config == replace(before.config, vocabulary_size=len(found.vocabulary))
    assert (tmp_path / "out" / "vocab.txt").read_text() == "".join(f"{entry}\n" for entry in own.entries)
    assert content["cfg"]["task"]["data"] == ""
    assert "not empty" in refusal(source, tmp_path / "data", tmp_path / "out")


def test_the_seed_draws_the_new_rows(tmp_path):
    source, wanted = trained(tmp_path / "old", ["a", "b"]), data(tmp_path / "data", ["a", "b", "c"])
    found = []
    for name, seed in (("one", {}), ("two", {"seed": 1}), ("three", {"seed": 2})):
        change_vocabulary(source, wanted, tmp_path / name, **seed)
        assert {path.name for path in (tmp_path / name).iterdir()} == {"checkpoint_last.pt", "dict.txt"}
        found.append(load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"][f"core.{TABLE}"][6])
    assert torch.equal(found[0], found[1]) and not torch.equal(found[0], found[2])


@pytest.mark.parametrize(("shared", "ours"), [(2, 4), (1, 2), (1, 1)])
def test_half_of_the_smaller_dictionary_must_be_in_the_other(tmp_path, shared, ours):
    """Special symbols, which all dictionaries have, count on neither side."""
    common = [f"c{i}" for i in range(shared)]
    source = trained(tmp_path / "old", [*common, *(f"o{i}" for i in range(ours - shared))])
    enough = data(tmp_path / "enough", [*common, *(f"n{i}" for i in range(9))])
    change_vocabulary(source, enough, tmp_path / "out")
    few = data(tmp_path / "few", [*common[1:], *(f"n{i}" for i in range(9))])
    assert refusal(source, few, tmp_path / "none") == (
        f"{few}: its dictionary shares {shared - 1} of {ours} symbols with the checkpoint's, too few to go on from it; "
        "make the data with `unified prepare --tokenizer FOLDER`, the checkpoint's folder, or train anew"
    )
    assert not (tmp_path / "none").exists()


def test_two_dictionaries_without_words_share_nothing(tmp_path):
    source, empty = trained(tmp_path / "old", []), data(tmp_path / "data", [])
    assert "shares 0 of 0 symbols" in refusal(source, empty, tmp_path / "out")


def test_tokenizers_must_be_of_one_type(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a message with two long paths would be shortened
    own = WordPieceTokenizer(["[UNK]", "a", "b"])
    source, other = trained(Path("old"), ["a", "b"], own), data(Path("data"), ["a", "b"])
    change_vocabulary(source, other, Path("none"))
    (other / "tokenizer.model").touch()
    assert refusal(source, other, Path("out")) == (
        "data: its tokenizer is a tokenizer.model, the checkpoint's in old a vocab.txt; symbols spelled alike are not "
        "the same pieces"
    )
    (other / "xlnet.model").touch()
    (source / "anna.json").touch()
    said = refusal(source, other, Path("out"))
    assert "is a tokenizer.model and a xlnet.model, " in said and " a vocab.txt and a anna.json; " in said


@pytest.mark.parametrize("seed", [2**63, -(2**63) - 1])
def test_a_seed_has_64_bits(tmp_path, seed):
    source, other = trained(tmp_path / "old", ["a", "b"]), data(tmp_path / "data", ["a", "b", "c"])
    assert refusal(source, other, tmp_path / "out", seed) == (
        "seed must be an integer of 64 bits, got an integer of more than 64 bits"
    )
    assert not (tmp_path / "out").exists()
    change_vocabulary(source, other, tmp_path / "out", seed - 1 if seed > 0 else seed + 1)
