"""Several tasks in one model, and masked language modelling beside them."""

import numpy as np
import pytest

from tests.support import fairseq_runs as fairseq
from tests.support.rates import assert_rate
from tests.support.task_folders import WORDS, data_folder, language_model, tokenizer, vocabulary
from unified import load
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads import Classification, Regression, Tagging, parse_head, parse_heads
from unified.tasks.heads.auxiliary import masked_all
from unified.tasks.heads.encoded_texts import encode_texts
from unified.tasks.heads.items import TextItem, WordsItem, write_items

HEADS = "has=classification(dropout=0.0):2, count=regression(dropout=0.0), thirds=tagging(dropout=0.0):0.5"
TRAINING = (
    "--user-dir", fairseq.ROOT / "fairseq_plugins", "--task", "unified_understanding", "--criterion",
    "unified_understanding", "--arch", "bert_tiny", "--width", 32, "--dropout", 0, "--attention-dropout", 0,
    "--tokens-per-sample", 32, "--optimizer", "adam", "--lr", 3e-3, "--clip-norm", 1, "--cpu", "--log-format", "json",
    "--no-epoch-checkpoints", "--no-export", "--num-workers", 0, "--batch-size", 32, "--seed", 3,
)  # fmt: skip


def test_heads_are_read_with_names_settings_and_weights():
    one, two, three = parse_heads(HEADS)
    assert [(e.name, e.head_class, e.weight) for e in (one, two, three)] == [
        ("has", Classification, 2.0), ("count", Regression, 1.0), ("thirds", Tagging, 0.5)
    ]  # fmt: skip
    assert three.for_items([WordsItem("1", ("a", "b"), ("x", "y"))]) == Tagging(("x", "y"), 0.0)
    given = parse_head("classification(labels=['b', 'a'], positive='a')").for_items([])
    assert given == Classification(("b", "a"), "a")
    for text, problem in (
        ("a=classification, a=regression", "two heads are called a; give each a name of its own, as in other=a"),
        ("classification, classification", "two heads are called classification; give each a name of its own"),
        ("", "the list of heads is empty; the heads are classification"),
        ("classification:0", "the weight must be a finite number above 0, got 0"),
        ("classification:two", "head 'classification:two': the weight after the colon must be a number, got 'two'"),
        ("clasification", "no such head .did you mean 'classification'"),
        ("classification(dropout=0", "a bracket or quotation mark is not closed"),
        ("a=b=classification", "expected \\[name=\\]type"),
        ("regression(labels=['a'])", "no setting 'labels'"),
    ):
        with pytest.raises(UnifiedError, match=problem):
            parse_heads(text)


def test_masked_copies_hide_what_pretraining_hides():
    """15 % of ordinary tokens, 80/10/10 of them; special symbols never; equal draws for equal seeds alone."""
    rng, codec = np.random.default_rng(0), Codec(tokenizer(), vocabulary(), 64)
    examples, _ = encode_texts([TextItem(str(i), " ".join(rng.choice(WORDS, 40))) for i in range(400)], codec)
    special, members = vocabulary().special, np.arange(400)
    first, again, other = (masked_all(examples, members, special, seed, 1) for seed in (1, 1, 2))
    assert all((a.tokens == b.tokens).all() for a, b in zip(first, again, strict=True))
    assert any((a.tokens != b.tokens).any() for a, b in zip(first, other, strict=True))
    hidden = changed = 0
    for example, before in zip(first, examples, strict=True):
        assert len(example.targets["token"].output_indices) == 6  # of 40
        assert (example.targets["token"].labels == before.tokens[example.targets["token"].output_indices[:, 0]]).all()
        untouched = np.setdiff1d(np.arange(42), example.targets["token"].output_indices[:, 0])
        assert (example.tokens[untouched] == before.tokens[untouched]).all() and {0, 41} <= set(untouched)
        hidden += (example.tokens[example.targets["token"].output_indices[:, 0]] == special.mask).sum()
        changed += (
            example.tokens[example.targets["token"].output_indices[:, 0]] != example.targets["token"].labels
        ).sum()
    assert_rate(int(hidden), 2400, 0.8)
    assert_rate(int(changed), 2400, 0.8 + 0.1 * 29 / 30)  # a random word may be the same one


def test_idle_heads_get_a_gradient_of_zero():
    config = TransformerConfig(vocabulary_size=len(vocabulary()), layers=1, width=16, heads=2)
    tasks = {"a": Classification(("x", "y")), "b": Regression()}
    model = UnifiedModel.for_tasks(config, {name: task.head(config) for name, task in tasks.items()})
    idle = model.idle("a")
    idle.backward()
    assert float(idle.detach()) == 0 and all((p.grad == 0).all() for p in model.heads["b"].parameters())
    assert all(p.grad is None for p in model.heads["a"].parameters())


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Three tasks on the same kind of texts: does w0 occur, how many of four words are there, numbers in thirds."""
    path, rng = tmp_path_factory.mktemp("several"), np.random.default_rng(4)
    data = data_folder(path / "data", {})
    sizes = {"has": 640, "count": 640, "thirds": 640}
    for head in sizes:
        for split, count in (("train", sizes[head]), ("valid", 64)):
            (data / head).mkdir(exist_ok=True)
            write(data / head / f"{split}.jsonl", head, count, rng)
    return data, language_model(path / "model", width=32, initializer_range=0.15)


def write(path, head, count, rng):
    items = []
    for i in range(count):
        words = rng.choice(WORDS[1:], rng.integers(2, 9)).tolist()
        if head == "has" and i % 2:
            words[rng.integers(len(words))] = "w0"
        if head == "thirds":
            items.append(WordsItem(str(i), tuple(words), tuple("abc"[int(word[1:]) % 3] for word in words)))
        else:
            number = float(sum(word in WORDS[:8] for word in words))
            items.append(TextItem(str(i), " ".join(words), None, "no yes".split()[i % 2] if head == "has" else number))
    write_items(path, items)


@pytest.mark.slow
def test_several_tasks_are_learnt_by_one_model(folders, tmp_path):
    """Every batch is of one task, by the weights; each is scored by its own measures, and masked tokens are learnt."""
    data, model = folders
    result = fairseq.run(
        "train", data, *TRAINING, "--head", HEADS, "--save-dir", tmp_path, "--max-epoch", 3, "--lr", 5e-3,
        "--lr-scheduler", "polynomial_decay", "--warmup-updates", 10, "--total-num-update", 210,
        "--auxiliary-masking", 0.3,
        "--finetune-from-model", model / "checkpoint_last.pt", "--best-checkpoint-metric", "average",
        "--maximize-best-checkpoint-metric", "--average-measures", "has=macro_f1, count=spearman",
    )  # fmt: skip
    log = result.stdout + result.stderr
    last, first = fairseq.logged(log, "valid")[-1], fairseq.logged(log, "train")[0]
    assert float(first["train_num_updates"]) == 40 + 20 + 10
    assert float(last["valid_has_accuracy"]) >= 95 and float(last["valid_thirds_accuracy"]) >= 90
    assert float(last["valid_count_pearson"]) >= 85
    measures = [float(last[f"valid_{name}"]) for name in ("has_macro_f1", "count_spearman", "thirds_accuracy")]
    assert float(last["valid_average"]) == pytest.approx(sum(measures) / 3, abs=0.01)
    masked = [float(row["train_masked_loss"]) for row in fairseq.logged(log, "train")]
    assert masked[-1] < masked[0] and "train_masked_train_accuracy" in fairseq.logged(log, "train")[0]
    handle = load(tmp_path / "checkpoint_last.pt", data=data)
    assert handle.classify(["w3 w0", "w3 w4"], head="has")[0]["label"] == "yes"
    assert [tag for _, tag in handle.tag("w3 w4 w5")] == ["a", "b", "c"]
    with pytest.raises(UnifiedError, match="several heads, has, count; name one"):
        handle.classify(["w1"])
    with pytest.raises(UnifiedError, match="fine-tuned for has, count, thirds, not for none"):
        handle.predictor(head="none")


@pytest.mark.slow
def test_two_processes_train_and_score_several_tasks(folders, tmp_path):
    """Whatever task a process is at, losses, gradients and scores are those of one process with as many batches."""
    data, model = folders
    shared = (
        data, *TRAINING, "--head", HEADS, "--max-update", 6, "--validate-interval-updates", 3, "--log-interval", 1,
        "--auxiliary-masking", 0.3, "--best-checkpoint-metric", "average", "--maximize-best-checkpoint-metric",
    )  # fmt: skip
    one = fairseq.run("train_exactly", *shared, "--update-freq", 2, "--save-dir", tmp_path / "one")
    two = fairseq.in_processes(2, *shared, "--save-dir", tmp_path / "two", command="train_exactly")
    logs = {
        "train_inner": ("loss", "gnorm", "masked_loss"),
        "valid": ("valid_loss", "valid_average", "valid_has_macro_f1"),
    }
    for tag, wanted in logs.items():
        expected, got = (fairseq.logged(each.stdout + each.stderr, tag) for each in (one, two))
        assert len(expected) == len(got) >= 2
        for a, b in zip(expected, got, strict=True):
            for name in wanted:
                assert float(b[name]) == pytest.approx(float(a[name]), rel=1e-4), (tag, name)
