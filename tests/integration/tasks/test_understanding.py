"""Classification and regression of texts: reading, cutting, learning, and going on from a language model."""

import numpy as np
import pytest
import torch

from tests.support.task_folders import WORDS
from tests.support.understanding_runs import TASK as TASK
from tests.support.understanding_runs import refusal_to_train, train, validations
from unified.checkpoints.heads import task_head_prefixes, with_pooler, without_other_labels
from unified.checkpoints.parameters import load_parameters
from unified.data.batching import batches_of
from unified.data.collate import collate
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.heads import Classification, Regression, Tagging
from unified.tasks.heads.batches import assembled, units_of
from unified.tasks.heads.choice import Choice
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.encoded_texts import encode_texts, encode_words
from unified.tasks.heads.items import TextItem, WordsItem, write_items
from unified.tasks.heads.questions import NOTHING
from unified.tasks.heads.registry import TASK_HEADS
from unified.tasks.heads.relation import Relation
from unified.tasks.heads.span import SpanAnswers
from unified.tokenization.wordpiece import WordPieceTokenizer


@pytest.fixture(scope="module")
def tokenizer():
    return WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS], lowercase=False)


@pytest.fixture(scope="module")
def vocabulary():
    return Vocabulary(WORDS)


def random_items(count, rng, label, pair=False):
    items = []
    for i in range(count):
        text = " ".join(rng.choice(WORDS, rng.integers(2, 9)))
        second = " ".join(rng.choice(WORDS, rng.integers(2, 9))) if pair else None
        items.append(TextItem(str(i), text, second, label(text, second)))
    return items


def folder(path, items, tokenizer, vocabulary):
    path.mkdir()
    tokenizer.save(path)
    vocabulary.save(path / "dict.txt")
    for name, part in items.items():
        write_items(path / f"{name}.jsonl", part)
    return path


def test_texts_of_two_are_cut_like_bert(tokenizer, vocabulary):
    """The longer one loses a token at its end until both fit; every cut item is counted."""
    rng = np.random.default_rng(0)
    items = random_items(200, rng, lambda text, second: "x", pair=True)
    for longest in (8, 12, 30):
        examples, cut = encode_texts(items, Codec(tokenizer, vocabulary, longest))
        turned, turned_cut = encode_texts(items, Codec(tokenizer, vocabulary, longest, cls_last=True))
        expected_cut, expected = 0, []
        for item, example, last in zip(items, examples, turned, strict=True):
            first, second = item.text.split(), item.second.split()
            before = len(first) + len(second)
            while len(first) + len(second) > longest - 3:
                (first if len(first) > len(second) else second).pop()
            expected_cut += len(first) + len(second) < before
            expected.append(before - len(first) - len(second))
            tokens = ["<s>", *first, "</s>", *second, "</s>"]
            assert [vocabulary.symbols[i] for i in example.tokens] == tokens
            assert example.token_types.tolist() == [0] * (len(first) + 2) + [1] * (len(second) + 1)
            assert example.targets["task"].output_indices[:, 0].tolist() == [0]
            assert [vocabulary.symbols[i] for i in last.tokens] == [*tokens[1:], "<s>"]
            assert last.token_types.tolist() == [0] * (len(first) + 1) + [1] * (len(second) + 1) + [2]
            assert last.targets["task"].output_indices[:, 0].tolist() == [len(last.tokens) - 1]
        assert np.count_nonzero(cut) == np.count_nonzero(turned_cut) == expected_cut and cut.tolist() == expected
    single, cut = encode_texts([TextItem("1", "w1 w2 w3 w4")], Codec(tokenizer, vocabulary, 5))
    assert [vocabulary.symbols[i] for i in single[0].tokens] == ["<s>", "w1", "w2", "w3", "</s>"] and cut == [1]


@torch.no_grad()
def test_packed_batches_give_each_item_the_scores_it_has_alone(tokenizer, vocabulary):
    items = random_items(40, np.random.default_rng(1), lambda text, second: "a")
    task = Classification(("a", "b", "c"))
    encoded = task.encode(items, Codec(tokenizer, vocabulary, 32))
    config = TransformerConfig(vocabulary_size=len(vocabulary), layers=2, width=32, heads=2, initializer_range=0.3)
    model = UnifiedModel.for_tasks(config, {"task": task.head(config)}).eval()

    def scores(members, row_length):
        order, batch, reading = assembled(encoded, members, row_length, 1)
        return order, model.scores(batch, reading, "task"), len(batch.tokens)

    alone = torch.cat([scores(np.array([i]), None)[1] for i in range(40)])
    for seed in range(3):
        members = np.random.default_rng(seed).permutation(40)[:30]
        order, packed, rows = scores(members, 32)
        assert sorted(order) == sorted(members) and rows < 10
        torch.testing.assert_close(packed, alone[order], atol=1e-5, rtol=1e-5)
        chosen = [items[i] for i in sorted(members)]
        found = task.predict(chosen, encoded, order, packed, encoded.reading(order))
        assert [one["id"] for one in found] == [item.id for item in chosen]
        expected = alone[sorted(members)].softmax(-1)
        for one, row in zip(found, expected, strict=True):
            assert list(one["probabilities"].values()) == pytest.approx(row.tolist(), abs=1e-5)
            assert one["label"] == "abc"[int(row.argmax())]


def test_rows_are_read_a_few_at_a_time_without_gradients(tokenizer, vocabulary):
    items = random_items(12, np.random.default_rng(1), lambda text, second: "a")
    task = Classification(("a", "b"))
    encoded = task.encode(items, Codec(tokenizer, vocabulary, 32))
    config = TransformerConfig(vocabulary_size=len(vocabulary), layers=1, width=32, heads=2, initializer_range=0.3)
    model = UnifiedModel.for_tasks(config, {"task": task.head(config)}).eval()
    batch = collate([[example] for example in encoded.examples], None, ("task",), 1)
    sizes = []
    model.transformer.register_forward_hook(lambda module, inputs, output: sizes.append(tuple(output.shape)))
    at_once = model.scores(batch, {}, "task")
    model.tokens_at_once = 5 * batch.tokens.size(1)
    with torch.no_grad():
        portions = model.scores(batch, {}, "task")
    assert sizes == [(12, 32), (5, 32), (5, 32), (2, 32)]
    torch.testing.assert_close(portions, at_once, atol=1e-6, rtol=1e-5)


def test_batches_hold_whole_units_within_their_limits():
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(60), rng.integers(1, 5, 60))
    assert [unit.tolist() for unit in units_of(owners, together=False)] == [[i] for i in range(len(owners))]
    units = units_of(owners, together=True)
    assert all((owners[unit] == i).all() for i, unit in enumerate(units)) and sum(map(len, units)) == len(owners)
    indices, order = rng.integers(1, 50, 60), rng.permutation(60)
    for most_units, max_tokens in ((8, None), (None, 100), (3, 60), (5, 20)):
        batches = batches_of(order, indices, most_units, max_tokens)
        assert np.concatenate(batches).tolist() == order.tolist()
        for batch, following in zip(batches, [*batches[1:], None], strict=True):
            assert not most_units or len(batch) <= most_units
            assert not max_tokens or indices[batch].sum() <= max_tokens or len(batch) == 1
            if following is not None:  # the next one would not have fitted
                full = most_units and len(batch) == most_units
                assert full or indices[batch].sum() + indices[following[0]] > max_tokens


def test_losses_are_the_textbooks():
    scores, targets = torch.randn(7, 3, dtype=torch.float64), torch.tensor([0, 1, 2, 0, 1, 2, 0])
    loss = Classification(("a", "b", "c")).loss(scores, {"labels": targets})
    expected = -sum(torch.log_softmax(scores, -1)[i, t] for i, t in enumerate(targets.tolist()))
    assert float(loss.total) == pytest.approx(float(expected), rel=1e-6) and loss.count == 7
    assert loss.correct == sum(int(scores[i].argmax()) == t for i, t in enumerate(targets.tolist()))
    numbers = torch.tensor([0.5, -1.0, 2.0])
    loss = Regression().loss(torch.tensor([[1.0], [0.0], [2.5]]), {"labels": numbers})
    assert float(loss.total) == pytest.approx(0.25 + 1.0 + 0.25)


def test_a_synthetic_classification_is_learnt_and_goes_on_from_a_language_model(tmp_path, tokenizer, vocabulary):
    """Does w0 occur? Answered from a language model's checkpoint, whose pooler comes along and whose heads do not."""
    rng = np.random.default_rng(2)

    def label(text, second):
        return "yes" if "w0" in text.split() else "no"

    items = random_items(1200, rng, label)
    yes = [item for item in items if item.label == "yes"]
    no = [item for item in items if item.label == "no"][: len(yes)]
    both = [item for pair in zip(yes, no, strict=True) for item in pair]
    data = folder(tmp_path / "data", {"train": both[60:], "valid": both[:60]}, tokenizer, vocabulary)
    result = train(data, tmp_path / "save", "--max-epoch", 10)
    assert float(validations(result)[-1]["valid_accuracy"]) >= 98
    checkpoint = torch.load(tmp_path / "save" / "checkpoint_last.pt", weights_only=True)
    kept = checkpoint["extra_state"]["UnifiedUnderstandingTask"]
    settings = {"labels": ("no", "yes"), "positive": None, "dropout": 0.1}
    assert kept == {"classification": {"head": "classification", "settings": settings}}
    config = TransformerConfig(vocabulary_size=len(vocabulary), layers=2, width=32, heads=2, token_types=2)
    language_model = UnifiedModel.for_language(config)
    model = UnifiedModel.for_tasks(config, {"one": Classification(("a", "b")).head(config)})
    parameters = with_pooler(language_model.state_dict(), model)
    assert torch.equal(parameters["heads.one.pooler.weight"], language_model.heads["next_sentence"].pooler.weight)
    checkpoint["model"] = {f"core.{name}": value for name, value in language_model.state_dict().items()}
    torch.save(checkpoint, tmp_path / "lm.pt")
    result = train(data, tmp_path / "more", "--max-update", 2, "--finetune-from-model", tmp_path / "lm.pt")
    log = result.stdout + result.stderr
    assert "initialised at random: heads.classification.output.weight, heads.classification.output.bias" in log
    # The token head without the embeddings, and of next sentences all but the pooler, which the classifier takes.
    assert "unused, left out: heads.token (5 parameters), heads.next_sentence (2 parameters)\n" in log


def test_a_head_for_other_labels_keeps_its_pooler(vocabulary):
    """Three labels to two, as from MNLI to RTE: the last projection is new, all else goes on."""
    config = TransformerConfig(vocabulary_size=len(vocabulary), layers=1, width=16, heads=2, token_types=2)
    three, two = (
        UnifiedModel.for_tasks(config, {"pairs": Classification(labels).head(config)})
        for labels in (("a", "b", "c"), ("d", "e"))
    )
    kept, left_out = without_other_labels(three.state_dict(), two)
    assert left_out == ["heads.pairs.output.weight", "heads.pairs.output.bias"]
    before = {name: value.clone() for name, value in two.state_dict().items()}
    new, unused = load_parameters(two, kept, task_head_prefixes(two), task_head_prefixes(two))
    assert (new, unused) == (left_out, [])
    for name, value in two.state_dict().items():
        assert torch.equal(value, before[name] if name in left_out else three.state_dict()[name])
    kept, left_out = without_other_labels(three.state_dict(), three)
    assert kept.keys() == three.state_dict().keys() and not left_out


def test_a_synthetic_regression_is_learnt(tmp_path, tokenizer, vocabulary):
    """How many of the first text's words are in the second?"""

    def label(text, second):
        return float(sum(word in ("w0", "w1", "w2", "w3") for word in text.split()))

    items = random_items(700, np.random.default_rng(3), label)
    data = folder(tmp_path / "data", {"train": items[100:], "valid": items[:100]}, tokenizer, vocabulary)
    result = train(data, tmp_path / "save", "--head", "regression", "--max-epoch", 7)
    last = validations(result)[-1]
    variance = float(np.var([item.label for item in items[:100]]))
    assert float(last["valid_loss"]) < 0.1 * variance, (last, variance)
    # Of a linear fit the squared error is 1 - r^2 of the variance, of any other prediction not less.
    assert float(last["valid_pearson"]) >= 100 * (1 - float(last["valid_loss"]) / variance) ** 0.5 - 0.01


def test_words_are_read_once_at_their_first_token(tokenizer, vocabulary):
    """Words of several pieces, items of several rows: the tokens at the read indices are the words' first pieces."""
    wordpiece = WordPieceTokenizer([*tokenizer.entries, "a", "##b", "##c"], lowercase=False)
    table = Vocabulary([*WORDS, "a", "##b", "##c"])
    rng = np.random.default_rng(5)
    spelled = [*WORDS[:5], "a", "ab", "abc", "abbcbc"]
    items = [WordsItem(str(i), tuple(rng.choice(spelled, rng.integers(1, 30)))) for i in range(60)]
    examples, owners, divided, lost = encode_words([item.words for item in items], Codec(wordpiece, table, 16))
    read = [[] for _ in items]
    for example, owner in zip(examples, owners, strict=True):
        assert len(example.tokens) <= 16 and example.tokens[0] == 0 and example.tokens[-1] == 2
        read[owner] += [table.symbols[token] for token in example.tokens[example.targets["task"].output_indices[:, 0]]]
    for item, firsts in zip(items, read, strict=True):
        assert firsts == ["a" if word.startswith("a") else word for word in item.words]
    pieces = [sum(1 if word in WORDS else len(word) for word in item.words) for item in items]
    assert divided == sum(count > 14 for count in pieces) > 5
    assert not lost.any()
    long, _, divided, lost = encode_words([("a" + "b" * 30,)], Codec(wordpiece, table, 8))
    assert len(long) == 1 and len(long[0].tokens) == 8 and divided == 1 and lost.tolist() == [31 - 6]


def test_synthetic_tags_are_learnt(tmp_path, tokenizer, vocabulary):
    """The tag of a word is its number in threes; long items are divided and packed, and stay aligned."""
    rng, items = np.random.default_rng(6), []
    for i in range(500):
        words = rng.choice(WORDS, rng.integers(2, 40)).tolist()
        tags = [("a", "b", "c")[int(word[1:]) % 3] for word in words]
        items.append(WordsItem(str(i), tuple(words), tuple(tags)))
    data = folder(tmp_path / "data", {"train": items[50:], "valid": items[:50]}, tokenizer, vocabulary)
    result = train(data, tmp_path / "save", "--head", "tagging", "--max-epoch", 2)
    assert float(validations(result)[-1]["valid_accuracy"]) >= 98
    kept = torch.load(tmp_path / "save" / "checkpoint_last.pt", weights_only=True)["extra_state"]
    assert kept["UnifiedUnderstandingTask"]["tagging"]["settings"]["labels"] == ("a", "b", "c")


def test_bad_words_are_reported(tmp_path):
    path = tmp_path / "train.jsonl"
    lines = ['{"words": ["a"], "tags": ["x"]}', '{"words": []}', '{"words": ["a", " "], "tags": ["x", "y"]}',
             '{"words": ["a"]}', '{"words": ["a", "b"], "tags": ["x"]}']  # fmt: skip
    path.write_text("\n".join(lines))
    with pytest.raises(UnifiedError) as caught:
        Tagging.read(path)
    for problem in ("2 lines (2, 4): no field 'tags'; its fields: 'words'", "line 3: 'words' must be",
                    "line 5: 'tags' must be a list of 2 names"):  # fmt: skip
        assert problem in str(caught.value)
    path.write_text('{"words": ["a"]}')
    assert Tagging.read(path, labelled=False) == [WordsItem("1", ("a",))]


def test_items_are_read_as_they_were_written(tmp_path):
    """Texts may hold what Unicode counts as the end of a line."""
    texts = [TextItem("1", "a\u2028b\x85c\x0b d", "e\r", "x"), TextItem("2", "f", None, "y")]
    words = [WordsItem("1", ("a\u2029b",), ("O",), "one"), WordsItem("2", ("c", "d"), ("O", "B-x"))]
    for name, items, task in (("texts", texts, Classification), ("words", words, Tagging)):
        write_items(tmp_path / name, items)
        assert task.read(tmp_path / name) == items


def test_bad_lines_are_reported_together(tmp_path):
    lines = ['{"text": "a", "label": "x"}', "no json", '{"text": " ", "label": "x"}', '{"text": "b"}', "[1]",
             '{"text": "b", "label": 3.5}', '{"text": "b", "second": 4, "label": "x"}', ""]  # fmt: skip
    path = tmp_path / "train.jsonl"
    path.write_text("\n".join(lines))
    with pytest.raises(UnifiedError) as caught:
        Classification.read(path)
    for problem in ("line 2: not JSON", "line 3: 'text'", "line 4: no field 'label'; its fields: 'text'",
                    "line 5: not a JSON object",
                    "line 6: 'label' must be a name", "line 7: 'second' must be a text"):  # fmt: skip
        assert problem in caught.value.details
    path.write_text("\n".join(["{}"] * 14))
    with pytest.raises(UnifiedError, match=r"14 lines \(1, 2, 3, ...\): no field 'text'; its fields: none$"):
        Classification.read(path)
    path.write_text("\n\n")
    with pytest.raises(UnifiedError, match="holds no item"):
        Classification.read(path)
    path.write_text('{"text": "a", "label": "x"}')
    with pytest.raises(UnifiedError, match="'label' must be a number"):
        Regression.read(path)


@pytest.mark.parametrize("again", ['{"id": "a", "text": "c", "label": "x"}', '{"id": 2, "text": "c", "label": "x"}'])
def test_an_id_names_one_item(tmp_path, again):
    """Predictions are named by ids, those that are numbers of lines among them."""
    path = tmp_path / "train.jsonl"
    path.write_text('{"id": "a", "text": "a", "label": "x"}\n{"text": "b", "label": "y"}\n' + again)
    name, first = ("a", 1) if '"a"' in again else ("2", 2)
    with pytest.raises(UnifiedError, match=f"train.jsonl: line 3: the id '{name}' is that of line {first}, too"):
        Classification.read(path)


@pytest.mark.parametrize(
    "change, arguments, says",
    [
        ({"valid": [TextItem("7", "w1", None, "maybe")]}, (), "item 7 has the label 'maybe'; the labels are no, yes"),
        ({"train": [TextItem("1", "w1", None, "yes")]}, (), "needs at least two labels"),
        ({}, ("--tokens-per-sample", 1000), "--tokens-per-sample 1000 exceeds --max-positions 512"),
        ({}, ("--head", "classificatoin"), "no such head (did you mean 'classification'?)"),
        (
            {},
            ("--head", "tagging(drop=1)"),
            "no setting 'drop' (did you mean 'dropout'?); its settings are labels, dropout",
        ),
        ({}, ("--head", "classification(positive='maybe')"), "positive='maybe' is none of the labels"),
        ({}, ("--max-valid-steps", 3), "--max-valid-steps: scores are of all items"),
    ],
)
def test_refusals_are_one_line_without_traceback(tmp_path, tokenizer, vocabulary, change, arguments, says):
    plain = [TextItem(str(i), f"w{i}", None, ("no", "yes")[i % 2]) for i in range(8)]
    data = folder(tmp_path / "data", {"train": plain, "valid": plain} | change, tokenizer, vocabulary)
    assert says in refusal_to_train(data, tmp_path / "save", "--max-update", 2, *arguments)


@pytest.mark.parametrize(
    ("task", "signature"),
    [
        (Classification(("a", "b"), positive="b"), "rules:glue|macro:all-labels|positive:b"),
        (Regression(), "rules:glue|ties:mean-rank"),
        (Choice(), "rules:accuracy-of-items"),
        (Tagging(("O", "B-X", "I-X")), "rules:conlleval|scheme:bio,iob1|avg:micro"),
        (Tagging(("NN", "VB")), "rules:accuracy-of-tags"),
        (Relation(("a", "NA"), negative="NA"), "rules:tacred|avg:micro|without:NA"),
        (
            Relation(("R(e1,e2)", "Other"), rules="semeval2010"),
            "rules:semeval2010-task8|avg:macro|directions:yes|without:Other",
        ),
        (Coreference(), "rules:conll2012-8.01|average:muc,bcub,ceafe|singletons:yes"),
        (SpanAnswers(), "rules:squad1.1|refs:best"),
        (SpanAnswers(rules="2.0"), "rules:squad2.0|refs:best"),
        (SpanAnswers((NOTHING,), null_threshold=0.3), "rules:squad2.0|refs:best|null:above-0.3|best:searched"),
        (SpanAnswers(rules="coqa"), "rules:coqa|refs:leave-one-out"),
    ],
)
def test_every_task_signs_its_scores(task, signature):
    assert task.signature == signature


def test_signed_scores_are_the_scores_and_the_signature():
    task, items, predictions = Regression(), [TextItem("1", "x", label=1.0)], [{"id": "1", "label": 2.0}]
    assert task.signed(items, predictions).scores() == {**task.score(items, predictions), "signature": task.signature}


def test_every_head_has_a_signature():
    assert all(hasattr(kind, "signature") for kind in TASK_HEADS.values())
