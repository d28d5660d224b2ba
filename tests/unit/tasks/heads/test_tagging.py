"""Tagging: document context, and features of a fixed model."""

import numpy as np
import pytest
import torch

from tests.support import understanding_runs as runs
from tests.support.task_folders import WORDS
from unified.data.collate import collate
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.model.features import COMBINATIONS, RecurrentHead
from unified.tasks.heads import Tagging
from unified.tasks.heads.encoded_texts import encode_words
from unified.tasks.heads.items import WordsItem
from unified.tasks.prediction import Predictor
from unified.tokenization.wordpiece import WordPieceTokenizer

SPELLED = [*WORDS[:5], "a", "ab", "abc", "abbcbc"]


def spelling_codec(longest, cls_last=False):
    """Words of letters have a piece for each letter."""
    pieces = ["a", "##b", "##c"]
    tokenizer = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *pieces], lowercase=False)
    return Codec(tokenizer, Vocabulary([*WORDS, *pieces]), longest, cls_last)


def pieces_of(word):
    return [word] if word in WORDS else [word[0], *(f"##{letter}" for letter in word[1:])]


def documents(rng, count, longest=12):
    """Items of documents of one to eight sentences."""
    items = []
    for document in range(count):
        for _ in range(rng.integers(1, 9)):
            words = tuple(rng.choice(SPELLED, rng.integers(1, longest)).tolist())
            tags = tuple(rng.choice(["O", "B-x", "I-x"], len(words)).tolist())
            items.append(WordsItem(str(len(items)), words, tags, f"d{document}"))
    return items


# Document context


def grown(words, first, last, max_tokens):
    """Words ``first`` to ``last`` of a document and those around them, added one by one, and the tokens that still fit.

    Half of the tokens that fit are for words before, or more where there is less behind; the rest for those behind.
    """
    sizes = [len(pieces_of(word)) for word in words]
    spare = max_tokens - sum(sizes[first:last])
    quota, begin, end = max(spare // 2, spare - sum(sizes[last:])), first, last
    while begin and sizes[begin - 1] <= quota:
        begin, quota, spare = begin - 1, quota - sizes[begin - 1], spare - sizes[begin - 1]
    while end < len(words) and sizes[end] <= spare:
        end, spare = end + 1, spare - sizes[end]
    return words[begin:end], spare


@pytest.mark.parametrize("cls_last", [False, True])
def test_context_is_what_fits_of_the_document(cls_last):
    rng, longest = np.random.default_rng(0), 30
    items, codec = documents(rng, 40), spelling_codec(longest, cls_last)
    examples, owners, *_ = encode_words([item.words for item in items], codec, [item.document for item in items])
    read, both_sides = [0] * len(items), 0
    for example, owner in zip(examples, owners, strict=True):
        symbols = runs.symbols(example, codec)
        inside = symbols[:-2] if cls_last else symbols[1:-1]
        same = [item for item in items if item.document == items[owner].document]
        words = [word for item in same for word in item.words]
        first = sum(len(item.words) for item in same[: same.index(items[owner])]) + read[owner]
        last = first + len(example.targets["task"].output_indices)
        shown, spare = grown(words, first, last, longest - 2)
        assert inside == [piece for word in shown for piece in pieces_of(word)]
        assert [symbols[index] for index in example.targets["task"].output_indices[:, 0]] == [
            pieces_of(word)[0] for word in words[first:last]
        ]
        assert spare < 6 or len(shown) == len(words)
        both_sides += shown[0] is not words[first] and shown[-1] is not words[last - 1]
        read[owner] += len(example.targets["task"].output_indices)
    assert read == [len(item.words) for item in items] and both_sides > 30


def test_sentences_alone_have_no_context():
    items, codec = documents(np.random.default_rng(1), 10), spelling_codec(40)
    examples, owners, *_ = encode_words([item.words for item in items], codec)
    for example, owner in zip(examples, owners, strict=True):
        symbols = runs.symbols(example, codec)[1:-1]
        spelled = [piece for word in items[owner].words for piece in pieces_of(word)]
        assert symbols == spelled or len(spelled) > 38


def test_long_sentences_are_divided_within_their_document():
    words = [("w0", "w1"), tuple(f"w{i}" for i in range(2, 20)), ("w20", "w21")]
    codec = spelling_codec(12)
    examples, owners, divided, lost = encode_words(words, codec, ["d", "d", "d"])
    assert divided == 1 and not lost.any() and owners.tolist() == [0, 1, 1, 2]
    shown = [
        [runs.symbols(example, codec)[index] for index in example.targets["task"].output_indices[:, 0]]
        for example in examples
    ]
    assert shown == [["w0", "w1"], [f"w{i}" for i in range(2, 12)], [f"w{i}" for i in range(12, 20)], ["w20", "w21"]]
    assert runs.symbols(examples[0], codec)[1:-1] == [f"w{i}" for i in range(10)]
    assert runs.symbols(examples[2], codec)[1:-1] == [f"w{i}" for i in range(11, 21)]
    assert runs.symbols(examples[3], codec)[1:-1] == [f"w{i}" for i in range(12, 22)]
    assert all(len(example.tokens) == 12 for example in examples)


@pytest.mark.parametrize("context", [False, True])
def test_words_too_long_for_a_row_are_cut_and_counted(context):
    """Each item counts its own words, not those of neighbours in its document."""
    long = "a" + "bc" * 10
    items = [
        WordsItem(str(i), words, None, "d") for i, words in enumerate([("w1",), (long, "w2", long + "b"), ("ab",)])
    ]
    task, codec = Tagging(("O", "B-x"), context=context), spelling_codec(12)
    encoded = task.encode(items, codec)
    assert encoded.cut == 1 and list(encoded.lost) == [0, 11 + 12, 0]
    found = list(Predictor(runs.small_model(task, codec), "task", task, codec).predict(items))
    assert [one.get("cut") for one in found] == [None, 23, None] and len(found[1]["tags"]) == 3


def test_learning_from_context_needs_documents():
    items = [WordsItem("7", ("w1",), ("O",))]
    task = Tagging(("O", "B-x"), context=True)
    with pytest.raises(UnifiedError, match="item 7 has no 'document', which tagging.context=True. learns from"):
        task.encode(items, spelling_codec(12))
    unlabelled = [WordsItem("1", ("w1",)), WordsItem("2", ("w2",)), WordsItem("3", ("w3",), None, "d")]
    assert [len(example.tokens) for example in task.encode(unlabelled, spelling_codec(12)).examples] == [3, 3, 3]
    together = [WordsItem(str(i), (f"w{i}",), ("O",), document) for i, document in enumerate("dde")]
    assert [len(example.tokens) for example in task.encode(together, spelling_codec(12)).examples] == [4, 4, 3]


def test_predictions_do_not_depend_on_the_batch():
    items, codec = documents(np.random.default_rng(2), 12), spelling_codec(16)
    task = Tagging(("O", "B-x", "I-x"), features="last", recurrent_width=8)
    model = runs.small_model(task, codec)
    runs.assert_predictions_do_not_depend_on_the_batch(task, model, items, task.encode(items, codec), 16)


def test_predictions_of_a_stream_have_whole_documents():
    """However few items are read ahead; and items by themselves are answered as soon as so many are there."""
    items, codec = documents(np.random.default_rng(3), 12), spelling_codec(24)
    task = Tagging(("O", "B-x", "I-x"), context=True)
    model = runs.small_model(task, codec)
    expected = list(Predictor(model, "task", task, codec, ahead=1000).predict(items))
    assert [one["id"] for one in expected] == [item.id for item in items]
    for ahead in (1, 2, 7):
        assert list(Predictor(model, "task", task, codec, ahead=ahead).predict(items)) == expected
    asked = []
    stream = (asked.append(item) or item for item in items)
    predictor = Predictor(model, "task", Tagging(("O", "B-x", "I-x")), codec, ahead=2)
    next(predictor.predict(stream))
    assert len(asked) == 2


# Features


def manual_states(model, batch):
    """States of every layer, from hooks: the embeddings, then each block's output, the last as the model gives it."""
    found = []
    hooks = [module.register_forward_hook(lambda module, inputs, output: found.append(output))
             for module in (model.transformer.embeddings, *model.transformer.layers)]  # fmt: skip
    last = model.transformer(batch.tokens, batch.positions, batch.token_types, batch.mask)
    for hook in hooks:
        hook.remove()
    return [*found[:-1], last]


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("combination", COMBINATIONS)
def test_combinations_are_those_of_the_paper(combination, norm):
    """BERT, table 7, each computed by hand from all layers of a model of six."""
    config = TransformerConfig(vocabulary_size=200, layers=6, width=16, heads=2, initializer_range=0.3, norm=norm)
    head = RecurrentHead(config, 3, 0.0, combination, width=5)
    model = UnifiedModel.for_tasks(config, {"task": head}).eval()
    items, codec = documents(np.random.default_rng(4), 3), spelling_codec(16)
    examples, *_ = encode_words([item.words for item in items], codec)
    batch = collate([[example] for example in examples], None, ("task",), 1)
    if head.weights is not None:
        torch.nn.init.normal_(head.weights)
    layers = [
        states.flatten(0, 1)[batch.targets["task"].output_indices[:, 0]] for states in manual_states(model, batch)
    ]
    weights = None if head.weights is None else torch.softmax(head.weights, 0)
    wanted = {
        "embeddings": lambda: layers[0],
        "second_to_last": lambda: layers[5],
        "last": lambda: layers[6],
        "sum_last_four": lambda: sum(weights[i] * layers[3 + i] for i in range(4)),
        "concat_last_four": lambda: torch.cat([layers[3], layers[4], layers[5], layers[6]], dim=-1),
        "sum_all": lambda: sum(weights[i] * layers[1 + i] for i in range(6)),
    }[combination]()
    seen = []
    head.recurrent.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    sizes = torch.tensor([len(example.targets["task"].output_indices) for example in examples])
    scores = model.scores(batch, {"sizes": sizes}, "task")
    torch.testing.assert_close(torch.cat(torch.nn.utils.rnn.unpack_sequence(seen[0])), wanted, atol=1e-5, rtol=1e-5)
    assert scores.shape == (int(sizes.sum()), 3)
    one = head.recurrent(wanted[: sizes[0]])[0]  # a sentence alone
    torch.testing.assert_close(scores[: sizes[0]], head.output(one), atol=1e-5, rtol=1e-5)


def test_a_model_for_features_stays_as_it_is():
    config = TransformerConfig(vocabulary_size=200, layers=2, width=16, heads=2, dropout=0.5)
    model = UnifiedModel.for_tasks(config, {"task": RecurrentHead(config, 3, 0.0, "sum_all", width=5)}).train()
    examples, *_ = encode_words([("w1", "w2", "w3")], spelling_codec(12))
    batch = collate([examples], None, ("task",), 1)
    reading = {"sizes": torch.tensor([3])}
    first, second = model.scores(batch, reading, "task"), model.scores(batch, reading, "task")
    assert torch.equal(first, second)  # no dropout
    first.sum().backward()
    assert not any(parameter.requires_grad for parameter in model.transformer.parameters())  # nor does it learn
    assert all(parameter.grad is not None for parameter in model.heads.parameters())
    both = {"task": RecurrentHead(config, 3, 0.0, "last", width=5), "other": RecurrentHead(config, 3, 0.0, "last", 5)}
    with pytest.raises(UnifiedError, match="must be the only thing that is learnt"):
        UnifiedModel.for_tasks(config, both)
    with pytest.raises(UnifiedError, match="must be the only thing that is learnt"):
        UnifiedModel.for_tasks(config, {"task": both["task"]}, predicts_tokens=True)


def test_features_that_a_model_lacks_are_refused():
    small = TransformerConfig(vocabulary_size=20, layers=3, width=16, heads=2)
    for combination in ("sum_last_four", "concat_last_four"):
        with pytest.raises(UnifiedError, match=f"features='{combination}' needs more than the 3 layers of the model"):
            RecurrentHead(small, 3, 0.0, combination, width=5)
    assert RecurrentHead(small, 3, 0.0, "sum_all", width=5).layers == (1, 2, 3)
    with pytest.raises(UnifiedError, match="features must be one of embeddings, .*, got 'first'"):
        Tagging(("O", "B-x"), features="first")


# Learning
