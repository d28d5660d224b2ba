"""UniLM's pre-training recipe: prepared text is divided into sentences, and segments are cut between them."""

from __future__ import annotations

import shlex
import sys

import numpy as np
import pytest

from tests.recipes.test_recipes import RECIPES, run
from tests.support.asked import is_next
from unified.cli.parsing import make_parser
from unified.corpus.cleaning import Cleaning
from unified.data.token_files import TokenFile
from unified.data.vocabulary import Vocabulary
from unified.objectives import parse_objectives
from unified.planning.documents import DocumentTexts
from unified.tokenization import load_tokenizer
from unified.training.row_dataset import RowDataset

sys.path.insert(0, str(RECIPES / "common"))
import corpora  # noqa: E402
import debug_text  # noqa: E402


def command(*arguments) -> list[str]:
    """Words of the last command that the recipe would run."""
    return shlex.split(run("python", RECIPES / "pretrain.py", *arguments, PRINT="1").stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The debug text, whose paragraphs have five sentences each, prepared by the recipe."""
    folder = tmp_path_factory.mktemp("unilm")
    corpora.main([str(folder / "text"), "debug"])
    run(
        "python",
        RECIPES / "pretrain.py",
        "unilm",
        "prepare",
        "debug",
        folder / "data",
        folder / "text" / "debug.jsonl",
        "--workers",
        1,
    )
    return folder / "data"


def test_an_item_is_a_sentence(prepared):
    tokenizer, vocabulary = load_tokenizer(prepared), Vocabulary.load(prepared / "dict.txt")
    items = 0
    for split in ("train", "valid"):
        file = TokenFile(prepared / split)
        for i in range(len(file)):
            text = tokenizer.decode([vocabulary.symbols[token] for token in file[i][:-1]])
            assert text.count(".") == (1 if text else 0), text
            items += bool(text)
    assert items == sum(5 * len(paragraphs) for paragraphs in debug_text.documents())


def test_segments_are_cut_between_sentences(prepared):
    """In the rows that the recipe's own objectives make; a block of a single sentence has no such index."""
    words = command("unilm", "pretrain", "large", prepared, "models")
    objectives = parse_objectives(words[words.index("--objectives") + 1])
    vocabulary, tokenizer = Vocabulary.load(prepared / "dict.txt"), load_tokenizer(prepared)
    length = int(words[words.index("--tokens-per-sample") + 1])
    rows = RowDataset(DocumentTexts(TokenFile(prepared / "train"), vocabulary.special), objectives, length, seed=1)
    cut = 0
    for i in range(len(rows)):
        for example in rows[i]:
            tokens = example.tokens.copy()
            tokens[example.targets["token"].output_indices[:, 0]] = example.targets["token"].labels
            ends = np.flatnonzero(tokens == vocabulary.special.separator)
            if example.objective not in ("bidirectional", "seq2seq") or is_next(example) == 0:
                continue
            first, second = (
                tokenizer.decode([vocabulary.symbols[token] for token in part])
                for part in (tokens[1 : ends[0]], tokens[ends[0] + 1 : ends[1]])
            )
            if (first + second).count(".") > 1:
                assert first.endswith(".") and second.endswith("."), (first, second)
                cut += 1
    assert cut > 100


@pytest.mark.parametrize("system", ["unilm", "bert", "spanbert", "xlnet", "anna"])
def test_systems_that_read_two_segments_prepare_sentences(system):
    """T5 reads running text, whatever its lines."""
    words = command(system, "prepare", "base", "data", "text.jsonl")
    assert Cleaning.parse(make_parser("prepare").parse_args(words[1:]).clean).divides_sentences
