"""The recipe of coreference: published settings, the way from files to scores at its debug size, and the baseline."""

from __future__ import annotations

import json
import os
import random
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.recipes.test_recipes import RECIPES, load, run
from tests.recipes.test_task_recipes import FINETUNE, finetune
from tests.support.coreference_naive import random_item
from unified.checkpoints.trained import Trained, write
from unified.cli import main
from unified.cli.parsing import make_parser
from unified.data.vocabulary import Vocabulary
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.catalogue import task_named
from unified.tasks.heads.documents import DocumentItem, read_conll, response_text
from unified.tasks.metrics import score_coreference
from unified.tokenization.wordpiece import WordPieceTokenizer

sys.path.insert(0, str(RECIPES / "common"))
import task_debug  # noqa: E402

FOLDER = RECIPES / "spanbert" / "coreference"
#: Tokens of a window, windows, rate, rate of the head: mandarjoshi90/coref, experiments.conf.
PUBLISHED = {
    "bert_base": (128, 11, 1e-5, 2e-4),
    "bert_large": (384, 3, 1e-5, 2e-4),
    "spanbert_base": (384, 3, 2e-5, 1e-4),
    "spanbert_large": (512, 3, 1e-5, 3e-4),
}


@pytest.fixture(scope="module")
def baseline():
    return load(FOLDER / "baseline.py")


@pytest.mark.parametrize("size", PUBLISHED)
def test_settings_are_the_published_ones(size):
    more = [] if size == "spanbert_base" else ["--system", size]
    words, *_ = finetune.commands("spanbert", "conll2012", Path("data"), "model", "out", False, [*more, "--seed", "7"])
    options = make_parser("finetune").parse_args(words[1:])
    assert (options.task, options.data, options.init, options.output, options.seed) == (
        "conll2012", "data", "model", "out", 7
    )  # fmt: skip
    task = task_named("conll2012")
    task = task.as_in(options.system) if options.system else task
    longest, windows, rate, head_lr = PUBLISHED[size]
    training = task.training
    assert (training.max_length, training.lr, training.head_lr) == (longest, rate, head_lr)
    assert (training.epochs, training.batch_size, training.warmup, training.clip) == (20, 1, 0.1, 1.0)
    assert task.head == f"coreference(max_windows={windows})"


def test_the_debug_size_goes_from_files_to_scores(tmp_path):
    task_debug.write(tmp_path)
    data = tmp_path / "conll2012"
    spelled = sorted({word for item in read_conll(data / "train.conll") for word in item.words})
    vocabulary = Vocabulary(spelled)
    config = TransformerConfig(
        vocabulary_size=len(vocabulary), layers=1, width=16, heads=2, token_types=2, initializer_range=0.05
    )
    (tmp_path / "model").mkdir()
    WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *spelled], False).save(tmp_path / "model")
    write(
        Trained(config, "nothing", UnifiedModel.for_language(config).state_dict(), vocabulary),
        tmp_path / "model",
    )
    result = run("python", FINETUNE, "spanbert", "conll2012", data, tmp_path / "model", tmp_path / "run", "--debug")
    scores = json.loads((tmp_path / "run" / "results.json").read_text())["scores"]["valid"]
    assert scores["average_f1"] >= 90
    official, baseline = printed_scores(result.stdout)[-2:]
    assert scores.pop("signature").endswith("singletons:yes") and official == pytest.approx(scores)
    assert baseline["average_f1"] < 50  # it looks for capital letters


def printed_scores(text: str) -> list[dict]:
    """The JSON objects that stand in lines of their own."""
    decoder, found = json.JSONDecoder(), []
    while (begin := text.find("\n{\n")) >= 0:
        scores, end = decoder.raw_decode(text[begin + 1 :])
        found.append(scores)
        text = text[begin + 1 + end :]
    return found


@pytest.mark.parametrize(
    ("mention", "head"),
    [("Anna", "anna"), ("the old house of the King", "house"), ("Lincoln 's Inn Hall", "hall"), ("of him", "him"),
     ("the man who left", "man"), ("London , England", "london"), ("that", "that")],
)  # fmt: skip
def test_head_words(baseline, mention, head):
    assert baseline.head_word(mention.split()) == head


def test_mentions_are_found_by_rules(baseline):
    sentences = ["The Lord Chancellor saw him in London", "Seldom does he", "London is large . He sleeps"]
    item = DocumentItem("d", tuple(tuple(sentence.split()) for sentence in sentences))
    words = item.words
    found = [" ".join(words[start : end + 1]) for start, end in baseline.found_mentions(item)]
    assert found == ["The Lord Chancellor", "him", "London", "he", "London", "He"]
    chains = baseline.same_head(item, "found")["chains"]
    assert [[words[start] for start, _ in chain] for chain in chains] == [["London", "London"], ["he", "He"]]


@pytest.mark.parametrize(
    ("sentence", "phrases"),
    [("the small black cat sat", ["the small black"]), ("his hat and the", ["his hat"]), ("a dog", []),
     ("this , that is her own . These", ["her own"]), ("the 3 men of the old house", ["the old house"]),
     ("the his sister", ["his sister"])],
)  # fmt: skip
def test_definite_phrases(baseline, sentence, phrases):
    item = DocumentItem("d", (("Yes", "."), tuple(sentence.split())))
    assert [" ".join(item.words[start : end + 1]) for start, end in baseline.definite_phrases(item)] == phrases


def test_the_baselines_chains_are_equal_heads(baseline, tmp_path, capsys):
    rng = random.Random(2)
    items = [random_item(rng, f"(d{i}); part 000") for i in range(20)]
    chains = []
    for item in items:
        spans = sorted({mention for chain in item.chains for mention in chain})
        heads = [baseline.head_word(item.words[start : end + 1]) for start, end in spans]
        together = {head: [span for span, one in zip(spans, heads, strict=True) if one == head] for head in heads}
        chains.append([chain for chain in together.values() if len(chain) > 1])
    guesses = [baseline.same_head(item, "gold") for item in items]
    assert [[list(map(tuple, chain)) for chain in guess["chains"]] for guess in guesses] == chains
    readable = [DocumentItem(item.id, item.sentences, chains=tuple(map(tuple, chain)))
                for item, chain in zip(items, chains, strict=True) if not crossing(chain)]  # fmt: skip
    key = tmp_path / "key.conll"
    key.write_text(response_text(readable, [{"chains": item.chains} for item in readable]))
    response = tmp_path / "response.conll"
    assert baseline.main([str(key), "--mentions", "gold", "--output", str(response)]) == 0
    scores = json.loads(capsys.readouterr().out)
    expected = [[list(map(tuple, chain)) for chain in baseline.same_head(item, "gold")["chains"]] for item in readable]
    assert scores == score_coreference([item.chains for item in readable], expected)
    assert main(["score", "coref", str(key), str(response)]) == 0
    assert json.loads(capsys.readouterr().out) == scores


def crossing(chains) -> bool:
    """Whether the format cannot say them."""
    return any(a < c <= b < d for chain in chains for a, b in chain for c, d in chain)


def test_the_baseline_refuses_what_it_cannot_read(baseline, tmp_path, capsys):
    (tmp_path / "x").write_text("#begin document d\n")
    assert baseline.main([str(tmp_path / "x")]) == 2
    assert shlex.split(capsys.readouterr().err)[:2] == ["baseline.py:", "error:"]


@pytest.mark.parametrize(("name", "gold", "found"), [("litbank_coref", 49.08, 37.56), ("ontogum_coref", 58.49, 41.75)])
def test_the_baseline_on_real_documents(baseline, unified_data, capsys, name, gold, found):
    """The figures of docs/background/results.md."""
    for mentions, expected in (("gold", gold), ("found", found)):
        assert baseline.main([str(unified_data / name / "dev.conll.xz"), "--mentions", mentions]) == 0
        assert json.loads(capsys.readouterr().out)["average_f1"] == pytest.approx(expected, abs=0.01)


WORDS = (1600, 3200)
MEASURE = f"""
import json
import coreference_memory as benchmark
from resident import in_own_process
head = "coreference(max_windows=2, hidden=8, max_spans=50)"
print(json.dumps({{action: [in_own_process(benchmark.measure, action, words, head, 2) for words in {WORDS}]
                   for action in benchmark.ACTIONS}}))
"""


def test_the_benchmark_of_memory_measures_predictions_and_training():
    """In processes of their own that give freed memory back: what others keep of it hides a part of the next peak."""
    paths = os.pathsep.join(map(str, (RECIPES.parent, RECIPES.parent / "benchmarks")))
    giving_back = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_ARENA_MAX": "1"}
    environment = os.environ | giving_back | {"PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    measured = json.loads(done.stdout)
    windows = {action: [one["windows_read"] for one in found] for action, found in measured.items()}
    assert windows == {"predict": [5, 9], "train": [2, 2]}
    # The bars of the benchmark: the longer document's peak over the shorter one's.
    for action, bar in (("predict", WORDS[1] / WORDS[0]), ("train", 1.25)):
        short, long = (one["mebibytes"] for one in measured[action])
        assert short > WORDS[0] * 384 * 4 / 2**20  # the states alone of one layer
        assert long <= bar * short, (action, short, long)
