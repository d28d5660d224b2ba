"""Masks of fine-tuning and the LSTM below heads [BERT, sec. 5.1]: what is read, learnt, kept and refused."""

import json
import random
import shlex
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from tests.integration.cli.test_task_commands import finetune, items, refused, said
from tests.support import coreference_naive
from tests.support.commands import leaving
from tests.support.fairseq_runs import printed_command
from tests.support.peer_items import MAKE, VOCABULARY
from tests.support.task_folders import language_model
from tests.support.understanding_runs import assert_predictions_do_not_depend_on_the_batch, run_batch, small_model
from unified import load, masks
from unified.conversions.bert import bert_config, export_bert
from unified.conversions.export import Source
from unified.data.markers import with_markers
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.inference.sequences import Codec, class_index, sequence
from unified.inference.trained_model import require_alike
from unified.masks import TEXT_MASKS
from unified.model import TransformerConfig, UnifiedModel
from unified.objectives import parse_objectives
from unified.tasks.heads import TASK_HEADS
from unified.tasks.heads.batches import assembled
from unified.tasks.heads.coreference import Coreference
from unified.tasks.heads.encoded_texts import encode_texts
from unified.tasks.heads.items import TextItem, write_items
from unified.tasks.heads.relation import Relation
from unified.tokenization.wordpiece import WordPieceTokenizer

PIECES = WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *VOCABULARY], lowercase=False)
MARKED = with_markers(Vocabulary(VOCABULARY), 4)
SHAPE = {"layers": 2, "width": 32, "heads": 2, "initializer_range": 0.3}


def case(head: str, longest: int = 24, **settings):
    """A task, its items, the codec of a model with these settings, and the model."""
    shape = TransformerConfig(vocabulary_size=len(MARKED), **SHAPE | settings)
    if head == "coreference":
        rng = random.Random(3)
        made = [coreference_naive.random_item(rng, str(i), words=12) for i in range(6)]
        task = Coreference(**coreference_naive.SMALL)
        known = coreference_naive.TOKENIZER, coreference_naive.VOCABULARY
        shape = replace(shape, vocabulary_size=len(known[1]))
    else:
        made = MAKE[head](9, np.random.default_rng(4))
        own = {"negative": "none"} if head == "relation" else {}
        task, known = TASK_HEADS[head].of(made, **own), (PIECES, MARKED)
    codec = Codec.for_model(shape, *known, longest)
    torch.manual_seed(6)
    return task, made, codec, small_model(task, codec, **SHAPE | settings)


def states_of(model, batch) -> torch.Tensor:
    return model.transformer(batch.tokens, batch.positions, batch.token_types, batch.mask)


@pytest.mark.parametrize("settings", [{"mask": name} for name in TEXT_MASKS] + [{"lstm": 2}], ids=str)
@pytest.mark.parametrize("head", TASK_HEADS)
@torch.no_grad()
def test_every_head_reads_under_every_mask(head, settings):
    """Examples have the named mask; predictions are those of each item alone, in an unpadded row."""
    task, made, codec, model = case(head, **settings)
    encoded = task.encode(made, codec)
    name = settings.get("mask", "bidirectional")
    _, batch, _ = assembled(encoded, np.arange(len(encoded.examples)), None, 1)
    seen = batch.mask.dense()
    for row, example in enumerate(encoded.examples):
        length = len(example.tokens)
        first = length
        if name == "seq2seq":
            separators = np.flatnonzero(example.tokens == codec.vocabulary.special.separator)
            first = separators[0] + 1 if len(separators) > 1 else length
        expected = TEXT_MASKS[name](first, length - first) if name == "seq2seq" else TEXT_MASKS[name](length)
        assert torch.equal(seen[row, :length, :length], expected.dense())
    assert_predictions_do_not_depend_on_the_batch(task, model, made, encoded)


@pytest.mark.parametrize("head", TASK_HEADS)
@torch.no_grad()
def test_a_later_token_changes_no_earlier_state(head):
    """In packed rows, under left-to-right; under bidirectional it does change them."""
    for mask, changes in (("left_to_right", False), ("bidirectional", True)):
        task, made, codec, model = case(head, mask=mask)
        encoded = task.encode(made, codec)
        _, batch, _ = assembled(encoded, np.arange(len(encoded.examples)), 64, 1)
        before = states_of(model, batch)
        last = torch.stack(
            [(batch.mask.key_documents()[0] == 0).nonzero()[-2]]
        )  # before the last SEP of the first example
        tokens = batch.tokens.clone()
        tokens[0, last] = 4 if tokens[0, last] != 4 else 5
        after = states_of(model, replace(batch, tokens=tokens))
        earlier = slice(0, int(last))
        assert torch.equal(before[0, earlier], after[0, earlier]) != changes
        assert not torch.equal(before[0, last], after[0, last])


@pytest.mark.parametrize("cls_last", [False, True])
@pytest.mark.parametrize("sizes", [(1,), (5,), (3, 1), (2, 6)])
@pytest.mark.parametrize("mask", TEXT_MASKS)
def test_the_class_is_read_at_a_special_symbol_that_sees_everything(mask, sizes, cls_last):
    config = TransformerConfig(
        vocabulary_size=len(MARKED), mask=mask, positions="relative" if cls_last else "learned", **SHAPE
    )
    if cls_last and mask == "right_to_left":
        with pytest.raises(UnifiedError, match="mask 'right_to_left' needs positions 'learned'"):
            Codec.for_model(config, PIECES, MARKED, 64)
        return
    codec = Codec.for_model(config, PIECES, MARKED, 64)
    segments = tuple(np.arange(4, 4 + size) for size in sizes)
    example = sequence(segments, codec)
    (index,) = example.targets["task"].output_indices[:, 0]
    assert index == class_index(sizes, codec)
    special = codec.vocabulary.special
    seen = example.mask.dense().all(1)
    assert seen[index]
    cls = int(np.flatnonzero(example.tokens == special.begin)[0])
    if seen[cls]:
        assert index == cls
    else:
        assert example.tokens[index] == special.separator and index == len(example.tokens) - 1


def test_token_types_of_unilm_name_the_mask():
    """Six types: as UniLM's objectives have them; two: first and second text."""
    item = TextItem("0", "a", "ab", None)
    for types, mask, expected in (
        (6, "left_to_right", [2] * 6), (6, "seq2seq", [4, 4, 4, 5, 5, 5]), (6, "right_to_left", [3] * 6),
        (6, "bidirectional", [0, 0, 0, 1, 1, 1]), (2, "left_to_right", [0, 0, 0, 1, 1, 1]),
    ):  # fmt: skip
        config = TransformerConfig(vocabulary_size=len(MARKED), token_types=types, mask=mask, **SHAPE)
        (example,), _ = encode_texts([item], Codec.for_model(config, PIECES, MARKED, 64))
        assert example.token_types.tolist() == expected[: len(example.tokens)], (types, mask)


def test_markers_that_see_their_entities_are_read():
    """From left to right those behind the entities; the order of the two states stays that of the entities."""
    made = MAKE["relation"](40, np.random.default_rng(8))
    task = Relation(("a", "b", "none"), negative="none")
    shape = TransformerConfig(vocabulary_size=len(MARKED), mask="left_to_right", **SHAPE)
    plain = task.encode(made, Codec(PIECES, MARKED, 64))
    causal = task.encode(made, Codec.for_model(shape, PIECES, MARKED, 64))
    marker = {MARKED.index(f"[unused{1 + i}]"): i for i in range(4)}
    for one, other, turned, after in zip(
        plain.examples, causal.examples, plain.head_inputs["turned"], causal.head_inputs["turned"], strict=True
    ):
        for example, turn, kinds in ((one, turned, (0, 2)), (other, after, (1, 3))):
            read = [marker[token] for token in example.tokens[example.targets["task"].output_indices[:, 0]].tolist()]
            assert read == (list(kinds)[::-1] if turn.item() else list(kinds))


@pytest.mark.parametrize("layers", [1, 2])
@torch.no_grad()
def test_the_lstm_is_torchs_on_each_sequence_alone(layers):
    """Random texts packed and padded, against torch.nn.LSTM over the states of one unpadded example at a time."""
    task, made, codec, model = case("tagging", lstm=layers)
    encoded = task.encode(made, codec)
    single = nn.LSTM(32, 16, num_layers=layers, bidirectional=True, batch_first=True)
    single.load_state_dict(model.lstm.recurrent.state_dict())
    expected = []
    for number, example in enumerate(encoded.examples):
        _, batch, _ = assembled(encoded, np.array([number]), None, 1)
        found, _ = single(states_of(model, batch))
        expected.append(model.heads["task"](found[0, example.targets["task"].output_indices[:, 0]]))
    for packed, length in ((True, 60), (False, 60)):
        members, scores, reading = run_batch(model, encoded, np.arange(len(expected)), packed, length)
        for member, own in zip(members, scores.split(reading["sizes"].tolist()), strict=True):
            torch.testing.assert_close(own, expected[member], atol=1e-5, rtol=1e-5)


def test_the_lstm_learns_and_the_token_head_reads_below_it():
    task, made, codec, _ = case("tagging")
    config = TransformerConfig(vocabulary_size=len(MARKED), lstm=1, dropout=0.0, attention_dropout=0.0, **SHAPE)
    model = UnifiedModel.for_tasks(config, {"task": task.head(config)}, predicts_tokens=True)
    encoded = task.encode(made, codec)
    _, batch, reading = assembled(encoded, np.arange(len(encoded.examples)), 60, 1)
    task.loss(model.scores(batch, reading, "task"), reading).total.backward()
    assert all(p.grad.abs().sum() > 0 for p in model.lstm.parameters())
    model.zero_grad()
    read = batch.targets["task"]
    tokens = replace(read, labels=torch.zeros(len(read), dtype=torch.long))
    model(replace(batch, targets={"token": tokens}))["task"].total.backward()
    assert all(p.grad is None or not p.grad.any() for p in model.lstm.parameters())
    named = {id(p) for name, p in model.named_parameters() if name.startswith(("heads.task.", "lstm."))}
    assert {id(p) for p in model.task_parameters()} == named
    with pytest.raises(UnifiedError, match="has an LSTM of its own"):
        own = TASK_HEADS["tagging"].of(made, features="last")
        UnifiedModel.for_tasks(config, {"task": own.head(config)})


@pytest.mark.parametrize(
    "objectives, mask",
    [
        ("bert", "bidirectional"),
        ("bert(next_sentence=False, left_to_right=True)", "left_to_right"),
        ("left_to_right", "left_to_right"),
        ("right_to_left", "right_to_left"),
        ("left_to_right,right_to_left", "bidirectional"),
        ("bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1", "bidirectional"),
        ("xlnet", "bidirectional"),
        ("target_cloze", "bidirectional"),
    ],
)
def test_the_mask_follows_the_objectives(objectives, mask):
    assert parse_objectives(objectives).mask == mask


@pytest.mark.parametrize(
    "change, says",
    [
        ({"mask": "causal"}, "mask must be one of .*, left_to_right, .*, got 'causal'"),
        ({"lstm": -1}, "lstm must be from 0 to 1,000, got -1"),
        ({"lstm": 1, "width": 33, "heads": 3}, "an LSTM of two directions needs an even width, got 33"),
    ],
)
def test_shapes_that_cannot_be(change, says):
    with pytest.raises(UnifiedError, match=says):
        TransformerConfig(vocabulary_size=9, **change)


def test_a_language_model_has_no_lstm():
    with pytest.raises(UnifiedError, match="a language model has none"):
        UnifiedModel.for_language(TransformerConfig(vocabulary_size=9, lstm=1, **SHAPE))


def test_decoders_of_transformers_are_read_from_left_to_right():
    settings = {
        "vocab_size": 9, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8,
        "max_position_embeddings": 8, "type_vocab_size": 2,
    }  # fmt: skip
    assert bert_config(settings).mask == "bidirectional"
    assert bert_config(settings | {"is_decoder": True}).mask == "left_to_right"


@torch.no_grad()
def test_what_a_model_reads_without_a_task(tmp_path):
    """Vectors and hidden tokens, under the model's mask; what would be written as another model is refused."""
    lm = load(language_model(tmp_path / "model", mask="left_to_right", initializer_range=0.3))
    texts = ["w1 w2 w3", "w1 w2 w9"]
    ids = torch.tensor([[0, *lm.encode(text), 2] for text in texts])
    positions, types = torch.arange(ids.size(1)).expand_as(ids), torch.zeros_like(ids)
    states = lm.model.transformer(ids, positions, types, masks.batch([masks.left_to_right(ids.size(1))] * 2))
    torch.testing.assert_close(lm.embed(texts, "cls"), states[:, -1], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(lm.embed(texts), states.mean(1), atol=1e-5, rtol=1e-5)
    (one,), (other,) = lm.fill_mask("w1 <mask> w3"), lm.fill_mask("w1 <mask> w9 w9")
    assert [p for _, p in one] == pytest.approx([p for _, p in other], abs=1e-6)
    with pytest.raises(UnifiedError, match="reads texts under the mask 'left_to_right'"):
        export_bert(Source.read(tmp_path / "model"), tmp_path / "theirs")


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    """A model that reads from left to right, fine-tuned as it is, with an LSTM."""
    folder, rng = tmp_path_factory.mktemp("causal"), np.random.default_rng(0)
    (folder / "data").mkdir()
    for split, count in (("train", 400), ("valid", 80)):
        write_items(folder / "data" / f"{split}.jsonl", items(count, rng))
    language_model(folder / "model", mask="left_to_right", initializer_range=0.15)
    result = finetune(
        "finetune", "classification", "--data", folder / "data", "--init", folder / "model", "--output",
        folder / "run", "--lstm", 1, "--head", "classification(dropout=0.0)", "--epochs", 4, "--lr", 4e-3,
        "--max-length", 16, "--fairseq", "--log-format json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr[-3000:]
    return folder, result


def test_the_mask_is_kept_and_read_by_everything_afterwards(causal, capsys, tmp_path):
    folder, result = causal
    words = printed_command(result.stderr)
    assert words[words.index("--mask") + 1] == "left_to_right" and words[words.index("--lstm") + 1] == "1"
    kept = json.loads((folder / "run" / "results.json").read_text(encoding="utf-8"))
    assert (kept["settings"]["mask"], kept["settings"]["lstm"]) == ("left_to_right", 1)
    assert kept["scores"]["valid"]["accuracy"] >= 90
    lm = load(folder / "run")
    assert (lm.model.config.mask, lm.model.config.lstm) == ("left_to_right", 1)
    codec = lm.predictor().codec
    assert codec.mask == "left_to_right"
    (example,), _ = encode_texts([TextItem("1", "w1 w2", None, None)], codec)
    assert example.mask.key_start.tolist() == [1, 2, 3, 4] and example.targets["task"].output_indices[
        :, 0
    ].tolist() == [3]
    log = (folder / "run" / "train.log").read_text(encoding="utf-8")
    validated = [line for line in log.splitlines() if "valid_accuracy" in line]
    logged = json.loads(validated[-1][validated[-1].index("{") :])
    assert float(logged["valid_accuracy"]) == pytest.approx(kept["scores"]["valid"]["accuracy"], abs=0.006)
    options = "finetune", "classification", "--data", folder / "data", "--init", folder / "run", "--dry-run"
    again = shlex.split(said(capsys, *options, "--output", tmp_path / "again")[0])
    assert again[again.index("--mask") + 1] == "left_to_right" and again[again.index("--lstm") + 1] == "1"
    changed = ("--mask", "bidirectional", "--lstm", 0, "--output", tmp_path / "changed")
    words = shlex.split(said(capsys, *options, *changed)[0])
    assert "--mask" not in words and "--lstm" not in words


def test_models_with_other_masks_do_not_answer_together(causal):
    lm = load(causal[0] / "run")
    other = load(causal[0] / "run")
    predictor = other.predictors["classification"]
    other.predictors = {"classification": replace(predictor, codec=replace(predictor.codec, mask="bidirectional"))}
    with pytest.raises(UnifiedError, match="the masks of a sequence differ"):
        require_alike(["a", "b"], [lm, other])


def test_attention_that_goes_one_way_does_so_in_fine_tuning(causal, capsys, tmp_path):
    """XLNet's attn_type "uni" is passed on, and its CLS, which stands last, sees everything."""
    data = causal[0] / "data"
    language_model(tmp_path / "model", positions="relative", token_head="plain", attn_type="uni")
    options = "--data", data, "--init", tmp_path / "model", "--output", tmp_path / "run", "--dry-run"
    words = shlex.split(said(capsys, "finetune", "classification", *options)[0])
    assert words[words.index("--attn-type") + 1] == "uni" and "--mask" not in words
    task, made, codec, model = case("classification", positions="relative", attn_type="uni")
    encoded = task.encode(made, codec)
    _, batch, _ = assembled(encoded, np.arange(len(made)), None, 1)
    with torch.no_grad():
        before = states_of(model, batch)
        after = states_of(model, replace(batch, tokens=batch.tokens.index_fill(1, torch.tensor([2]), 4)))
    assert torch.equal(before[:, :2], after[:, :2])
    assert encoded.examples[0].targets["task"].output_indices[:, 0].tolist() == [len(encoded.examples[0].tokens) - 1]


def test_options_are_refused_in_one_line(causal, capsys, tmp_path):
    folder, _ = causal
    common = ("--data", folder / "data", "--init", folder / "model", "--output", tmp_path / "out", "--dry-run")
    status, _, said = leaving(capsys, "finetune", "classification", *map(str, common), "--mask", "causal")
    assert status == 2 and "argument --mask: invalid choice: 'causal' (choose from bidirectional, " in said
    assert "--lstm 1: texts is a generation task" in refused(capsys, "finetune", "texts", *common, "--lstm", 1)
