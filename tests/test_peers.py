"""The peer of fine-tuning: what it reads, learns and answers, and that it takes the steps that ours takes."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import islice
from pathlib import Path

import debug
import numpy as np
import pytest
import torch
from choice_head import Choices
from question_head import Questions
from relation_head import Relations
from text_head import Texts
from torch import nn
from training_loop import batches, train
from word_head import Words

from fairseq_plugins.items import ItemFairseqDataset, TrainingOrder
from fairseq_plugins.optimizer import OnePassAdamW
from tests.test_recipes import load
from unified.checkpoints import load_checkpoint
from unified.checkpoints.bert import import_bert
from unified.checkpoints.parameters import load_parameters
from unified.data.destination import write_manifest
from unified.errors import UnifiedError
from unified.model.understanding import UnderstandingModel, with_pooler
from unified.results import read_results, tables
from unified.tasks import HEADS, Classification, Codec, Tagging, parse_head
from unified.tasks.batches import assembled
from unified.tasks.catalogue import task_named
from unified.tasks.choice import Choice, ChoiceItem
from unified.tasks.entities import Entity
from unified.tasks.finetuning import Start
from unified.tasks.items import TextItem, WordsItem, write_items
from unified.tasks.jobs import job_of
from unified.tasks.questions import Answer, QuestionItem
from unified.tasks.relation import Relation, RelationItem
from unified.tasks.settings import Training
from unified.tasks.span import SpanAnswers

PEERS = Path(__file__).resolve().parent.parent / "recipes" / "peers"
#: Words, of which those of three letters have two pieces.
VOCABULARY = (*debug.WORDS, "a", "##bc", "##b")
LABELS = ("B-x", "I-x", "O")


@pytest.fixture(scope="module")
def peers():
    return load(PEERS / "finetune.py")


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("peers") / "model"
    debug.make_model(folder, VOCABULARY)
    return folder


def sentence(rng: np.random.Generator, least: int, most: int) -> list[str]:
    return rng.choice([*debug.WORDS[:20], "abc", "ab"], rng.integers(least, most)).tolist()


def texts(count: int, rng: np.random.Generator, numeric: bool = False) -> list[TextItem]:
    items = []
    for i in range(count):
        second = " ".join(sentence(rng, 1, 12)) if i % 3 else None
        label = float(rng.integers(0, 50)) / 10 if numeric else str(rng.choice(["no", "perhaps", "yes"]))
        items.append(TextItem(f"item {i}", " ".join(sentence(rng, 1, 12)), second, label))
    return items


def words(count: int, rng: np.random.Generator) -> list[WordsItem]:
    found = (sentence(rng, 1, 20) for _ in range(count))
    return [WordsItem(str(i), tuple(one), tuple(rng.choice(LABELS, len(one)))) for i, one in enumerate(found)]


def questions(count: int, rng: np.random.Generator) -> list[QuestionItem]:
    """Every third has no answer."""
    items = []
    for i in range(count):
        passage, question = sentence(rng, 5, 60), " ".join(sentence(rng, 1, 5))
        first = rng.integers(len(passage))
        answer = " ".join(passage[first : first + rng.integers(1, 4)])
        start = len(" ".join([*passage[:first], ""]))
        answers = () if i % 3 == 0 else (Answer(answer, start),)
        items.append(QuestionItem(str(i), question, " ".join(passage), answers, impossible=not answers or None))
    return items


def choices(count: int, rng: np.random.Generator) -> list[ChoiceItem]:
    """Every other has a question."""
    items = []
    for i in range(count):
        context, *four = (" ".join(sentence(rng, 1, 9)) for _ in range(5))
        items.append(ChoiceItem(str(i), context, tuple(four), "w1" if i % 2 else None, int(rng.integers(4))))
    return items


def relations(count: int, rng: np.random.Generator) -> list[RelationItem]:
    items = []
    for i in range(count):
        found = sentence(rng, 4, 20)
        starts = rng.integers(len(found), size=2).tolist()
        entities = tuple(Entity(start, min(start + 1 + i % 3, len(found))) for start in starts)
        items.append(RelationItem(str(i), tuple(found), entities, str(rng.choice(["a", "b", "none"]))))
    return items


MAKE = {
    "choice": choices,
    "classification": texts,
    "relation": relations,
    "regression": lambda count, rng: texts(count, rng, numeric=True),
    "tagging": words,
    "span": questions,
}


def data_folder(path: Path, head: str, rng: np.random.Generator) -> Path:
    """As `unified finetune` leaves it, without what the peer does not read."""
    path.mkdir()
    for split, count in (("train", 21), ("valid", 10)):
        write_items(path / f"{split}.jsonl", MAKE[head](count, rng))
    write_manifest(path, {"task": head})
    return path


SETTINGS = {"span": "span(stride=8)", "relation": "relation(negative='none')"}


@pytest.mark.parametrize("head", MAKE)
def test_every_head_is_trained_predicts_and_is_scored(peers, model, tmp_path, head, capsys):
    data, output = data_folder(tmp_path / "data", head, np.random.default_rng(1)), tmp_path / "run"
    setting = SETTINGS.get(head, head)
    peers.main([
        head, "--head", setting, "--data", str(data), "--model", str(model), "--output", str(output), "--updates", "2",
        "--batch-size", "4", "--longest", "32", "--seed", "3",
    ])  # fmt: skip
    printed = capsys.readouterr().out
    result = read_results([output])[0]
    assert (result["run"], result["seed"], result["updates"], result["task"]) == ("transformers", 3, 2, head)
    assert (
        list(result["scores"]) == ["valid"]
        and json.loads(printed[printed.rindex('{\n  "valid"') :]) == result["scores"]
    )
    items = HEADS[head].read(data / "valid.jsonl")
    predictions = [json.loads(line) for line in (output / "predictions.valid.jsonl").read_text().splitlines()]
    assert [one["id"] for one in predictions] == [item.id for item in items]
    task = parse_head(setting).task_of(HEADS[head].read(data / "train.jsonl"))
    assert result["scores"]["valid"] == task.score(items, predictions)
    assert task.measures[0] in tables([result]) and not (output / "state.pt").exists()


def test_as_many_updates_as_ours(model, peers, tmp_path):
    """21 items in batches of 4, three epochs."""
    import_bert(model, tmp_path / "start")
    data = data_folder(tmp_path / "data", "classification", np.random.default_rng(1))
    items = Classification.read(data / "train.jsonl")
    task, start = task_named("classification"), Start.of(tmp_path / "start")
    planned = job_of(task, Training(batch_size=4, longest=16), start, tmp_path).updates({"train": items}, 4)
    words = ["--data", str(data), "--model", str(model), "--output", str(tmp_path / "run")]
    peers.main(["classification", *words, "--batch-size", "4"])
    assert read_results([tmp_path / "run"])[0]["updates"] == planned == 18


def test_what_cannot_be_trained_is_refused(peers, model, tmp_path):
    data = data_folder(tmp_path / "data", "classification", np.random.default_rng(1))
    rest = ["--model", str(model), "--output", str(tmp_path / "run")]
    for words, says in (
        (["tagging", "--data", str(data), *rest], "made of classification, not of tagging"),
        (["tagging", "--data", str(tmp_path), *rest], "no data folder of `unified finetune`"),
        (["classification", "--data", str(data), *rest[:1], str(tmp_path), *rest[2:]], "no model folder"),
    ):
        with pytest.raises(UnifiedError, match=says):
            peers.main(words)
    other = type("Other", (Classification,), {"name": "other"})
    with pytest.raises(UnifiedError, match="head other: no peer; there are peers of"):
        peers.peer_of(other(("a", "b")), model, 32)


@pytest.mark.parametrize("longest", [9, 13, 32])
def test_texts_are_read_as_ours_are(model, tmp_path, longest):
    """The same tokens, types and labels, and as many items cut.

    Of two long texts in a room of odd size transformers gives the odd place to the second, ours, as BERT, to the first;
    sizes here are even.
    """
    import_bert(model, tmp_path / "start")
    start, items = Start.of(tmp_path / "start"), texts(150, np.random.default_rng(2))
    task = Classification.of(items)
    encoded = task.encode(items, Codec(start.tokenizer, start.vocabulary, longest))
    peer = Texts(task, model, longest)
    features = peer.features(items)
    special = {"<s>": "[CLS]", "</s>": "[SEP]"}
    for example, target, read in zip(encoded.examples, encoded.facts["targets"], features.inputs, strict=True):
        symbols = [start.vocabulary.symbols[token] for token in example.tokens]
        assert peer.tokenizer.convert_ids_to_tokens(read["input_ids"]) == [special.get(one, one) for one in symbols]
        assert read["token_type_ids"] == example.token_types.tolist() and read["labels"] == target[0]
    assert features.cut == encoded.cut and (features.cut > 0) == (longest < 32)


def test_words_have_their_label_at_their_first_token(model):
    items = words(60, np.random.default_rng(4))
    peer = Words(Tagging(LABELS), model, 16)
    features = peer.features(items)
    scores = []
    for item, read in zip(items, features.inputs, strict=True):
        tokens, expected, room = ["[CLS]"], [-100], 14
        for word, tag in zip(item.words, item.tags, strict=True):
            pieces = {"abc": ["a", "##bc"], "ab": ["a", "##b"]}.get(word, [word])[:room]
            room -= len(pieces)
            tokens += pieces
            expected += [LABELS.index(tag), -100][: len(pieces)]
        assert peer.tokenizer.convert_ids_to_tokens(read["input_ids"]) == [*tokens, "[SEP]"]
        assert read["labels"] == [*expected, -100]
        scores.append(torch.tensor([[float(label == i) for i in range(3)] for label in read["labels"]]))
    found = peer.predictions(items, features, scores)
    unread = 0
    for item, one, places in zip(items, found, features.notes, strict=True):
        assert one["tags"] == ["O" if place is None else tag for tag, place in zip(item.tags, places, strict=True)]
        unread += None in places
    assert features.cut == unread > 0


def test_entities_stand_between_marks(model):
    """Without the marks the words are left; between those of an entity stand its own."""
    items = relations(60, np.random.default_rng(8))
    peer = Relations(Relation(("a", "b", "none"), negative="none"), model, 64)
    features = peer.features(items)
    assert peer.model().get_input_embeddings().num_embeddings == len(peer.tokenizer) == len(debug.WORDS) + 13 + 3 + 4
    for item, read in zip(items, features.inputs, strict=True):
        tokens = peer.tokenizer.convert_ids_to_tokens(read["input_ids"])
        for number, entity in enumerate(item.entities, 1):
            inside = tokens[tokens.index(f"[E{number}]") + 1 : tokens.index(f"[/E{number}]")]
            assert together(inside) == list(item.words[entity.start : entity.stop])
        assert together(tokens[1:-1]) == list(item.words)
        assert peer.task.labels[read["labels"]] == item.label


def together(tokens: list[str]) -> list[str]:
    """Words of their pieces; marks are left out."""
    return " ".join(token for token in tokens if token[0] != "[").replace(" ##", "").split()


def test_choices_are_read_with_the_context_each(model):
    items = choices(30, np.random.default_rng(9))
    peer = Choices(Choice(), model, 64)
    features = peer.features(items)
    batch = peer.collate(features.inputs)
    assert batch["input_ids"].shape[:2] == (30, 4) and batch["labels"].tolist() == [item.label for item in items]
    for item, row in zip(items, batch["input_ids"], strict=True):
        for choice, tokens in zip(item.choices, row, strict=True):
            expected = f"[CLS] {item.context} [SEP] {'w1 ' if item.question else ''}{choice} [SEP]"
            assert peer.tokenizer.decode(tokens).replace(" [PAD]", "").replace("[PAD]", "") == expected
    scores = [torch.eye(4)[item.label] for item in items]
    assert [one["label"] for one in peer.predictions(items, features, scores)] == [item.label for item in items]
    with pytest.raises(UnifiedError, match="item 30 has 2 choices; the peer needs equally many of all"):
        peer.features([*items, ChoiceItem("30", "w1", ("w2", "w3"), None, 0)])


def test_parts_of_passages_and_the_answers_in_them(model):
    """Each part holds its characters; parts share 8 tokens; a target is the answer, or CLS if it is not there."""
    items, longest, stride = questions(80, np.random.default_rng(5)), 32, 8
    peer = Questions(SpanAnswers(("",), stride=stride), model, longest)
    features = peer.features(items)
    held = 0
    for number, item in enumerate(items):
        own = [i for i, part in enumerate(features.notes) if part.item == number]
        behind = None
        for i in own:
            part, read = features.notes[i], features.inputs[i]
            assert len(read["input_ids"]) == longest
            tokens = peer.tokenizer.convert_ids_to_tokens(read["input_ids"])
            assert tokens[part.first - 1] == "[SEP]" and tokens[part.first + len(part.offsets)] == "[SEP]"
            for place, (start, end) in enumerate(part.offsets, part.first):
                assert tokens[place].removeprefix("##") == item.context[start:end]
            if behind is not None:
                assert (part.offsets[:stride] == behind[-stride:]).all()
            behind = part.offsets
            start, end = read["start_positions"], read["end_positions"]
            if start:
                held += 1
                characters = part.offsets[start - part.first, 0], part.offsets[end - part.first, 1]
                answer = item.answers[0]
                assert characters == (answer.start, answer.start + len(answer.text))
            else:
                inside = [a for a in item.answers if part.offsets[0, 0] <= a.start]
                assert end == 0 and not any(a.start + len(a.text) <= part.offsets[-1, 1] for a in inside)
        assert features.notes[own[0]].offsets[0, 0] == 0 and behind[-1, 1] == len(item.context)
    assert held > 50 and features.cut == sum(
        sum(part.item == number for part in features.notes) > 1 for number in range(len(items))
    )


def published_answer(item, parts, scores, n_best: int, longest: int) -> tuple[str, float]:
    """The loops of the example script: best text, and the difference of the null score and the best span's."""
    candidates, null = [], None
    for part, own in zip(parts, scores, strict=True):
        offsets: list = [None] * len(own)
        offsets[part.first : part.first + len(part.offsets)] = part.offsets.tolist()
        start_scores, end_scores = own[:, 0].tolist(), own[:, 1].tolist()
        score = start_scores[0] + end_scores[0]
        null = score if null is None or score < null else null
        for start in sorted(range(len(own)), key=lambda i: -start_scores[i])[:n_best]:
            for end in sorted(range(len(own)), key=lambda i: -end_scores[i])[:n_best]:
                if offsets[start] is None or offsets[end] is None or end < start or end - start + 1 > longest:
                    continue
                text = item.context[offsets[start][0] : offsets[end][1]]
                candidates.append((start_scores[start] + end_scores[end], text))
    if not candidates:
        return "", math.inf
    best = max(candidates, key=lambda one: one[0])
    return best[1], null - best[0]


@pytest.mark.parametrize("labels", [("",), ()])
def test_answers_are_those_of_the_published_loops(model, labels):
    rng = np.random.default_rng(6)
    items = questions(60, rng)
    peer = Questions(SpanAnswers(labels, stride=8, n_best=5, max_answer=4), model, 32)
    features = peer.features([item for item in items])
    scores = [torch.from_numpy(rng.normal(size=(32, 2)).astype(np.float32)) for _ in range(len(features))]
    for own in scores:
        own[0] += 0.6  # CLS: about half of the questions have no answer
    nothing = 0
    for number, (item, found) in enumerate(zip(items, peer.predictions(items, features, scores), strict=True)):
        own = [i for i, part in enumerate(features.notes) if part.item == number]
        text, difference = published_answer(
            item, [features.notes[i] for i in own], [scores[i].double() for i in own], 5, 4
        )
        if labels and difference > 0:
            text, nothing = "", nothing + 1
        assert found["answer"] == text and len(found["nbest"]) <= 5 + len(labels)
        if labels:
            assert found["no_answer"] == pytest.approx(1 / (1 + math.exp(-difference)), abs=1e-5)
        if text:
            assert item.context[found["start"] : found["end"]] == text
    assert bool(nothing) == bool(labels) and nothing < 50


def test_a_question_that_leaves_too_little_room_is_refused(model):
    peer = Questions(SpanAnswers(("",), stride=8), model, 16)
    with pytest.raises(UnifiedError, match="item 1: sequences of 16 tokens leave no room for more than 8 of"):
        peer.features([QuestionItem("1", "w1 w2 w3 w4 w5", "w1 w2", (Answer("w1", 0),))])
    with pytest.raises(UnifiedError, match="item 2: the peer knows no conversations"):
        peer.features([QuestionItem("2", "w1", "w1 w2", (), choice="yes")])


def test_batches_are_those_that_fairseq_trains_on(model, tmp_path):
    """Two epochs of 45 items in batches of 8: the same items in the same order."""
    from fairseq.data.iterators import EpochBatchIterator

    import_bert(model, tmp_path / "start")
    start, items = Start.of(tmp_path / "start"), texts(45, np.random.default_rng(7))
    encoded = Classification.of(items).encode(items, Codec(start.tokenizer, start.vocabulary, 32))
    found = batches(len(items), 8, seed=11)
    for epoch in (1, 2):
        data = ItemFairseqDataset(
            encoded, False, None, start.vocabulary.special, "train", "classification", TrainingOrder(11)
        )
        data.set_epoch(epoch)
        parts = data.batch_by_size(data.ordered_indices(), max_sentences=8)
        iterator = EpochBatchIterator(data, data.collater, parts, seed=11, epoch=epoch)
        for sample, members in zip(iterator.next_epoch_itr(shuffle=True), islice(found, len(parts)), strict=True):
            assert sample["id"].tolist() == members.tolist()


def test_ours_takes_the_same_steps(model, tmp_path):
    """Without dropout and with one head to start from, losses and gradients stay equal over twelve updates.

    The decay of weights is off, since there it spares biases, and epsilon is theirs.
    """
    import_bert(model, tmp_path / "start")
    start, items = Start.of(tmp_path / "start"), texts(40, np.random.default_rng(10))
    task = replace(Classification.of(items), dropout=0.0)
    config = replace(start.config, dropout=0.0, attention_dropout=0.0)
    peer = Texts(task, model, 24)
    features = peer.features(items)
    theirs = peer.kind.from_pretrained(model, num_labels=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    ours = UnderstandingModel(config, {"classification": task.head(config)})
    saved = load_checkpoint(start.checkpoint)["model"]
    state = {name.removeprefix("core."): value for name, value in saved.items() if "fingerprint" not in name}
    load_parameters(ours, with_pooler(state, ours), ours.head_parts, ("token_head.", "next_sentence_head."))
    ours.heads["classification"].output.load_state_dict(theirs.classifier.state_dict())
    training = Training(batch_size=8, learning_rate=1e-3, weight_decay=0.0)
    encoded = task.encode(items, Codec(start.tokenizer, start.vocabulary, 24))
    optimizer = OnePassAdamW(ours.parameters(), lr=1e-3, eps=1e-8, weight_decay=0.0, fused=True)
    losses = []
    for number, members in enumerate(islice(batches(len(items), 8, seed=2), 12)):
        _, batch, reading = assembled(encoded, members, 24, start.vocabulary.special.pad)
        loss = task.loss(ours(batch, reading, "classification"), reading)
        losses.append(float(loss.total / loss.count))
        ours.zero_grad()
        (loss.total / loss.count).backward()
        nn.utils.clip_grad_norm_(ours.parameters(), 1.0)
        # Rises over one update in ten of twelve, then falls.
        optimizer.param_groups[0]["lr"] = 1e-3 * (0 if number == 0 else (12 - number) / 11)
        optimizer.step()
    found = []

    class Watched(nn.Module):
        def forward(self, **batch):
            output = theirs(**batch)
            found.append(output.loss.item())
            return output

    watched = Watched()
    watched.theirs = theirs
    train(watched, features.inputs, peer.collate, training, 12, 2, tmp_path / "state.pt")
    assert max(losses) - min(losses) > 0.05 and found == pytest.approx(losses, abs=2e-5)


def test_an_interrupted_training_ends_as_one_that_was_not(model, tmp_path, monkeypatch):
    monkeypatch.setattr("training_loop.KEPT", 0.0)
    items = texts(30, np.random.default_rng(12))
    peer = Texts(Classification.of(items), model, 32)
    features, training = peer.features(items), Training(batch_size=8, learning_rate=1e-3)
    models, calls = [], []
    for stop in (99, 5):
        torch.manual_seed(4)
        models.append(peer.model())

        def collate(inputs, stop=stop):
            calls.append(len(inputs))
            if len(calls) == stop:
                raise KeyboardInterrupt
            return peer.collate(inputs)

        arguments = (features.inputs, collate, training, 7, 1, tmp_path / f"{stop}.pt")
        calls.clear()
        if stop < 7:
            with pytest.raises(KeyboardInterrupt):
                train(models[-1], *arguments)
            models[-1] = peer.model()  # another head, which the snapshot replaces
        spent = train(models[-1], *arguments)
        assert (spent.updates, spent.examples) == (7, sum(map(len, islice(batches(30, 8, seed=1), 7))))
    for one, other in zip(models[0].state_dict().values(), models[1].state_dict().values(), strict=True):
        assert torch.equal(one, other)
    with pytest.raises(UnifiedError, match="of a training with other settings"):
        train(models[1], *arguments[:3], 8, 1, tmp_path / "5.pt")


def test_biases_and_norms_do_not_decay(model, tmp_path):
    """With gradients of 0 decay alone moves parameters: by the rates' sum times the decay."""
    items = texts(8, np.random.default_rng(13))
    peer = Texts(Classification.of(items), model, 32)
    built = peer.model()
    for parameter in built.parameters():
        nn.init.constant_(parameter, 0.5)
        parameter.register_hook(torch.zeros_like)
    training = Training(batch_size=8, learning_rate=1e-2, weight_decay=0.5, warmup=0.5)
    train(built, peer.features(items).inputs, peer.collate, training, 4, 1, tmp_path / "state.pt")
    factor = math.prod(1 - 0.5 * 1e-2 * rate for rate in (0, 0.5, 1, 0.5))
    for name, parameter in built.named_parameters():
        kept = name.endswith("bias") or "LayerNorm" in name
        assert torch.allclose(parameter, torch.tensor(0.5 if kept else 0.5 * factor), rtol=1e-5), name
