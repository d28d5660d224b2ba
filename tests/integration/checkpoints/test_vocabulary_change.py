"""A checkpoint over another dictionary, and over more token types: every row where its symbol is."""

import shutil

import numpy as np
import pytest
import torch
from scipy import stats

from tests.support import fairseq_runs as fairseq
from tests.support.checkpoint_samples import checkpoint
from unified import UnifiedLM, masks
from unified.checkpoints import load_checkpoint, load_parameters
from unified.checkpoints.vocabularies import BIASES, BY_SYMBOL, SCORED, change_vocabulary, over_symbols
from unified.cli import main
from unified.data.vocabulary import APPENDED, MASK, Vocabulary
from unified.errors import UnifiedError
from unified.model import TransformerConfig, UnifiedModel

WORDS = [f"w{i}" for i in range(60)]


def folder_of(path, words, vocab_txt=None, model=False):
    """A data folder with a dictionary of ``words``."""
    path.mkdir()
    vocabulary = Vocabulary(list(words))
    vocabulary.save(path / "dict.txt")
    if vocab_txt:
        (path / "vocab.txt").write_text("".join(f"{entry}\n" for entry in vocab_txt))
    if model:
        (path / "tokenizer.model").write_bytes(b"of sentencepiece")
    return vocabulary


def trained_on(path, words, **changes):
    """A checkpoint beside its dictionary; returns its model and vocabulary."""
    vocabulary = folder_of(path, words)
    return checkpoint(path / "checkpoint_last.pt", vocabulary, str(path), **changes), vocabulary


@torch.no_grad()
def test_rows_follow_their_symbols_and_the_old_numbers_stay(tmp_path):
    before, old = trained_on(tmp_path / "old", WORDS[:40], boundary_offsets=3)
    rng = np.random.default_rng(0)
    new = folder_of(tmp_path / "data", [*rng.permutation([*WORDS[3:40], "added"]).tolist(), MASK, "behind the mask"])
    change = change_vocabulary(tmp_path / "old", tmp_path / "data", tmp_path / "out")
    assert change.left_out == ("w0", "w1", "w2") and set(change.new) == {"added", "behind the mask"}
    assert set(change.kept) == set(old.symbols) & set(new.symbols)
    lm = UnifiedLM.from_pretrained(tmp_path / "out")
    assert lm.vocabulary.symbols == new.symbols and lm.writes == "cloze"
    old_state, new_state = before.state_dict(), lm.model.state_dict()
    assert old_state.keys() == new_state.keys()
    for name in old_state:
        if name not in BY_SYMBOL:
            assert torch.equal(old_state[name], new_state[name]), name
            continue
        for row, symbol in enumerate(new.symbols):
            if symbol in old.symbols:
                assert torch.equal(new_state[name][row], old_state[name][old.index(symbol)]), (name, symbol)
    # The same text gives the same scores.
    symbols = ["<s>", "w7", "w30", MASK, "w12", "</s>"]
    mask, positions = masks.batch([masks.bidirectional(6)]), torch.arange(6).unsqueeze(0)
    scores = []
    for model, vocabulary in ((before, old), (lm.model, new)):
        tokens = torch.tensor([[vocabulary.index(symbol) for symbol in symbols]])
        logits = model.logits(model.transformer(tokens, positions, positions * 0, mask)[0])
        scores.append(logits[:, [vocabulary.index(symbol) for symbol in change.kept]])
    torch.testing.assert_close(*scores)


def test_new_rows_are_normal_with_the_models_deviation_and_follow_the_seed(tmp_path):
    trained_on(tmp_path / "old", WORDS, initializer_range=0.05, boundary_offsets=2)
    new = folder_of(tmp_path / "data", [*WORDS, *(f"new{i}" for i in range(2000))])
    rows, found = torch.tensor([new.index(f"new{i}") for i in range(2000)]), {}
    for name, seed in (("one", 1), ("again", 1), ("two", 2)):
        change_vocabulary(tmp_path / "old", tmp_path / "data", tmp_path / name, seed=seed)
        state = load_checkpoint(tmp_path / name / "checkpoint_last.pt")["model"]
        found[name] = state[f"core.{BY_SYMBOL[0]}"][rows]
        scored = state[f"core.{SCORED}"]
        assert not scored[rows].any() and scored.sum() == len(new) - 2000
    assert torch.equal(found["one"], found["again"]) and not torch.equal(found["one"], found["two"])
    # 64,000 values in 20 classes that N(0, 0.05) makes equally likely.
    edges = stats.norm.ppf(np.linspace(0, 1, 21), scale=0.05)
    counts, _ = np.histogram(found["one"].numpy(), edges)
    assert counts.sum() == 64_000 and stats.chisquare(counts).pvalue > 1e-3


def test_new_symbols_are_out_of_the_softmax_and_begin_with_the_median_bias():
    old, new = ["a", "b", "c", "d", "e"], ["x", "e", "a", "y", "c"]
    state = {name: torch.randn(7) for name in BIASES} | {BY_SYMBOL[0]: torch.randn(7, 3)}  # two rows stand for nothing
    moved = over_symbols(state, old, new, 0.02)
    assert moved[SCORED].tolist() == [0, 1, 1, 0, 1]
    again = over_symbols(moved, new, ["y", "a", "z", "e", "c"], 0.02)
    assert again[SCORED].tolist() == [0, 1, 0, 1, 1]
    for name in BIASES:
        kept = sorted(moved[name][[1, 2, 4]].tolist())
        assert moved[name][[1, 2, 4]].equal(state[name][[4, 0, 2]])
        assert moved[name][0] == moved[name][3] == sorted(state[name][:5].tolist())[2]
        # A symbol that is still out has no say in it.
        assert again[name][2] == kept[1] and again[name][0] == moved[name][3]


def test_no_other_parameter_has_a_row_for_every_symbol():
    with torch.device("meta"):
        states = [
            UnifiedModel.for_language(TransformerConfig(size, boundary_offsets=2)).state_dict() for size in (50, 51)
        ]
    assert {name for name in states[0] if states[0][name].shape != states[1][name].shape} == set(BY_SYMBOL)


def test_the_command_counts_what_became_of_the_symbols(tmp_path, capsys):
    trained_on(tmp_path / "old", WORDS[:40])
    folder_of(tmp_path / "data", WORDS[1:])
    words = ["convert", "--vocabulary", str(tmp_path / "data"), str(tmp_path / "old"), str(tmp_path / "out")]
    assert main([*words, "--seed", "5"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"symbols kept: {39 + 4 + len(APPENDED)}"
    fate = "new, drawn at random with seed 5 and written only once training has them as targets"
    assert said[1] == f"symbols {fate}: 20 (w40 w41 w42 w43 w44 w45 w46 w47 ...)"
    assert said[2] == "symbols left out: 1 (w0)"
    assert main(["convert", "--from", "bert", str(tmp_path), str(tmp_path / "other"), "--seed", "5"]) == 2
    assert "--seed is that of --vocabulary" in capsys.readouterr().err


def test_dictionaries_that_are_not_related_are_refused(tmp_path):
    trained_on(tmp_path / "old", WORDS[:40])
    cases = {
        "foreign": ({"words": [f"v{i}" for i in range(40)]}, "shares 0 of 40 symbols"),
        "few": ({"words": [*WORDS[:10], *(f"v{i}" for i in range(20))]}, "shares 10 of 30 symbols"),
        "empty": ({"words": []}, "shares 0 of 0 symbols"),
    }
    for name, (contents, message) in cases.items():
        folder_of(tmp_path / name, **contents)
        with pytest.raises(UnifiedError, match=message):
            change_vocabulary(tmp_path / "old", tmp_path / name, tmp_path / "out")
    (tmp_path / "old" / "vocab.txt").write_text("[UNK]\n")
    folder_of(tmp_path / "pieces", WORDS, model=True)
    with pytest.raises(UnifiedError, match="its tokenizer is a tokenizer.model, the checkpoint's in .* a vocab.txt"):
        change_vocabulary(tmp_path / "old", tmp_path / "pieces", tmp_path / "out")
    with pytest.raises(UnifiedError, match="holds no dict.txt"):
        change_vocabulary(tmp_path / "old", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_new_tokenizer_comes_along(tmp_path):
    trained_on(tmp_path / "old", WORDS)
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
    folder_of(tmp_path / "data", WORDS, vocab_txt=entries)
    change_vocabulary(tmp_path / "old", tmp_path / "data", tmp_path / "out")
    assert UnifiedLM.from_pretrained(tmp_path / "out").tokenizer.entries == entries


# Token types


@pytest.mark.parametrize("rows", [3, 6, 7])
def test_two_token_types_become_unilms(rows):
    """UniLM's rule, row by row: 2, 3 and 4 begin as 0, and 5 and 6 as 1 (unilm-v1, modeling.py:from_pretrained)."""
    shape = {"vocabulary_size": 9, "layers": 1, "width": 8, "heads": 2}
    ours, berts = (UnifiedModel.for_language(TransformerConfig(**shape, token_types=types)) for types in (rows, 2))
    load_parameters(ours, berts.state_dict())
    table, source = (model.transformer.embeddings.token_types.weight for model in (ours, berts))
    for row, copied in list({0: 0, 1: 1, 2: 0, 3: 0, 4: 0, 5: 1, 6: 1}.items())[:rows]:
        assert torch.equal(table[row], source[copied]), row


@pytest.mark.parametrize(("mine", "theirs"), [(8, 2), (2, 6), (6, 3), (2, 1)])
def test_other_numbers_of_token_types_are_refused(mine, theirs):
    shape = {"vocabulary_size": 9, "layers": 1, "width": 8, "heads": 2}
    ours, others = (
        UnifiedModel.for_language(TransformerConfig(**shape, token_types=types)) for types in (mine, theirs)
    )
    with pytest.raises(UnifiedError, match=f"token_types.weight: shape {theirs}x8, the model has {mine}x8"):
        load_parameters(ours, others.state_dict())


def test_training_goes_on_over_the_new_dictionary_with_six_token_types(tmp_path):
    data = fairseq.documents(tmp_path, np.random.default_rng(3), count=12)
    model, _ = trained_on(tmp_path / "old", [*WORDS[10:40], "unseen"], token_types=2, writes="nothing")
    change_vocabulary(tmp_path / "old", data, tmp_path / "out")
    shutil.rmtree(tmp_path / "old")
    # So low a rate moves no weight in float32: what is saved is what was loaded.
    result = fairseq.train(
        data, tmp_path / "save", "--width", 32, "--heads", 4, "--max-positions", 96, "--token-types", 6,
        "--batch-size", 4, "--max-update", 1, "--lr", 1e-20, "--restore-file", tmp_path / "out" / "checkpoint_last.pt",
        "--reset-optimizer", "--reset-lr-scheduler", "--reset-dataloader", "--reset-meters", "--objectives",
        "bidirectional:1,left_to_right:1",
    )  # fmt: skip
    assert "initialised at random" not in result.stdout + result.stderr
    lm = UnifiedLM.from_pretrained(tmp_path / "save", data=data)
    types = model.transformer.embeddings.token_types.weight
    assert torch.equal(lm.model.transformer.embeddings.token_types.weight, types[[0, 1, 0, 0, 0, 1]])
    begun = load_checkpoint(tmp_path / "out" / "checkpoint_last.pt")["model"]
    assert torch.equal(lm.model.transformer.embeddings.tokens.weight, begun[f"core.{BY_SYMBOL[0]}"])
