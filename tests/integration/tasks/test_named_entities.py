"""Named entities from annotations to entity-aware attention [ANNA, table 8]: pre-training, fine-tuning, refusals."""

import json

import numpy as np
import pytest
import torch

from fairseq_plugins.tasks.unified_lm import UnifiedLMTask, UnifiedLMTaskConfig
from tests.support import fairseq_runs as fairseq
from tests.support.annotators import PatternSource
from tests.support.corpora import random_documents, raw_text, write
from tests.support.task_folders import WORDS, language_model, tokenizer, vocabulary
from unified import load
from unified.cli import main
from unified.corpus.prepare import Settings, prepare
from unified.corpus.readers import DocumentCorpus
from unified.corpus.tokenizer_source import TokenizerSource
from unified.data.collate import collate
from unified.data.example import Examples
from unified.data.text import Text
from unified.errors import UnifiedError
from unified.generation import SCHEMES, CachedDecoder
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.objectives.anna import Anna
from unified.tasks.heads import Classification, Tagging
from unified.tasks.heads.items import TextItem, WordsItem, text_item, write_items
from unified.tasks.heads.named_entities import annotated
from unified.tasks.heads.questions import QuestionItem, question_item
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.prediction import Predictor

ENTITY = "self,entity,feed_forward"


class Capitals:
    """An annotator whose entities are runs of words that begin with W; remembers how often it was called."""

    description = {"pipeline": "capitals"}

    def __init__(self):
        self.calls = 0

    def __call__(self, texts):
        self.calls += 1
        found = []
        for number, text in enumerate(texts):
            start = 0
            for word in text.split(" "):
                if word[:1] == "W":
                    found.append((number, start, start + len(word)))
                start += len(word) + 1
        return {"entities": np.array(found, dtype=np.int64).reshape(-1, 3)}


CAPITALS = [word.upper() for word in WORDS]


def codec(longest=32, **changes):
    return Codec(tokenizer(*CAPITALS), vocabulary(*CAPITALS), longest, **{"marks_entities": True, **changes})


def marked(example, known) -> list[str]:
    """Symbols of the tokens that are marked."""
    return [known.vocabulary.symbols[token] for token in example.tokens[example.entities]]


# Pre-training


def test_anna_marks_the_tokens_of_annotated_entities():
    """One by one by the definition, whatever is hidden; noun phrases and other settings change nothing of it."""
    special, rng = vocabulary().special, np.random.default_rng(0)
    objective = Anna(mark_entities=True)
    assert set(objective.annotations) == {"noun_phrases", "entities"}
    for _ in range(50):
        length = int(rng.integers(5, 60))
        bounds = np.sort(rng.choice(length + 1, 4, replace=False)).reshape(2, 2)
        text = Text(
            rng.integers(4, 30, length), special, word_starts=np.ones(length, dtype=bool),
            spans={"noun_phrases": np.array([[0, 3]]), "entities": bounds},
        )  # fmt: skip
        example = objective(text, rng)
        inside = {1 + index for start, stop in bounds.tolist() for index in range(start, stop)}  # CLS stands in front
        assert np.flatnonzero(example.entities).tolist() == sorted(inside)
        assert not example.token_types.any(), "entities are no segments"
        assert Anna()(text, rng).entities is None


def examples_of(marks, rng):
    special = vocabulary().special
    made = []
    for spans in marks:
        text = Text(rng.integers(4, 30, 9), special, word_starts=np.ones(9, dtype=bool), spans={"entities": spans})
        made.append(Anna(scheme="token", mark_entities=True)(text, rng))
    return made


def test_marks_go_with_their_tokens_into_packed_rows():
    rng = np.random.default_rng(1)
    first, second, third = examples_of([np.array([[0, 2]]), np.empty((0, 2), int), np.array([[4, 9]])], rng)
    batch = collate([[first, second], [third]], 25, ("anna",), 1)
    expected = np.zeros((2, 25), dtype=bool)
    expected[0, 1:3] = expected[1, 5:10] = True
    assert batch.entities.tolist() == expected.tolist()
    assert batch.to("cpu").entities is not None and "entities" in batch.tensors()
    turned = Examples.joined([Examples.of([first, second]), Examples.of([third])], np.array([2, 0, 1])).split()
    for one, other in zip(turned, (third, first, second), strict=True):
        assert one.entities.tolist() == other.entities.tolist() and one.tokens.tolist() == other.tokens.tolist()
    plain = Anna(scheme="token")(Text(np.arange(4, 10), vocabulary().special), rng)
    silent = collate([[first, plain]], None, ("anna",), 1)
    assert silent.entities is None and "entities" not in silent.tensors(), "one that does not say silences the batch"


def entity_model(**changes):
    torch.manual_seed(0)
    shape = {"layers": 2, "width": 32, "heads": 2, "sublayers": ENTITY, "initializer_range": 0.3, "dropout": 0.0}
    return UnifiedModel.for_language(TransformerConfig(vocabulary_size=len(vocabulary()), **shape | changes)).eval()


@torch.no_grad()
def test_the_model_reads_marks_and_not_token_types():
    """With the table of types at zero a second segment changes nothing, and marks do."""
    model, rng = entity_model(), np.random.default_rng(2)
    model.transformer.embeddings.token_types.weight.zero_()
    (example,) = examples_of([np.array([[2, 5]])], rng)
    batch = collate([[example]], None, ("anna",), 1)
    states = model.hidden(batch)
    inputs = batch.tokens, batch.positions
    segments = model.transformer(*inputs, torch.ones_like(batch.tokens), batch.mask, entities=batch.entities)
    torch.testing.assert_close(segments, states)
    unmarked = model.transformer(*inputs, batch.token_types, batch.mask, entities=torch.zeros_like(batch.entities))
    assert (unmarked - states).abs().amax(-1).min() > 1e-3, "every token sees an entity, or is one"
    with pytest.raises(UnifiedError, match="does not say which tokens lie within named entities"):
        model.transformer(*inputs, batch.token_types, batch.mask)


def test_a_model_without_the_sublayer_has_nothing_more_to_carry():
    plain = collate([[Anna(scheme="token")(Text(np.arange(4, 10), vocabulary().special), np.random.default_rng(0))]],
                    None, ("anna",), 1)  # fmt: skip
    assert plain.entities is None
    states = entity_model(sublayers="self,feed_forward").hidden(plain)
    assert torch.isfinite(states).all()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Documents with entities and noun phrases, ``data``, and the same without entities, ``bare``."""
    folder = tmp_path_factory.mktemp("annotated")
    text = write(folder / "a.txt", raw_text(random_documents(60)))
    for name, kinds in (("data", ("noun_phrases", "entities")), ("bare", ("noun_phrases",))):
        settings = Settings(
            DocumentCorpus((text,)),
            valid_share=0.1,
            tokenizer=TokenizerSource("bpe", vocabulary_size=300),
            annotation=PatternSource(kinds, "patterns"),
        )
        prepare(settings, folder / name)
    return folder


def settle(path, objectives, **model):
    """Raises what fairseq-train would be refused with before it builds the model, or loads data."""
    config = UnifiedLMTaskConfig(
        data=str(path), objectives=objectives, tokens_per_sample=64, max_tokens=None, seed=1,
        best_checkpoint_metric="loss", maximize_best_checkpoint_metric=False,
    )  # fmt: skip
    from argparse import Namespace
    from dataclasses import asdict

    from omegaconf import OmegaConf

    task = UnifiedLMTask.setup_task(Namespace(**vars(config)))
    shape = {name: value for name, value in asdict(TransformerConfig()).items() if name != "vocabulary_size"}
    cfg = OmegaConf.create({**shape, "writes": "auto", "token_types": 2, **model})
    try:
        task.settle(cfg)
    except UnifiedError as error:
        return str(error)
    return cfg.writes


def test_objectives_and_models_that_do_not_agree_on_entities_are_refused_before_training(data):
    folder = data / "data"
    says = "objective anna does not say; anna(mark_entities=True) does"
    assert says in settle(folder, "anna", sublayers=ENTITY)
    assert "objective bert does not say" in settle(folder, "anna(mark_entities=True),bert", sublayers=ENTITY)
    assert "which no attention of the model reads" in settle(folder, "anna(mark_entities=True)")
    assert settle(folder, "anna(mark_entities=True)", sublayers=ENTITY) == "nothing", "it does not write"


def test_entity_aware_pretraining_learns_and_what_it_lacks_is_named(data, tmp_path):
    """fairseq-train from annotations to a checkpoint, which neither generates nor fills masks without entities."""
    arguments = ("--arch", "anna_tiny", "--sublayers", ENTITY, "--objectives", "anna(mark_entities=True)")
    refused = fairseq.train(data / "bare", tmp_path / "none", *arguments, "--batch-size", 8, check=False)
    fairseq.assert_refused(refused, "needs the annotation entities, which the data do not have")
    result = fairseq.train(data / "data", tmp_path, *arguments, "--batch-size", 8, "--max-epoch", 4, "--lr", 3e-3)
    rows = fairseq.logged(result.stdout + result.stderr, "train")
    assert float(rows[-1]["train_anna_loss"]) < float(rows[0]["train_anna_loss"]) - 0.3
    lm = load(tmp_path / "checkpoint_last.pt", data=data / "data")
    for ask in (lambda: lm.generate(["ab"]), lambda: lm.score(["ab"], ["cd"])):
        with pytest.raises(UnifiedError, match="it does not generate or score texts"):
            ask()
    with pytest.raises(UnifiedError, match="this input does not say which tokens lie within named entities"):
        lm.fill_mask("ab <mask> cd")
    with pytest.raises(UnifiedError, match="it does not generate or score texts"):
        CachedDecoder(lm.model, lm.special, SCHEMES["left_to_right"])


# Fine-tuning


def words_of(rng, count):
    return " ".join(rng.choice([*WORDS, *CAPITALS], count))


def test_marks_of_pairs_of_texts_are_cut_with_them():
    """The tokens that are marked are the capitals that are left; those of the second text are no entities by that."""
    rng, known = np.random.default_rng(3), codec(17)
    items = [TextItem(str(i), words_of(rng, 12), words_of(rng, 9) if i % 2 else None, "a") for i in range(40)]
    task = Classification(labels=("a", "b"))
    examples = task.encode(annotated(items, Capitals()), known).examples
    for example in examples:
        symbols = [known.vocabulary.symbols[token] for token in example.tokens]
        assert marked(example, known) == [symbol for symbol in symbols if symbol[0] == "W"]
    assert any((example.token_types[~example.entities] == 1).any() for example in examples)
    plain = task.encode(items, codec(17, marks_entities=False)).examples
    for example, other in zip(examples, plain, strict=True):
        assert example.tokens.tolist() == other.tokens.tolist() and other.entities is None


@pytest.mark.parametrize("passage_first", [False, True])
@pytest.mark.parametrize("cls_last", [False, True])
def test_marks_of_windows_of_a_passage_stand_at_their_tokens(cls_last, passage_first):
    rng, known = np.random.default_rng(4), codec(24, cls_last=cls_last)
    items = [
        QuestionItem(str(i), words_of(rng, 7), words_of(rng, 40), history=words_of(rng, 9) if i % 2 else None)
        for i in range(20)
    ]
    task = SpanAnswers(max_query=10, stride=6, passage_first=passage_first)
    encoded = task.encode(annotated(items, Capitals()), known)
    assert len(encoded.examples) > 60
    for example in encoded.examples:
        symbols = [known.vocabulary.symbols[token] for token in example.tokens]
        assert marked(example, known) == [symbol for symbol in symbols if symbol[0] == "W"]


def test_an_annotator_is_asked_once_for_equal_texts_and_given_entities_stay():
    annotator = Capitals()
    named = TextItem("0", "W1 w2", named_entities={"text": ((3, 5),)})
    found = annotated([named, TextItem("1", "W3 w4", "w1 W5"), TextItem("2", "W3 w4")], annotator)
    assert [item.named_entities for item in found] == [
        {"text": ((3, 5),)}, {"text": ((0, 2),), "second": ((3, 5),)}, {"text": ((0, 2),)},
    ]  # fmt: skip
    assert annotator.calls == 1


@pytest.mark.parametrize(
    "entities, says",
    [
        ({"text": [[0, 2]]}, "must be an object with a list for each of text, second"),
        ({"text": [[0, 2]], "second": [], "third": []}, "for each of text, second"),
        ([[0, 2]], "for each of text, second"),
        ({"text": [[0, 6]], "second": []}, "of 'text' must be a list of \\[start, stop\\] within the text"),
        ({"text": [], "second": [[2, 2]]}, "of 'second' must be"),
        ({"text": [[True, 2]], "second": []}, "of 'text' must be"),
    ],
)
def test_entities_of_an_item_are_checked(entities, says):
    fields = {"text": "W1 w2", "second": "w3", "label": "a", "named_entities": entities}
    with pytest.raises(UnifiedError, match=says):
        text_item(fields, 1, True)


def test_entities_of_items_are_read_from_files_as_they_are_written(tmp_path):
    question = {"question": "w1", "context": "W1 w2", "named_entities": {"question": [], "context": [[0, 2]]}}
    assert question_item(question, 1, False).named_entities == {"question": (), "context": ((0, 2),)}
    items = annotated([TextItem("1", "W3 w4", "w1", "a"), TextItem("2", "w4 W3", None, "b")], Capitals())
    write_items(tmp_path / "a.jsonl", items)
    assert Classification.read(tmp_path / "a.jsonl") == items


def understanding(task, known):
    torch.manual_seed(0)
    shape = {"layers": 2, "width": 32, "heads": 2, "sublayers": ENTITY, "initializer_range": 0.3}
    config = TransformerConfig(vocabulary_size=len(known.vocabulary), **shape)
    return UnifiedModel.for_tasks(config, {"task": task.head(config)}).eval()


def test_predictions_read_entities_and_refuse_items_without():
    """An annotator's entities are those that items name; other entities give other probabilities."""
    task, known = Classification(labels=("a", "b")), codec()
    model = understanding(task, known)
    items = [TextItem(str(i), words_of(np.random.default_rng(i), 8)) for i in range(6)]
    with pytest.raises(UnifiedError, match="item 0 has no 'named_entities'.* --spacy"):
        list(Predictor(model, "task", task, known).predict(items))
    found = list(Predictor(model, "task", task, known, annotator=Capitals()).predict(items))
    assert list(Predictor(model, "task", task, known).predict(annotated(items, Capitals()))) == found
    none = [TextItem(item.id, item.text, named_entities={"text": ()}) for item in items]
    differences = [
        abs(one["probabilities"]["a"] - other["probabilities"]["a"])
        for one, other in zip(found, Predictor(model, "task", task, known).predict(none), strict=True)
    ]
    assert min(differences) > 1e-4
    with pytest.raises(UnifiedError, match="no attention of the model reads named entities"):
        Predictor(model, "task", task, codec(marks_entities=False), annotator=Capitals())


def test_rows_read_a_few_at_a_time_keep_their_marks():
    task, known = Classification(labels=("a", "b")), codec()
    model = understanding(task, known)
    model.tokens_at_once = 20
    items = annotated([TextItem(str(i), words_of(np.random.default_rng(i), 8)) for i in range(6)], Capitals())
    encoded = task.encode(items, known)
    with torch.no_grad():
        batch = collate([[example] for example in encoded.examples], None, ("task",), 1)
        one_by_one = [model.scores(collate([[e]], None, ("task",), 1), {}, "task") for e in encoded.examples]
        torch.testing.assert_close(model.scores(batch, {}, "task"), torch.cat(one_by_one), atol=1e-5, rtol=1e-5)


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    pytest.importorskip("spacy")
    from tests.support import spacy_pipelines

    folder = tmp_path_factory.mktemp("pipeline") / "names"
    return spacy_pipelines.save(folder, "entity_ruler", entities=("W1", "W2 W3"))


def test_finetune_and_predict_find_entities_by_a_pipeline(tmp_path, capsys, pipeline):
    """Trained, scored and asked again: the same predictions by ``--spacy`` and from the items that were written."""
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    for split, count in (("train", 40), ("valid", 12)):
        texts = [words_of(rng, 6) for _ in range(count)]
        items = [TextItem(str(i), text, None, "yes" if "W1" in text else "no") for i, text in enumerate(texts)]
        write_items(tmp_path / "data" / f"{split}.jsonl", items)
    language_model(tmp_path / "model", *CAPITALS, sublayers=ENTITY)
    command = [
        "finetune", "classification", "--data", tmp_path / "data", "--init", tmp_path / "model", "--output",
        tmp_path / "run", "--epochs", 1, "--max-length", 16,
    ]  # fmt: skip

    def unified(*words):
        capsys.readouterr()
        status = main([str(word) for word in words])
        return status, capsys.readouterr()

    status, said = unified(*command)
    assert status == 2 and "item 0 has no 'named_entities'" in said.err
    status, said = unified(*command, "--spacy", pipeline)
    assert status == 0, said.err
    manifest = json.loads((tmp_path / "run" / "data" / "manifest.json").read_text())
    assert manifest["annotation"]["kinds"] == ["entities"]
    rows = [json.loads(line) for line in (tmp_path / "run" / "data" / "valid.jsonl").read_text().splitlines()]
    assert sum(len(row["named_entities"]["text"]) for row in rows) > 0
    for row in rows:
        found = [row["text"][start:stop] for start, stop in row["named_entities"]["text"]]
        assert found.count("W1") == row["text"].split().count("W1")
    scored = (tmp_path / "run" / "predictions.valid.jsonl").read_text()
    predict = ["predict", "classification", "--model", tmp_path / "run"]
    status, said = unified(*predict, tmp_path / "run" / "data" / "valid.jsonl")
    assert status == 0 and said.out == scored
    status, said = unified(*predict, tmp_path / "data" / "valid.jsonl", "--spacy", pipeline)
    assert status == 0 and said.out == scored
    status, said = unified(*predict, tmp_path / "data" / "valid.jsonl")
    assert status == 2 and "has no 'named_entities'" in said.err
    with pytest.raises(UnifiedError, match="has no 'named_entities'"):
        load(tmp_path / "run").classify(["w1 W1"])
    (answer,) = load(tmp_path / "run", annotator=Capitals()).classify(["w1 W1"])
    assert set(answer["probabilities"]) == {"yes", "no"}


def test_what_cannot_mark_entities_is_refused_before_work(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    for split in ("train", "valid"):
        write_items(tmp_path / "data" / f"{split}.jsonl", [WordsItem("0", ("w1", "w2"), ("O", "B-x"))])
    language_model(tmp_path / "model", sublayers=ENTITY)
    language_model(tmp_path / "plain")

    def refused(*words):
        capsys.readouterr()
        common = ["--data", tmp_path / "data", "--output", tmp_path / "run", "--dry-run"]
        assert main([str(word) for word in ("finetune", words[0], *common, *words[1:])]) == 2
        return capsys.readouterr().err

    says = "items of the head tagging cannot say where named entities are"
    assert says in refused("tagging", "--init", tmp_path / "model")
    (tmp_path / "pairs").mkdir()
    for split in ("train", "valid"):
        (tmp_path / "pairs" / f"{split}.jsonl").write_text('{"source": "w1 w2", "target": "w3"}\n', encoding="utf-8")
    pairs = ("texts", "--data", tmp_path / "pairs", "--init", tmp_path / "model")
    assert "it does not generate or score texts" in refused(*pairs)
    assert "no attention of the model reads named entities" in refused(
        "tagging", "--init", tmp_path / "plain", "--spacy", "x"
    )
    assert "give --spacy PIPELINE too" in refused("tagging", "--init", tmp_path / "plain", "--spacy-code", "x")
    assert not (tmp_path / "run").exists()
    model = understanding(Tagging(labels=("O", "B-x")), codec())
    encoded = Tagging(labels=("O", "B-x")).encode([WordsItem("0", ("w1", "w2"))], codec())
    with pytest.raises(UnifiedError, match="does not say which tokens lie within named entities"):
        model.scores(collate([encoded.examples], None, ("task",), 1), {}, "task")
