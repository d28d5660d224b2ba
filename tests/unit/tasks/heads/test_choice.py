"""Multiple choice: sequences, the loss among an item's choices, formats of SWAG, CODAH, RACE and DREAM."""

import gzip
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from tests.support.task_folders import WORDS
from unified.cli import main
from unified.conversions.bert_names import names
from unified.errors import UnifiedError
from unified.tasks.datasets.codah import read_codah
from unified.tasks.datasets.dream import read_dream
from unified.tasks.datasets.race import read_race
from unified.tasks.datasets.swag import read_swag
from unified.tasks.heads import Choice
from unified.tasks.heads.choice import ChoiceItem, log_shares
from unified.tasks.heads.items import write_items


def random_item(i, rng, choices=None, most=8):
    def text():
        return " ".join(rng.choice(WORDS, rng.integers(1, most)))

    count = choices or int(rng.integers(2, 6))
    question = text() if rng.integers(2) else None
    return ChoiceItem(str(i), text(), tuple(text() for _ in range(count)), question, int(rng.integers(count)))


def test_items_come_back_from_a_file(tmp_path):
    rng = np.random.default_rng(0)
    items = [random_item(i, rng) for i in range(20)]
    write_items(tmp_path / "items.jsonl", items)
    assert Choice.read(tmp_path / "items.jsonl") == items


def test_bad_items_are_reported(tmp_path):
    lines = ['{"context": " ", "choices": ["a", "b"], "label": 0}', '{"context": "a", "choices": ["a"], "label": 0}',
             '{"context": "a", "choices": ["a", 1], "label": 0}', '{"context": "a", "choices": ["a", "b"]}',
             '{"context": "a", "choices": ["a", "b"], "label": 2}',
             '{"context": "a", "choices": ["a", "b"], "label": 1.0}',
             '{"context": "a", "choices": ["a", "b"], "label": 0, "question": 3}']  # fmt: skip
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(UnifiedError) as caught:
        Choice.read(path)
    for problem in ("line 1: 'context'", "2 lines (2, 3): 'choices' must be",
                    "line 4: no field 'label'; its fields: 'context', 'choices'",
                    "line 5: 'label' must be the number of a choice, 0 to 1, got 2",
                    "line 6: 'label' must", "line 7: 'question'"):  # fmt: skip
        assert problem in caught.value.details
    path.write_text(lines[3])
    assert Choice.read(path, labelled=False) == [ChoiceItem("1", "a", ("a", "b"))]


def test_the_context_is_cut_for_the_choices():
    item = ChoiceItem("1", "w1 w2 w3 w4 w5", ("w6", "w7 w8 w9", "w0 w1 w2 w3 w4 w5 w6"), "w9", 1)
    codec = runs.codec(10)
    encoded = Choice().encode([item, ChoiceItem("2", "w1", ("w2", "w3"), None, 0)], codec)
    assert [runs.symbols(example, codec) for example in encoded.examples] == [
        ["<s>", "w1", "w2", "w3", "w4", "w5", "</s>", "w9", "w6", "</s>"],
        ["<s>", "w1", "w2", "w3", "</s>", "w9", "w7", "w8", "w9", "</s>"],
        ["<s>", "</s>", "w0", "w1", "w2", "w3", "w4", "w5", "w6", "</s>"],  # its beginning is lost, not the choice
        ["<s>", "w1", "</s>", "w2", "</s>"],
        ["<s>", "w1", "</s>", "w3", "</s>"],
    ]
    assert (
        encoded.cut == 1 and encoded.lost.tolist() == [5 + 8 + 3 - 10, 0] and encoded.owners.tolist() == [0, 0, 0, 1, 1]
    )
    assert np.concatenate(encoded.head_inputs["labels"]).tolist() == [0, 1, 0, 1, 0]
    assert encoded.examples[1].token_types.tolist() == [0] * 5 + [1] * 5
    (last, *_) = Choice().encode([item], runs.codec(10, cls_last=True)).examples
    assert runs.symbols(last, codec)[-1] == "<s>" and last.targets["task"].output_indices[:, 0].tolist() == [9]


def test_a_blank_of_the_question_stands_for_the_choice():
    assert ChoiceItem("1", "c", ("x", "y"), "a _ b _").seconds == ["a x b x", "a y b y"]
    assert ChoiceItem("1", "c", ("x", "y"), "a?").seconds == ["a? x", "a? y"]
    assert ChoiceItem("1", "c", ("x", "y")).seconds == ["x", "y"]


@pytest.mark.parametrize("blank", ["_", "__", "____"])
@pytest.mark.parametrize("before", ["", " ", "a", "é", "7", "."])
@pytest.mark.parametrize("behind", ["", " ", "b", "語", "0", "?"])
def test_a_row_of_underscores_is_one_blank_but_not_between_letters_or_digits(blank, before, behind):
    """For every neighbour, in a question with another blank and without."""
    filled, question = r"\1 & co", f"He {before}{blank}{behind} it"
    named = before.isalnum() and behind.isalnum()
    once = f"He {before}{filled}{behind} it"
    assert ChoiceItem("1", "c", (filled,), question).seconds == [f"{question} {filled}" if named else once]
    twice = f"{question if named else once} ... {filled}"
    assert ChoiceItem("1", "c", (filled,), f"{question} ... {blank}").seconds == [twice]


def test_loss_and_correct_choices_are_those_of_a_loop():
    rng = np.random.default_rng(1)
    items = [random_item(i, rng) for i in range(30)]
    encoded = Choice().encode(items, runs.codec(64))
    scores = torch.tensor(rng.normal(0, 3, (len(encoded.examples), 1)), dtype=torch.float64, requires_grad=True)
    members = rng.permutation(len(encoded.examples))
    reading = encoded.reading(members)
    loss = Choice().loss(scores[torch.from_numpy(members)], reading)
    total, correct, begin = 0.0, 0, 0
    for item in items:
        own = scores.detach()[begin : begin + len(item.choices), 0].tolist()
        total += math.log(sum(math.exp(score) for score in own)) - own[item.label]
        correct += own.index(max(own)) == item.label
        begin += len(own)
    assert loss.total.item() == pytest.approx(total, rel=1e-6) == pytest.approx(loss.nll.item(), rel=1e-6)
    assert (int(loss.count), int(loss.correct)) == (30, correct)
    loss.total.backward()
    per_item = np.add.reduceat(scores.grad[:, 0].numpy(), np.flatnonzero(np.diff(encoded.owners, prepend=-1)))
    assert np.abs(per_item).max() < 1e-6  # of a softmax


def test_an_item_that_is_twice_in_a_batch_has_the_loss_of_its_own_choices_twice():
    items = [random_item(i, np.random.default_rng(1)) for i in range(3)]
    encoded = Choice().encode(items, runs.codec(64))
    members = np.concatenate([np.arange(len(encoded.examples)), np.flatnonzero(encoded.owners == 1)])
    loss = Choice().loss(torch.zeros(len(members), 1), encoded.reading(members))
    assert int(loss.count) == 4
    assert float(loss.total) == pytest.approx(sum(math.log(len(items[i].choices)) for i in (0, 1, 2, 1)))


def test_levels_are_scored_by_themselves_from_items_and_from_files(tmp_path, capsys):
    """Against counts: finetune's scores of items are those that `unified score choice` gives of the two files."""
    rng = np.random.default_rng(4)
    for _ in range(20):
        levels = rng.choice(["middle", "high", None], 12, p=[0.5, 0.4, 0.1]).tolist()
        pairs = zip(rng.integers(3, size=12).tolist(), levels, strict=True)
        items = [ChoiceItem(str(i), "c", ("a", "b", "c"), None, *pair) for i, pair in enumerate(pairs)]
        found = [{"id": item.id, "label": int(rng.choice([item.label, rng.integers(3)]))} for item in items]
        found[0]["label"] = items[0].label
        right = [one["label"] == item.label for one, item in zip(found, items, strict=True)]
        expected = {"accuracy": 100 * sum(right) / 12, "total": 12}
        for level in dict.fromkeys(filter(None, levels)):
            own = [one for one, name in zip(right, levels, strict=True) if name == level]
            expected[f"accuracy_{level}"] = 100 * sum(own) / len(own)
        scores = Choice().signed(items, found).scores()
        assert scores == pytest.approx(expected | {"signature": "rules:accuracy-of-items"})
        write_items(tmp_path / "gold.jsonl", items)
        rng.shuffle(found)
        (tmp_path / "found.jsonl").write_text("".join(json.dumps(one) + "\n" for one in found))
        assert main(["score", "choice", str(tmp_path / "gold.jsonl"), str(tmp_path / "found.jsonl")]) == 0
        printed = json.loads(capsys.readouterr().out)
        totals = {f"total_{level}": levels.count(level) for level in dict.fromkeys(filter(None, levels))}
        assert printed == pytest.approx(expected | totals)
    assert Choice.read(tmp_path / "gold.jsonl") == items
    (tmp_path / "gold.jsonl").write_text('{"context": "a", "choices": ["b", "c"], "label": 0, "subset": 3}\n')
    with pytest.raises(UnifiedError, match="line 1: 'subset' must be a text that is not empty, got 3"):
        Choice.read(tmp_path / "gold.jsonl")


@torch.no_grad()
def test_predictions_name_the_level():
    rng, codec, task = np.random.default_rng(5), runs.codec(32), Choice()
    items = [replace(random_item(i, rng), subset=subset) for i, subset in enumerate(("high", None, "middle"))]
    encoded = task.encode(items, codec)
    order, scores, reading = runs.run_batch(
        runs.small_model(task, codec), encoded, np.arange(len(encoded.examples)), packed=True
    )
    found = task.predict(items, encoded, order, scores, reading)
    assert [one.get("subset") for one in found] == ["high", None, "middle"] and "subset" not in found[1]


def test_shares_of_large_scores_are_finite():
    shares = log_shares(torch.tensor([1000.0, 0.0, -1000.0, -1001.0]), torch.tensor([0, 0, 1, 1]))
    assert shares.tolist() == pytest.approx([0, -1000, -math.log1p(math.exp(-1)), -1 - math.log1p(math.exp(-1))])


def test_predictions_do_not_depend_on_the_batch():
    rng, codec, task = np.random.default_rng(2), runs.codec(32), Choice()
    items = [random_item(i, rng) for i in range(24)]
    encoded = task.encode(items, codec)
    model = runs.small_model(task, codec)
    runs.assert_predictions_do_not_depend_on_the_batch(task, model, items, encoded)


def test_scores_are_those_of_transformers():
    """Equal weights, the same four choices: BertForMultipleChoice."""
    transformers = pytest.importorskip("transformers")
    rng, codec, task = np.random.default_rng(3), runs.codec(32), Choice()
    items = [random_item(i, rng, choices=4) for i in range(6)]
    encoded = task.encode(items, codec)
    model = runs.small_model(task, codec, max_positions=32)
    config = transformers.BertConfig(
        vocab_size=len(codec.vocabulary), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=128, max_position_embeddings=32, layer_norm_eps=model.config.norm_epsilon,
        type_vocab_size=model.config.token_types,
    )  # fmt: skip
    theirs = transformers.BertForMultipleChoice(config).eval()
    missing = theirs.load_state_dict(published_names(model), strict=False)
    assert not missing.unexpected_keys and not missing.missing_keys
    width = max(len(example.tokens) for example in encoded.examples)
    shape = (len(encoded.examples), width)
    tokens, types, seen = np.full(shape, 1), np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for row, example in enumerate(encoded.examples):
        length = len(example.tokens)
        tokens[row, :length], types[row, :length], seen[row, :length] = example.tokens, example.token_types, 1
    with torch.no_grad():
        arrays = (torch.from_numpy(array).reshape(6, 4, width) for array in (tokens, seen, types))
        labels = torch.tensor([item.label for item in items])
        output = theirs(
            **dict(zip(("input_ids", "attention_mask", "token_type_ids"), arrays, strict=True)), labels=labels
        )
        order, scores, reading = runs.run_batch(model, encoded, range(len(encoded.examples)), packed=True)
    torch.testing.assert_close(scores[np.argsort(order)].reshape(6, 4), output.logits, atol=2e-5, rtol=1e-4)
    loss = task.loss(scores, reading)
    assert float(loss.total / loss.count) == pytest.approx(float(output.loss), rel=1e-4)


def published_names(model):
    """Parameters under the names of transformers' BertForMultipleChoice."""
    modules = (("bert.pooler.dense", "pooler"), ("classifier", "output"))
    state = {f"{theirs}.{kind}": model.state_dict()[f"heads.task.{mine}.{kind}"]
             for theirs, mine in modules for kind in ("weight", "bias")}  # fmt: skip
    for mine, parts in names(model.config.layers).items():
        if mine.startswith("transformer."):
            state |= zip(parts, model.state_dict()[mine].chunk(len(parts)), strict=True)
    return state


# Formats

SWAG = """,video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3,label
0,anetv_a,1,"A man. He","A man, ""Bob"", runs.",He,gold,falls.,"waits, then ""goes"".",sings.,eats.,1
1,anetv_b,2,B. She,B is here.,She,gen,a.,b.,c.,d.,3
"""


def test_swag(tmp_path):
    path = tmp_path / "train.csv.gz"
    path.write_bytes(gzip.compress(SWAG.encode()))
    first, second = read_swag(path)
    endings = ("He falls.", 'He waits, then "goes".', "He sings.", "He eats.")
    assert first == ChoiceItem("0", 'A man, "Bob", runs.', endings, None, 1)
    assert (second.id, second.context, second.label) == ("1", "B is here.", 3)
    test = "\n".join(line.rpartition(",")[0] for line in SWAG.splitlines())
    (tmp_path / "test.csv").write_text(test)
    assert read_swag(tmp_path / "test.csv", labelled=False)[0] == ChoiceItem("0", first.context, endings)
    with pytest.raises(UnifiedError, match="line 1: no column 'label'"):
        read_swag(tmp_path / "test.csv")
    (tmp_path / "bad.csv").write_text(SWAG + "2,a,1,A,B,C,gold,a.,b.,c.,d.,4\n3,a,1,A,B,C,gold,a.,b.\n")
    with pytest.raises(UnifiedError, match="line 4: the label '4' is the number of no choice, 0 to 3; line 5: 9 cells"):
        read_swag(tmp_path / "bad.csv")


def test_codah(tmp_path):
    (tmp_path / "a.tsv").write_text('o\tA "man. He\truns.\tfalls.\tflies.\tsings.\t3\n')
    assert read_codah(tmp_path / "a.tsv") == [
        ChoiceItem("0", 'A "man. He', ("runs.", "falls.", "flies.", "sings."), None, 3)
    ]
    (tmp_path / "a.tsv").write_text("o\tHe\truns.\tfalls.\tflies.\t\t3\no\tHe\ta\tb\t3\n")
    with pytest.raises(UnifiedError, match="line 1: two choices or more are needed, none of them empty; line 2: 5 col"):
        read_codah(tmp_path / "a.tsv")


def race_passage(**change):
    return {"article": "Bob ran.", "questions": ["Who ran?", "Bob _ ."], "answers": ["B", "D"], "id": "x",
            "options": [["Ann", "Bob", "Cy", "Di"], ["sat", "", "sang", "ran"]]} | change  # fmt: skip


def test_race(tmp_path):
    for name in ("high/7.txt", "middle/10.txt", "middle/9.txt"):
        path = tmp_path / "train" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(race_passage()))
    items = read_race(tmp_path / "train")
    assert [item.id for item in items] == [
        f"{name}.txt-{i}" for name in ("middle/9", "middle/10", "high/7") for i in (0, 1)
    ]
    assert items[0] == ChoiceItem(items[0].id, "Bob ran.", ("Ann", "Bob", "Cy", "Di"), "Who ran?", 1, "middle")
    assert items[1].seconds == ["Bob sat .", "Bob  .", "Bob sang .", "Bob ran ."] and items[1].label == 3
    assert [item.subset for item in items] == ["middle"] * 4 + ["high"] * 2
    assert [item.subset for item in read_race(tmp_path / "train" / "high")] == ["high"] * 2
    copy = tmp_path / "train" / "high" / "7.txt.gz"
    copy.write_bytes(gzip.compress(json.dumps(race_passage()).encode()))
    with pytest.raises(UnifiedError, match="train: high/7.txt.gz: high/7.txt is the same passage"):
        read_race(tmp_path / "train")
    copy.unlink()
    bad = {"1": "{", "2": race_passage(answers=["B"]), "3": race_passage(answers=["B", "E"]),
           "4": race_passage(article=""), "5": race_passage(options=[["Ann", "Bob"], "ran"])}  # fmt: skip
    for name, passage in bad.items():
        (tmp_path / "train" / "high" / f"{name}.txt").write_text(passage if passage == "{" else json.dumps(passage))
    with pytest.raises(UnifiedError) as caught:
        read_race(tmp_path / "train")
    for says in ("train: high/1.txt, line 1: not JSON", "high/2.txt: expected as many",
                 "high/3.txt, question 2: the answer 'E' is the letter of no option", "high/4.txt: 'article' is empty",
                 "high/5.txt, question 2: its 'options' are no list"):  # fmt: skip
        assert says in caught.value.details
    with pytest.raises(UnifiedError, match="no such folder"):
        read_race(tmp_path / "dev")


def test_dream(tmp_path):
    question = {"question": "Who?", "choice": ["A.", "B.", "C."], "answer": "C."}
    path = tmp_path / "train.json"
    path.write_text(json.dumps([[["M: Hi.", "W: Yes."], [question, question | {"answer": "A."}], "5-1"]]))
    first, second = read_dream(path)
    assert first == ChoiceItem("5-1-0", "M: Hi.\nW: Yes.", ("A.", "B.", "C."), "Who?", 2) and second.label == 0
    path.write_text(json.dumps([[["M: Hi."], [question | {"answer": "D."}, question | {"choice": 3}], "5-1"], ["x"]]))
    with pytest.raises(UnifiedError) as caught:
        read_dream(path)
    for says in ("dialogue 1, question 1: the answer 'D.' must equal one choice, but equals 0",
                 "question 2: no list of texts 'choice'", "dialogue 2: expected"):  # fmt: skip
        assert says in caught.value.details
    path.write_text(json.dumps([[["M: Hi."], [question], name] for name in ("5-1", "5-2", "5-1")]))
    with pytest.raises(UnifiedError, match="train.json: dialogue 3: the id '5-1' is that of dialogue 1, too"):
        read_dream(path)


def test_real_files_have_their_rows(unified_data):
    counts = {
        "codah/fold0-train.tsv.xz": (read_codah, 1665, 4), "codah/fold0-dev.tsv.xz": (read_codah, 556, 4),
        "dream/train.json.xz": (read_dream, 6116, 3), "dream/dev.json.xz": (read_dream, 2040, 3),
    }  # fmt: skip
    for name, (read, count, choices) in counts.items():
        items = read(unified_data / name)
        assert len(items) == count == len({item.id for item in items})
        assert {len(item.choices) for item in items} == {choices}
        assert {item.label for item in items} == set(range(choices))
