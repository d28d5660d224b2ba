"""Training takes symbols that an imported model lacked into the softmax where targets have them, and no others."""

from dataclasses import dataclass

import numpy as np
import pytest

from tests.support import fairseq_runs as fairseq
from tests.support.published_models import published
from tests.support.token_files import (
    SEPARATOR,
    SPECIAL,
    Reads,
    numbered_documents,
    random_sizes,
    write,
    write_documents,
    write_spans,
)
from unified import UnifiedLM
from unified.checkpoints import load_checkpoint
from unified.checkpoints.vocabularies import SCORED, change_vocabulary
from unified.data.annotations import KINDS
from unified.data.targets import BOUNDARY, TOKEN
from unified.data.vocabulary import SENTINELS, Vocabulary
from unified.errors import UnifiedError
from unified.objectives import OBJECTIVES, parse_objectives
from unified.planning.documents import DocumentTexts
from unified.planning.pairs import PairTexts
from unified.training.row_dataset import RowDataset
from unified.training.stream_dataset import RunningText, StreamDataset
from unified.training.target_symbols import target_symbols

SIZE = SPECIAL.first_sentinel + SPECIAL.sentinel_count
ROW = 128
#: Settings under which targets hold what they do not hold otherwise.
OTHERS = (
    "replace_spans(closing_sentinel=True)",
    "random_spans(closing_sentinel=True,mean_span=1.0)",
    "xlnet(denoising=True)",
)


def row_labels(rows) -> set[int]:
    labels = set()
    for epoch in (1, 2):
        rows.set_epoch(epoch)
        examples, _ = rows.examples(range(len(rows)))
        labels |= {
            label
            for own in (TOKEN, BOUNDARY)
            if own in examples.targets
            for label in examples.targets[own].labels.tolist()
        }
    return labels


@pytest.mark.parametrize("name", [*OBJECTIVES, *OTHERS])
def test_no_target_is_missed(tmp_path, name):
    """Labels of two epochs of every objective are among the symbols that are found before training."""
    mixture, rng = parse_objectives(name), np.random.default_rng(0)
    word_starts = rng.random(SIZE) < 0.7
    if mixture.paired:
        pairs = [tuple(rng.integers(10, 19000, rng.integers(1, 40)).tolist() for _ in range(2)) for _ in range(60)]
        files = [write(tmp_path / f"side{i}", [[*pair[i], SEPARATOR] for pair in pairs]) for i in range(2)]
        texts = PairTexts(*files, SPECIAL, word_starts=word_starts)
    else:
        documents = numbered_documents(random_sizes(rng, 12, 10, 15))
        files = [write_documents(tmp_path / "train", documents)]
        texts = DocumentTexts(files[0], SPECIAL, word_starts, write_spans(files[0], KINDS, rng))
    labels = row_labels(RowDataset(texts, mixture, ROW, seed=1))
    every = np.arange(SIZE)
    found = target_symbols(every, files, mixture, SPECIAL, ROW)
    known = set(found.tolist())
    assert labels <= known
    in_data = {token for file in files for item in range(len(file)) for token in file[item].tolist()}
    beyond = known - in_data - {SEPARATOR}
    assert beyond <= set(range(SPECIAL.first_sentinel, SPECIAL.first_sentinel + SPECIAL.sentinel_count))
    assert bool(beyond) == ("spans(" in name or name in ("replace_spans", "random_spans"))
    if name == "random_spans":  # whose number of spans is no draw; no text is as long as it could be
        assert len(beyond - labels) <= 1
    # Of a selection those of it, in its order.
    assert target_symbols(every[::-3], files, mixture, SPECIAL, ROW).tolist() == [
        i for i in every[::-3].tolist() if i in known
    ]


def test_targets_of_streams_are_found(tmp_path):
    rng = np.random.default_rng(0)
    file = write_documents(tmp_path / "train", numbered_documents(random_sizes(rng, 12, 10, 15)))
    mixture = parse_objectives("xlnet")
    rows = StreamDataset(RunningText(file, SPECIAL), mixture.objectives[0], None, ROW, seed=1, streams=2)
    found = target_symbols(np.arange(SIZE), [file], mixture, SPECIAL, ROW)
    assert row_labels(rows) <= set(found.tolist()) and len(found) < SIZE - 100


def test_a_files_symbols_are_found_wherever_they_stand(tmp_path):
    rng = np.random.default_rng(0)
    tokens = rng.integers(4, 300, 150)
    file, wanted = write(tmp_path / "file", np.split(tokens, [3, 60, 61])), rng.permutation(300)
    assert file.holds(wanted, at_once=7).tolist() == [token in tokens for token in wanted]
    assert file.holds(wanted[:0]).tolist() == [] and write(tmp_path / "none", []).holds(np.array([5])).tolist() == [
        False
    ]


@dataclass(frozen=True)
class Undeclared(Reads):
    """Predicts sentinels that it says nothing of."""

    def __call__(self, text, rng):
        example = super().__call__(text, rng)
        example.targets[TOKEN].labels[:] = SPECIAL.first_sentinel + 2
        return example


@dataclass(frozen=True)
class Declared(Undeclared):
    def target_sentinels(self, tokens: int) -> int:
        return 3


def test_an_objective_must_say_which_sentinels_it_writes(tmp_path):
    texts = DocumentTexts(write_documents(tmp_path / "train", numbered_documents([[5, 6], [7, 8]])), SPECIAL)
    module = "tests.integration.checkpoints.test_target_symbols"
    with pytest.raises(UnifiedError, match="objective reads has sentinel 2 as a target; its target_sentinels allows 0"):
        RowDataset(texts, parse_objectives(f"{module}:Undeclared"), ROW, seed=1)
    rows = RowDataset(texts, parse_objectives(f"{module}:Declared"), ROW, seed=1)
    assert (rows.examples(range(len(rows)))[0].targets[TOKEN].labels == SPECIAL.first_sentinel + 2).all()
    # In the data it is a symbol like any other.
    sentinels = [[[SPECIAL.first_sentinel + 2] * 9]] * 3
    texts = DocumentTexts(write_documents(tmp_path / "own", sentinels), SPECIAL)
    rows = RowDataset(texts, parse_objectives(f"{module}:Undeclared"), ROW, seed=1)
    assert len(rows.examples(range(len(rows)))[0]) > 0


# Training


def left_out(path) -> set[str]:
    """Symbols that the softmax of a checkpoint leaves out."""
    state, vocabulary = load_checkpoint(path)["model"], Vocabulary.load(path.parent / "dict.txt")
    assert all(value.isfinite().all() for value in state.values() if value.is_floating_point())
    flags = state[f"core.{SCORED}"]
    return {symbol for symbol, flag in zip(vocabulary.symbols, flags, strict=True) if flag < 0.5}


@pytest.fixture(scope="module")
def changed(tmp_path_factory):
    """A UniLM over a dictionary with new words, of which the data have two and a validation text a third."""
    folder = tmp_path_factory.mktemp("changed")
    one = published("unilm", folder / "published", shift=-30.0)
    words = ["the", "cat", "sat", "on", "a", "mat", "dog", "bird", "sang", ".", "fish", "swam", "frog", "newt", "toad"]
    data = folder / "data"
    data.mkdir()
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    (data / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries))
    vocabulary, rng = Vocabulary(words), np.random.default_rng(0)
    vocabulary.save(data / "dict.txt")
    for split, known in (("train", words[:-3]), ("valid", words[:-2])):
        documents = [[[vocabulary.index(w) for w in rng.choice(known, 8)] for _ in range(6)] for _ in range(8)]
        write_documents(data / split, documents)
    change_vocabulary(one.lm.folder, data, folder / "start")
    return folder / "start", data


SHAPE = ("--layers", 2, "--width", 16, "--heads", 2, "--feed-forward", 24, "--max-positions", 40,
         "--tokens-per-sample", 40, "--batch-size", 4, "--log-interval", 1)  # fmt: skip


def test_the_first_training_that_needs_them_takes_them_in(changed, tmp_path):
    """With label smoothing and weight decay, which a probability of 0 and an infinite bias would not survive."""
    start, data = changed
    assert left_out(start / "checkpoint_last.pt") == {*SENTINELS, "fish", "swam", "frog", "newt", "toad"}
    words = (*SHAPE, "--label-smoothing", 0.1, "--weight-decay", 0.1)
    result = fairseq.train(data, tmp_path / "one", *words, "--objectives", "bidirectional", "--max-update", 2,
                           "--finetune-from-model", start / "checkpoint_last.pt")  # fmt: skip
    (said,) = [line for line in result.stdout.splitlines() if "softmax left out" in line]
    assert said.endswith("left out: 105; now in it, as targets have them: 3 (fish swam frog)")
    assert finite_losses(result, "bidirectional")
    for name in ("dict.txt", "vocab.txt"):
        (tmp_path / "one" / name).write_bytes((data / name).read_bytes())
    assert left_out(tmp_path / "one" / "checkpoint_last.pt") == {*SENTINELS, "newt", "toad"}
    found = UnifiedLM.from_pretrained(tmp_path / "one").fill_mask("the <mask> sat", top=10**6)
    assert {"fish", "frog"} < {symbol for symbol, _ in found[0]} and "newt" not in {symbol for symbol, _ in found[0]}
    # Objectives that write sentinels take in those that a row can hold; a restart finds nothing left to do.
    words = (*SHAPE, "--objectives", "random_spans", "--save-interval-updates", 1)
    result = fairseq.train(data, tmp_path / "two", *words, "--max-update", 1,
                           "--finetune-from-model", tmp_path / "one" / "checkpoint_last.pt")  # fmt: skip
    assert "as targets have them: 2 (<sentinel_0> <sentinel_1>)" in result.stdout
    assert finite_losses(result, "random_spans")
    (tmp_path / "two" / "dict.txt").write_bytes((data / "dict.txt").read_bytes())
    assert left_out(tmp_path / "two" / "checkpoint_last.pt") == {*SENTINELS[2:], "newt", "toad"}
    result = fairseq.train(data, tmp_path / "two", *words, "--max-update", 2)
    assert "left out: 100; now in it, as targets have them: 0" in result.stdout


def finite_losses(result, name: str) -> bool:
    logs = [*fairseq.logged(result.stdout, "train_inner"), *fairseq.logged(result.stdout, "valid")]
    losses = [float(row[key]) for row in logs for key in row if key.endswith(f"{name}_loss") or key.endswith("loss")]
    return len(losses) > 3 and bool(np.isfinite(losses).all()) and max(losses) < 60


@pytest.mark.parametrize("shift", [-30.0, 30.0])
def test_new_symbols_begin_at_the_level_of_the_others(tmp_path, shift):
    """Once in the softmax they have a share of it that does not depend on the level of the biases."""
    lm = published("unilm", tmp_path, shift).lm
    lm.model.symbols.score(range(len(lm.vocabulary)))
    shares = []
    for symbol_probabilities in lm.fill_mask("the <mask> sat on<mask> mat", top=10**6):
        shares.append(sum(p for symbol, p in symbol_probabilities if symbol in SENTINELS))
    reference = published("unilm", tmp_path / "reference").lm
    reference.model.symbols.score(range(len(reference.vocabulary)))
    expected = [
        sum(p for symbol, p in row if symbol in SENTINELS)
        for row in reference.fill_mask("the <mask> sat on<mask> mat", top=10**6)
    ]
    assert shares == pytest.approx(expected, abs=1e-5) and all(0.01 < share < 0.99 for share in shares)
