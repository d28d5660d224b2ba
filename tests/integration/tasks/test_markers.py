"""Relation tasks with any tokenizer: markers that a model lacks are added, learnt, predicted with and exported."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers

from fairseq_plugins.models.unified_lm import UnifiedLMModel
from tests.support.published_models import published
from tests.support.task_folders import read_and_written
from tests.unit.tasks.heads.test_relation import TACRED, numbered_semeval
from unified import load, masks
from unified.checkpoints import load_checkpoint
from unified.checkpoints.trained import Trained, write
from unified.checkpoints.vocabularies import SCORED
from unified.cli import main
from unified.conversions.bert import export_bert, read_bert
from unified.conversions.export import Source
from unified.conversions.xlnet import export_xlnet
from unified.data.markers import marker_ids, markers_of, with_markers
from unified.data.vocabulary import Vocabulary
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.tasks.catalogue import task_named, with_changes, with_head
from unified.tasks.finetuning import Start
from unified.tasks.heads.entities import Entity
from unified.tasks.heads.items import write_items
from unified.tasks.heads.relation import RelationItem
from unified.tasks.jobs import job_of
from unified.tasks.prediction import Predictor
from unified.tokenization import Tokenizer, load_tokenizer, ordinary_symbols
from unified.tokenization.anna import train_anna
from unified.tokenization.sentencepiece_tokenizer import train_sentencepiece
from unified.tokenization.wordpiece import train_wordpiece

TEXT = [
    "the cat sat on a mat .",
    "a dog and a bird sang to the cat .",
    "Anna Berg leads the house of Rio in June .",
] * 20
WORDS = sorted({word for line in TEXT for word in line.split()})
TOKENIZERS = {
    "unigram": lambda: train_sentencepiece(TEXT, "unigram", 30),
    "bpe": lambda: train_sentencepiece(TEXT, "bpe", 50),
    "char": lambda: train_sentencepiece(TEXT, "char"),
    "wordpiece": lambda: train_wordpiece(TEXT),
    "anna": lambda: train_anna(TEXT),
}


def items(rng, count: int) -> list[RelationItem]:
    """Sentences whose first entity says the relation."""
    found = []
    for i in range(count):
        words = rng.choice(WORDS, 6).tolist()
        first, second = rng.permutation(6)[:2].tolist()
        label = bool(rng.integers(2))
        words[first] = ("cat", "dog")[label]
        pair = Entity(first, first + 1, ("P", "Q")[label]), Entity(second, second + 1, "P")
        found.append(RelationItem(str(i), tuple(words), pair, ("no_relation", "barks")[label]))
    return found


def data_of(folder, rng, count: int = 40):
    folder.mkdir()
    for split, size in (("train", count), ("valid", 8)):
        write_items(folder / f"{split}.jsonl", items(rng, size))
    return folder


def model_folder(kind: str, folder):
    """A model whose dictionary has no markers, with one of the tokenizers."""
    if kind in ("xlnet", "bert"):
        return published(kind, folder / "published").lm.folder
    tokenizer = TOKENIZERS[kind]()
    return new_model(tokenizer, Vocabulary(ordinary_symbols(tokenizer)), folder / "model")


def new_model(tokenizer: Tokenizer, vocabulary: Vocabulary, folder: Path) -> Path:
    torch.manual_seed(0)
    shape = {"layers": 1, "width": 16, "heads": 2, "max_positions": 80, "token_types": 2, "initializer_range": 0.1}
    config = TransformerConfig(vocabulary_size=len(vocabulary), **shape)
    folder.mkdir()
    tokenizer.save(folder)
    write(Trained(config, "nothing", UnifiedModel.for_language(config).state_dict(), vocabulary), folder)
    return folder


class Task:
    """What the fairseq model asks of its task."""

    def __init__(self, vocabulary: Vocabulary):
        self.special, self.target_dictionary = vocabulary.special, vocabulary


@pytest.mark.parametrize("head", ["relation", "relation(design='types')"])
@pytest.mark.parametrize("kind", [*TOKENIZERS, "xlnet", "bert"])
@torch.no_grad()
def test_every_tokenizer_gets_the_markers_it_lacks(tmp_path, kind, head):
    folder, data = model_folder(kind, tmp_path), data_of(tmp_path / "items", np.random.default_rng(0))
    start = Start.of(folder)
    task = task_named("relation")
    job = job_of(with_head(task, head), with_changes(task.training, max_length=40), start, tmp_path / "out")
    splits = read_and_written(job, data)
    assert str(start.checkpoint) in job.command(splits, 1, 0)
    made, tokenizer = Vocabulary.load(tmp_path / "out" / "data" / "dict.txt"), load_tokenizer(tmp_path / "out" / "data")
    added = [f"[unused{i}]" for i in range(1, 5 if head == "relation" else 4)]
    assert made.symbols == [*start.vocabulary.symbols, *added]
    # The checkpoint grows as it is loaded; every row that it has stays.
    task = job.understandings(splits)[0]
    config = start.config.with_vocabulary(len(made))
    core = UnifiedModel.for_tasks(config, {"relation": task.head(config)})
    saved = load_checkpoint(start.checkpoint)["model"]
    UnifiedLMModel(core, Task(made), "nothing").load_state_dict(saved)
    table, old = core.transformer.embeddings.tokens, saved["core.transformer.embeddings.tokens.weight"]
    assert torch.equal(table.weight[: len(old)], old)
    rows = table.weight[len(old) :]
    assert len(rows) == len(added) and 0.3 < rows.std() / config.initializer_range < 3
    assert table.left_out[len(old) :].all()
    # Sequences hold them around or in place of the entities, and no text does.
    codec = Codec.for_model(config, tokenizer, made, 40)
    ids = set(marker_ids(made, len(added), "nothing").tolist())
    for example in task.encode(splits["valid"], codec).examples:
        assert len(ids & set(example.tokens.tolist())) == (4 if head == "relation" else 2)
    text = " ".join([*added, *WORDS, "".join(added), f"{added[0]}cat"])
    assert not ids & set(made.encode(tokenizer.encode(text)).tolist())
    found = list(Predictor(core.eval(), "relation", task, codec).predict(splits["valid"]))
    assert [one["id"] for one in found] == [item.id for item in splits["valid"]]
    # Its folder serves as the start of another task, which finds what it needs.
    assert with_markers(made, len(added)) is made


@pytest.mark.parametrize(("kind", "reserve"), [("wordpiece", 6), ("wordpiece", 4), ("wordpiece", 3), ("unigram", 5)])
@torch.no_grad()
def test_reserved_symbols_are_taken_before_any_is_added(tmp_path, caplog, kind, reserve):
    """A model made with `prepare --reserve` keeps its size, or grows by what it lacks; exports have all."""
    data, text = data_of(tmp_path / "items", np.random.default_rng(0)), tmp_path / "text.txt"
    text.write_text("\n".join(TEXT))
    words = ["prepare", str(text), "--tokenizer", kind, "--reserve", str(reserve)]
    assert main([*words, "--workers", "1", "--output", str(tmp_path / "data")]) == 0
    vocabulary, tokenizer = Vocabulary.load(tmp_path / "data" / "dict.txt"), load_tokenizer(tmp_path / "data")
    folder = new_model(tokenizer, vocabulary, tmp_path / "model")
    task, start = task_named("relation"), Start.of(folder)
    job = job_of(task, with_changes(task.training, max_length=40), start, tmp_path / "out")
    splits = read_and_written(job, data)
    job.command(splits, 1, 0)
    made = Vocabulary.load(tmp_path / "out" / "data" / "dict.txt")
    assert made.symbols == [*vocabulary.symbols, *(f"[unused{i}]" for i in range(reserve + 1, 5))]
    head, saved = job.understandings(splits)[0], load_checkpoint(start.checkpoint)["model"]
    config = start.config.with_vocabulary(len(made))
    core = UnifiedModel.for_tasks(config, {"relation": head.head(config)})
    with caplog.at_level("INFO"):
        UnifiedLMModel(core, Task(made), "nothing").load_state_dict(saved)
    assert ("symbols that the checkpoint lacks, with new rows: 1 ([unused4])" in caplog.text) == (reserve == 3)
    assert ("with new rows" in caplog.text) == (reserve == 3)
    old = saved["core.transformer.embeddings.tokens.weight"]
    assert torch.equal(core.transformer.embeddings.tokens.weight[: len(old)], old)
    # The language model with its reserved symbols goes to transformers and comes back.
    lm = load(folder)
    lm.save_pretrained(tmp_path / "back")
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "back").convert_tokens_to_ids("[unused1]") > 4
    again = load(tmp_path / "back")
    assert markers_of(again.vocabulary) == markers_of(lm.vocabulary) and len(markers_of(lm.vocabulary)) == reserve
    for symbol in markers_of(lm.vocabulary):
        rows = (one.model.symbols.weight[one.vocabulary.index(symbol)] for one in (lm, again))
        assert torch.equal(*rows)


def test_a_dictionary_that_does_not_begin_like_the_checkpoints_is_refused(tmp_path):
    folder = model_folder("char", tmp_path)
    start = Start.of(folder)
    ordinary = start.vocabulary.symbols[4 : start.vocabulary.special.ordinary_stop]
    for symbols in (ordinary[::-1], ["new", *start.vocabulary.symbols[4:]]):
        other = Vocabulary(symbols)
        config = start.config.with_vocabulary(len(other))
        model = UnifiedLMModel(UnifiedModel.for_tasks(config, {}), Task(other), "nothing")
        with pytest.raises(SystemExit, match="another dictionary of "):
            model.load_state_dict(load_checkpoint(start.checkpoint)["model"])


def finetuned(tmp_path, kind: str, *more: str):
    data = data_of(tmp_path / "items", np.random.default_rng(0), 64)
    words = ["finetune", "relation", "--data", str(data), "--init", str(model_folder(kind, tmp_path)), "--output",
             str(tmp_path / "out"), "--max-length", "40", "--epochs", "1", *more]  # fmt: skip
    assert main(words) == 0
    return tmp_path / "out"


@torch.no_grad()
def test_a_bert_without_markers_learns_predicts_and_is_exported(tmp_path, capfd):
    out = finetuned(tmp_path, "bert")
    said = "".join(capfd.readouterr())
    assert "symbols that the checkpoint lacks, with new rows: 4 ([unused1] [unused2] [unused3] [unused4])" in said
    assert "f1" in json.loads((out / "results.json").read_text())["scores"]["valid"]
    question = '{"words": ["the", "dog", "sat"], "entities": [{"start": 1, "stop": 2}, {"start": 0, "stop": 1}]}'
    assert main(["predict", "relation", "--model", str(out), question]) == 0
    assert json.loads(capfd.readouterr().out)["label"] in ("barks", "no_relation")
    # transformers has the markers' rows, and reads a marked sentence as we do.
    done = export_bert(Source.read(out), tmp_path / "back")
    assert {name.partition(".")[0] for name in done.left_out} == {"heads"}
    back = transformers.BertModel.from_pretrained(tmp_path / "back", add_pooling_layer=False).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    lm = load(out)
    predictor = lm.predictor()
    (example,) = predictor.task.encode([predictor.item(json.loads(question), 1)], predictor.codec).examples
    names = {"<s>": "[CLS]", "</s>": "[SEP]"}
    symbols = [lm.vocabulary.symbols[token] for token in example.tokens]
    assert symbols == ["<s>", "[unused3]", "the", "[unused4]", "[unused1]", "dog", "[unused2]", "sat", "</s>"]
    ids = tokenizer.convert_tokens_to_ids([names.get(symbol, symbol) for symbol in symbols])
    assert tokenizer.unk_token_id not in ids
    expected = back(torch.tensor([ids])).last_hidden_state[0]
    indices = torch.arange(len(ids))[None]
    seen = masks.batch([masks.bidirectional(len(ids))])
    states = lm.model.transformer(torch.from_numpy(example.tokens)[None], indices, indices * 0, seen)[0]
    torch.testing.assert_close(states, expected, atol=1e-4, rtol=1e-4)
    # What was exported comes in again, markers and all.
    read_bert(tmp_path / "back").save(tmp_path / "again")
    again = load(tmp_path / "again")
    for symbol in markers_of(lm.vocabulary):
        one, two = (
            model.model.transformer.embeddings.tokens.weight[model.vocabulary.index(symbol)] for model in (lm, again)
        )
        assert torch.equal(one, two)


@torch.no_grad()
def test_an_xlnet_learns_types_of_entities_and_is_exported(tmp_path, capfd):
    out = finetuned(tmp_path, "xlnet", "--head", "relation(design='types')", "--auxiliary-masking", "0.1")
    said = "".join(capfd.readouterr())
    assert "with new rows: 3 ([unused1] [unused2] [unused3])" in said
    # Masked language modelling beside it hides markers as it hides words: they are among its targets.
    assert "now in it, as targets have them: 3 ([unused1] [unused2] [unused3])" in said
    state, vocabulary = load_checkpoint(out / "checkpoint_last.pt")["model"], Vocabulary.load(out / "data" / "dict.txt")
    assert state[f"core.{SCORED}"][[vocabulary.index(marker) for marker in markers_of(vocabulary)]].all()
    lm = load(out)
    assert "f1" in json.loads((out / "results.json").read_text())["scores"]["valid"]
    assert export_xlnet(Source.read(out), tmp_path / "back")
    back = transformers.XLNetModel.from_pretrained(tmp_path / "back")
    pieces = len(lm.tokenizer.native_symbols())
    assert back.config.vocab_size == pieces + 3
    for number, symbol in enumerate(markers_of(lm.vocabulary)):
        row = lm.model.transformer.embeddings.tokens.weight[lm.vocabulary.index(symbol)]
        assert torch.equal(back.word_embedding.weight[pieces + number], row)
    added = json.loads((tmp_path / "back" / "tokenizer_config.json").read_text())["added_tokens_decoder"]
    assert {int(i): token["content"] for i, token in added.items()} == {
        pieces + i: f"[unused{i + 1}]" for i in range(3)
    }


def test_semeval_and_tacred_are_fine_tuned_by_name(tmp_path):
    """Files in their official formats; the data folder is made and the command printed, no more."""
    folder = model_folder("unigram", tmp_path)
    (tmp_path / "semeval").mkdir()
    for name in ("TRAIN_FILE.TXT", "TEST_FILE_FULL.TXT"):
        (tmp_path / "semeval" / name).write_text(numbered_semeval(20))
    words = ["finetune", "semeval2010", "--data", str(tmp_path / "semeval"), "--init", str(folder), "--dry-run"]
    assert main([*words, "--output", str(tmp_path / "one"), "--max-length", "40"]) == 0
    assert len(markers_of(Vocabulary.load(tmp_path / "one" / "data" / "dict.txt"))) == 4
    tacred = [TACRED | {"id": str(i), "relation": ("no_relation", "per:title")[i % 2]} for i in range(8)]
    tacred[3] |= {"obj_type": "CITY"}
    (tmp_path / "tacred").mkdir()
    for name in ("train", "dev", "test"):
        (tmp_path / "tacred" / f"{name}.json").write_text(json.dumps(tacred))
    words = ["finetune", "tacred", "--data", str(tmp_path / "tacred"), "--init", str(folder), "--dry-run"]
    assert main([*words, "--output", str(tmp_path / "two"), "--max-length", "40"]) == 0
    assert len(markers_of(Vocabulary.load(tmp_path / "two" / "data" / "dict.txt"))) == 3
    # Of several tasks together the one that needs most decides.
    for name in ("first", "second"):
        (tmp_path / "both").mkdir(exist_ok=True)
        data_of(tmp_path / "both" / name, np.random.default_rng(1))
    task = "first=relation(design='types'), second=relation"
    words = ["finetune", task, "--data", str(tmp_path / "both"), "--init", str(folder), "--dry-run"]
    assert main([*words, "--output", str(tmp_path / "three"), "--max-length", "40"]) == 0
    assert len(markers_of(Vocabulary.load(tmp_path / "three" / "data" / "dict.txt"))) == 4
