"""Models that answer or write together: the mean by hand, one model twice, and models that do not belong together."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.integration.cli.test_task_commands import refused, said
from tests.support.checkpoint_samples import checkpoint, data_folder
from tests.support.task_folders import WORDS, language_model
from tests.support.tiny_models import eight_symbols, next_logits
from tests.support.understanding_runs import UNUSED
from tests.support.untrained_models import write_found_threshold
from tests.unit.generation.test_search import EIGHT
from tests.unit.generation.test_search import WORDS as EIGHT_WORDS
from tests.unit.tasks.heads.test_choice import random_item as choice_item
from tests.unit.tasks.heads.test_relation import random_item as relation_item
from tests.unit.tasks.heads.test_span_decoding import every_span, sigmoid
from unified import TaskModel, UnifiedLM, load
from unified.checkpoints import load_checkpoint
from unified.checkpoints.files import save
from unified.errors import UnifiedError
from unified.generation import SCHEMES, GenerationConfig, generate, score
from unified.generation.ensemble import EnsembleDecoder
from unified.model import UnifiedModel
from unified.model.span_heads import BEAMS, Beams, SpanScores
from unified.tasks.finetuning import Start
from unified.tasks.heads import Classification, Regression, Relation, Tagging
from unified.tasks.heads.batches import assembled
from unified.tasks.heads.choice import Choice
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.items import TextItem, WordsItem, write_items
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tokenization.wordpiece import WordPieceTokenizer


def model(folder: Path, seed: int, tasks: dict, longest: int = 24, **changes) -> Path:
    """A model with random heads, whose probabilities differ clearly from seed to seed."""
    language_model(folder, *UNUSED, initializer_range=0.3, **changes)
    content, config = load_checkpoint(folder / "checkpoint_last.pt"), Start.of(folder).config
    torch.manual_seed(seed)
    core = UnifiedModel.for_tasks(config, {name: task.head(config) for name, task in tasks.items()})
    for parameter in core.parameters():  # biases too
        parameter.data += 0.1 * torch.randn_like(parameter)
    kept = {name: {"head": task.name, "settings": asdict(task)} for name, task in tasks.items()}
    content["extra_state"]["UnifiedUnderstandingTask"] = kept
    content["cfg"]["task"]["tokens_per_sample"] = longest
    content["model"] = {f"core.{name}": torch.clone(value) for name, value in core.state_dict().items()}
    save(content, folder / "checkpoint_last.pt")
    return folder


def text_items(rng):
    return [TextItem(str(i), " ".join(rng.choice(WORDS, rng.integers(2, 9)))) for i in range(30)]


def word_items(rng):
    return [WordsItem(str(i), tuple(rng.choice(WORDS, rng.integers(2, 30)).tolist())) for i in range(30)]


def question_items(rng):
    """Passages of several windows."""
    items = []
    for i in range(30):
        context = " ".join(rng.choice(WORDS, rng.integers(1, 40)))
        items.append(QuestionItem(str(i), " ".join(rng.choice(WORDS, 3)), context))
    return items


RELATIONS = ("a", "b", "no_relation")
TYPES = ("OBJ=P", "OBJ=Q", "SUBJ=P", "SUBJ=Q")
TASKS = {
    "classification": (Classification(("a", "b", "c")), text_items),
    "regression": (Regression(), text_items),
    "tagging": (Tagging(("O", "B-X", "I-X")), word_items),
    "features": (Tagging(("O", "B-X", "I-X"), features="sum_all", recurrent_width=8), word_items),
    "choice": (Choice(), lambda rng: [choice_item(i, rng) for i in range(30)]),
    "markers": (Relation(RELATIONS), lambda rng: [relation_item(i, rng) for i in range(30)]),
    "types": (Relation(RELATIONS, TYPES, "types"), lambda rng: [relation_item(i, rng) for i in range(30)]),
    "bert": (SpanAnswers(("",), stride=6, max_answer=5, nbest=8), question_items),
    "unilm": (SpanAnswers(("", "yes"), "unilm", stride=6, max_answer=5, nbest=8), question_items),
    "xlnet": (SpanAnswers(("",), "xlnet", stride=6, max_answer=5, nbest=8), question_items),
}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Folders of three models of each kind, made when they are asked for."""
    folder, made = tmp_path_factory.mktemp("ensembles"), {}

    def of(kind: str) -> list[Path]:
        if kind not in made:
            task, changes = TASKS[kind][0], {"positions": "relative"} if kind == "xlnet" else {}
            made[kind] = [model(folder / kind / str(seed), seed, {"head": task}, **changes) for seed in range(3)]
        return made[kind]

    return of


def predictions(handle: UnifiedLM, items) -> list[dict]:
    return list(handle.predictor().predict(items))


def assert_near(found, expected, tolerance=2e-6):
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_near(found[key], expected[key], tolerance)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_near(one, other, tolerance)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, abs=tolerance)
    else:
        assert found == expected


@pytest.mark.parametrize("kind", TASKS)
def test_one_model_twice_answers_as_once(models, kind):
    items = TASKS[kind][1](np.random.default_rng(1))
    folder = models(kind)[0]
    alone = predictions(load(folder), items)
    assert_near(predictions(TaskModel.ensemble([folder, folder]), items), alone)
    assert predictions(TaskModel.ensemble([folder]), items) == alone
    others = predictions(TaskModel.ensemble(models(kind)), items)
    assert others != alone


def own_scores(handle, item):
    """What the only model makes of one item, read alone: encoded, members, scores, reading."""
    predictor = handle.predictor()
    encoded = predictor.task.encode([item], predictor.codec)
    members, batch, reading = assembled(encoded, np.arange(len(encoded.examples)), None, 1)
    return encoded, members, predictor.model.scores(batch, reading, predictor.head), reading


@pytest.mark.parametrize("kind", ["classification", "markers", "types", "choice"])
def test_probabilities_are_the_mean_of_the_models_own(models, kind):
    items = TASKS[kind][1](np.random.default_rng(2))
    each = [predictions(load(folder), items) for folder in models(kind)]
    changed = 0
    for number, one in enumerate(predictions(TaskModel.ensemble(models(kind)), items)):
        rows = [found[number]["probabilities"] for found in each]
        if kind == "choice":
            mean = np.mean(rows, axis=0)
            assert one["probabilities"] == pytest.approx(mean.tolist(), abs=2e-6)
            assert mean[one["label"]] == pytest.approx(mean.max(), abs=2e-6)
        else:
            mean = {label: np.mean([row[label] for row in rows]) for label in rows[0]}
            assert one["probabilities"] == pytest.approx(mean, abs=2e-6)
            assert mean[one["label"]] == pytest.approx(max(mean.values()), abs=2e-6)
        changed += one["label"] != each[0][number]["label"]
    assert changed


def test_numbers_are_the_mean(models):
    items = text_items(np.random.default_rng(3))
    each = [predictions(load(folder), items) for folder in models("regression")]
    for number, one in enumerate(predictions(TaskModel.ensemble(models("regression")), items)):
        assert one["label"] == pytest.approx(np.mean([found[number]["label"] for found in each]), abs=1e-5)


@pytest.mark.parametrize("kind", ["tagging", "features"])
@torch.no_grad()
def test_tags_have_the_highest_mean_probability(models, kind):
    items = word_items(np.random.default_rng(4))
    handles = [load(folder) for folder in models(kind)]
    found = predictions(TaskModel.ensemble(models(kind)), items)
    alone = predictions(handles[0], items)
    for item, one in zip(items, found, strict=True):
        rows = [own_scores(handle, item)[2].softmax(-1) for handle in handles]
        mean = torch.stack(rows).mean(0)
        assert one["tags"] == [TASKS[kind][0].labels[i] for i in mean.argmax(-1)]
    assert [one["tags"] for one in found] != [one["tags"] for one in alone]


def beams_by_hand(start, ends, sizes):
    """A search takes each example's best starts by mean score, then for each start the best ends by mean score."""
    starts, best_ends, scores = [], [], []
    for own, size in zip(start.split(sizes.tolist()), sizes.tolist(), strict=True):
        log = torch.full((max(size, BEAMS),), -torch.inf)
        log[:size] = own.log_softmax(-1)
        starts.append(log.topk(BEAMS))
    for k in range(BEAMS):
        tried = torch.stack([top.indices[k] for top in starts])
        of_ends = ends(torch.minimum(tried, sizes - 1))
        rows = []
        for own, size, top in zip(of_ends.split(sizes.tolist()), sizes.tolist(), starts, strict=True):
            log = torch.full((max(size, BEAMS),), -torch.inf)
            log[:size] = own.log_softmax(-1)
            best = log.topk(BEAMS)
            rows.append((best.indices, top.values[k] + best.values))
        best_ends.append(torch.stack([row[0] for row in rows]))
        scores.append(torch.stack([row[1] for row in rows]))
    return Beams(torch.stack([top.indices for top in starts]), torch.stack(best_ends, 1), torch.stack(scores, 1))


@pytest.mark.parametrize("design", ["bert", "unilm", "xlnet"])
@torch.no_grad()
def test_answers_have_the_highest_mean_scores(models, design):
    """Means of the scores of starts and ends, and of the probabilities that there is none, by hand.

    XLNet's ends depend on starts: each model is asked for the ends behind the common starts, as in training.
    """
    items = question_items(np.random.default_rng(5))
    handles = [load(folder) for folder in models(design)]
    task, different = TASKS[design][0], 0
    found, alone = predictions(TaskModel.ensemble(models(design)), items), predictions(handles[0], items)
    for number, (item, one) in enumerate(zip(items, found, strict=True)):
        read = [own_scores(handle, item) for handle in handles]
        encoded, members, _, reading = read[0]
        sizes, each = reading["sizes"], [scores for _, _, scores, _ in read]
        start = torch.stack([scores.start for scores in each]).mean(0)
        end = beams = kinds = None
        if design == "xlnet":
            states = [_states(handle, item) for handle in handles]

            def ends(starts, states=states, reading=reading):
                gold = {**reading, "labels": torch.stack([starts, starts], 1)}
                return torch.stack([head.train()(own, gold).end for head, own in states]).mean(0)

            beams = beams_by_hand(start, ends, sizes)
            nothing = torch.stack([scores.answer_types.sigmoid() for scores in each]).mean(0).min()
        else:
            end = torch.stack([scores.end for scores in each]).mean(0)
            if design == "unilm":
                kinds = torch.stack([scores.answer_types.softmax(-1) for scores in each]).mean(0)
                nothing = kinds[:, 1].min()
        mean = SpanScores(start, end, kinds, beams)
        spans = every_span(task, design, encoded, members, range(len(members)), mean, sizes.numpy())
        texts = []
        for _, window, a, b in spans:
            offsets = encoded.notes[members[window]].offsets
            text = item.context[int(offsets[a, 0]) : int(offsets[b, 1])]
            texts += [text] if text not in texts else []
        if design == "bert":
            firsts = sizes.cumsum(0) - sizes + reading["cls"]
            nothing = sigmoid(float((start + end)[firsts].min()) - spans[0][0]) if spans else 1.0
        assert one["no_answer"] == pytest.approx(float(nothing), abs=1e-5)
        listed = [entry["text"] for entry in one["nbest"] if "start" in entry]
        assert listed == texts[: task.nbest]
        different += listed != [entry["text"] for entry in alone[number]["nbest"] if "start" in entry]
    assert different > 10


def _states(handle, item):
    """The head, and the states that it reads of one item."""
    predictor = handle.predictor()
    encoded = predictor.task.encode([item], predictor.codec)
    _, batch, _ = assembled(encoded, np.arange(len(encoded.examples)), None, 1)
    head = predictor.model.heads[predictor.head]
    return head, predictor.model.hidden(batch, output_indices=batch.targets["task"].output_indices[:, 0])


def test_the_threshold_is_the_mean_of_the_models_own(models, tmp_path, capsys):
    folders = models("bert")[:2]
    item = {"question": "w1", "context": "w1 w2 w3"}
    try:
        for folder, value in zip(folders, (0.2, 0.6), strict=True):
            write_found_threshold(folder, value)
        task = TaskModel.ensemble(folders).predictor().task
        assert task.threshold == pytest.approx(0.4) and task.threshold_found_on == "valid"
        (folders[1] / "results.json").unlink()
        task = TaskModel.ensemble(folders).predictor().task
        assert task.threshold == pytest.approx(0.35) and task.threshold_found_on is None
    finally:
        for folder in folders:
            (folder / "results.json").unlink(missing_ok=True)
    both = [word for folder in folders for word in ("--model", folder)]
    answers = [said(capsys, "predict", "span", json.dumps(item), *both, "--threshold", value) for value in (0, 1)]
    assert json.loads(answers[0][0])["answer"] == "" != json.loads(answers[1][0])["answer"]


def test_predict_asks_all_models(models, tmp_path, capsys):
    items, folders = text_items(np.random.default_rng(6)), models("classification")
    write_items(tmp_path / "items.jsonl", items)
    asked = [word for folder in folders for word in ("--model", folder)]
    lines = said(capsys, "predict", "classification", tmp_path / "items.jsonl", *asked)
    assert_near([json.loads(line) for line in lines], predictions(TaskModel.ensemble(folders), items))


def test_models_of_several_tasks_answer_together_task_by_task(tmp_path):
    tasks = {"one": Classification(("a", "b")), "two": Regression()}
    folders = [model(tmp_path / str(seed), seed, tasks) for seed in range(2)]
    items = text_items(np.random.default_rng(8))
    for head in tasks:
        each = [list(load(folder).predictor(head=head).predict(items)) for folder in folders]
        together = list(TaskModel.ensemble(folders).predictor(head=head).predict(items))
        assert together != each[0]
        for number, one in enumerate(together):
            if head == "two":
                assert one["label"] == pytest.approx(np.mean([found[number]["label"] for found in each]), abs=1e-5)


def test_models_that_do_not_belong_together_are_refused(models, tmp_path, capsys):
    first = models("classification")[0]
    unlike = {
        "the labels differ": {"head": Classification(("a", "d", "c"))},
        "types of head differ (regression and classification)": {"head": Regression()},
        "numbers of heads differ (2 and 1)": {"head": Classification(("a", "b", "c")), "more": Regression()},
    }
    for number, (says, tasks) in enumerate(unlike.items()):
        other = model(tmp_path / str(number), 1, tasks)
        message = refused(capsys, "predict", "classification", '{"text": "w1"}', "--model", first, "--model", other)
        assert f"{other} and {first} cannot answer together: {says}" in message and message.count("\n") <= 1
    shorter = model(tmp_path / "shorter", 1, {"head": TASKS["classification"][0]}, longest=20)
    with pytest.raises(UnifiedError, match=r"the lengths of sequences differ \(20 and 24\)"):
        TaskModel.ensemble([first, shorter])
    turned = model(tmp_path / "turned", 1, {"head": TASKS["classification"][0]}, positions="relative", token_types=3)
    with pytest.raises(UnifiedError, match="the orders of a sequence differ"):
        TaskModel.ensemble([first, turned])
    with pytest.raises(UnifiedError, match="vocabularies differ"):
        TaskModel.ensemble([first, _with_more_words(tmp_path / "more")])
    checkpoint(tmp_path / "writer.pt", data_folder(tmp_path / "pairs", pairs=True), str(tmp_path / "pairs"))
    for paths in ([first, tmp_path / "writer.pt"], [tmp_path / "writer.pt", first]):
        with pytest.raises(UnifiedError, match=f"{paths[1]} and {paths[0]} cannot answer together"):
            load(*paths)
    lowercase = model(tmp_path / "lowercase", 1, {"head": TASKS["classification"][0]})
    WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *UNUSED], lowercase=True).save(lowercase)
    with pytest.raises(UnifiedError, match="tokenizers differ"):
        TaskModel.ensemble([first, lowercase])
    with pytest.raises(UnifiedError, match="an ensemble needs at least one model"):
        TaskModel.ensemble([])
    with pytest.raises(UnifiedError, match="paths: expected a list"):
        TaskModel.ensemble(str(first))
    # Dropout changes no prediction.
    dropout = model(tmp_path / "dropout", 1, {"head": Classification(("a", "b", "c"), dropout=0.5)})
    TaskModel.ensemble([first, dropout])
    chains = [model(tmp_path / f"chains{i}", i, {"coreference": Coreference(hidden=8)}) for i in range(2)]
    with pytest.raises(UnifiedError, match="models of coreference cannot answer together"):
        TaskModel.ensemble(chains)


def _with_more_words(folder):
    language_model(folder, *UNUSED, "more")
    content, config = load_checkpoint(folder / "checkpoint_last.pt"), Start.of(folder).config
    task = TASKS["classification"][0]
    core = UnifiedModel.for_tasks(config, {"head": task.head(config)})
    kept = {"head": {"head": task.name, "settings": asdict(task)}}
    content["extra_state"]["UnifiedUnderstandingTask"] = kept
    content["cfg"]["task"]["tokens_per_sample"] = 24
    content["model"] = {f"core.{name}": torch.clone(value) for name, value in core.state_dict().items()}
    save(content, folder / "checkpoint_last.pt")
    return folder


# Writing


def mean_log_probs(members, scheme, row, text):
    rows = [next_logits(one.model, EIGHT, scheme, row, text).softmax(-1) for one in members]
    return torch.stack(rows).mean(0).log()


ROWS = torch.tensor([[5, 6, 7, 5, 2], [7, 7, 2, 1, 1], [6, 2, 1, 1, 1]])


@pytest.mark.parametrize("scheme", SCHEMES)
@torch.no_grad()
def test_a_wide_beam_of_an_ensemble_finds_every_text_in_the_right_order(scheme):
    """Each token has the mean of its probabilities by full forward passes of each model."""
    members = [eight_symbols(scheme, seed) for seed in (0, 4)]
    together, count = EnsembleDecoder(members), sum(4**n for n in range(3))
    config = GenerationConfig(beam=count, nbest=count, max_length=2, min_length=0, lenpen=0.0)
    cut = SCHEMES[scheme].prompt
    for row, hypotheses in zip(ROWS, generate(together, ROWS, config), strict=True):
        expected, open_texts = {}, {(): 0.0}
        while open_texts:
            text, total = open_texts.popitem()
            log_probs = mean_log_probs(members, scheme, row, list(text))
            expected[text] = total + (0 if cut and len(text) == 2 else float(log_probs[EIGHT.separator]))
            if len(text) < 2:
                open_texts |= {(*text, word): total + float(log_probs[word]) for word in EIGHT_WORDS}
        found = {tuple(one.tokens.tolist()): one.score for one in hypotheses}
        assert found == pytest.approx(expected, abs=1e-4)
    given = torch.tensor([[5, 6, 2], [7, 2, 1], [2, 1, 1]])
    for row, target, values in zip(ROWS, given, score(together, ROWS, given), strict=True):
        for index, token in enumerate(target.tolist()):
            if token == EIGHT.pad:
                assert values[index] == 0
            else:
                by_hand = mean_log_probs(members, scheme, row, target[:index].tolist())[token]
                assert float(values[index]) == pytest.approx(float(by_hand), abs=1e-4)


def test_decoders_that_write_differently_do_not_write_together():
    with pytest.raises(UnifiedError, match="write in different ways"):
        EnsembleDecoder([eight_symbols("cloze"), eight_symbols("next")])


def test_language_models_write_together(tmp_path, capsys):
    known = data_folder(tmp_path / "pairs", pairs=True)
    for name in ("one", "two"):
        checkpoint(tmp_path / f"{name}.pt", known, str(tmp_path / "pairs"), max_positions=256)
    content = load_checkpoint(tmp_path / "two.pt")
    generator = torch.Generator().manual_seed(3)
    for name, value in content["model"].items():
        if value.is_floating_point():
            content["model"][name] = value + 0.1 * torch.randn(value.shape, generator=generator)
    save(content, tmp_path / "two.pt")
    paths = [tmp_path / "one.pt", tmp_path / "two.pt"]
    one, two = map(UnifiedLM.from_pretrained, paths)
    both, same = UnifiedLM.ensemble(paths), UnifiedLM.ensemble([paths[0], paths[0]])
    texts, targets = ["the cat", "a dog sat"], ["The cat", "A dog"]
    assert same.generate(texts, max_length=8) == one.generate(texts, max_length=8)
    for values, *each in zip(*(lm.score(texts, targets) for lm in (both, one, two)), strict=True):
        assert values == pytest.approx(np.log(np.exp(each).mean(0)).tolist(), abs=1e-4)
    for ask in (lambda: both.fill_mask("a <mask>"), lambda: both.fill_span("a <mask> b"), lambda: both.embed(["a"])):
        with pytest.raises(UnifiedError, match="asks a single model; this is an ensemble of 2"):
            ask()
    item = json.dumps({"source": "the cat"})
    asked = [word for path in paths for word in ("--model", path)]
    (line,) = said(capsys, "predict", "texts", item, *asked)
    assert json.loads(line)["text"]
    checkpoint(tmp_path / "next.pt", known, str(tmp_path / "pairs"), writes="next", max_positions=256)
    message = refused(capsys, "predict", "texts", item, "--model", paths[0], "--model", tmp_path / "next.pt")
    assert "decoding schemes differ (next and cloze)" in message


def test_answers_are_labelled_items_too(models):
    """Labels that are there change nothing: XLNet's head knows gold starts then."""
    items = question_items(np.random.default_rng(9))[:6]
    labelled = [QuestionItem(one.id, one.question, one.context, (Answer(one.context.split()[0], 0),)) for one in items]
    for design in ("bert", "xlnet"):
        together = TaskModel.ensemble(models(design))
        assert_near(predictions(together, labelled), predictions(together, items))
