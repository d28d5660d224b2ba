"""Heads for answers in passages against transformers' with the same weights, and against the formulas written out."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from tests.integration.checkpoints.test_bert_checkpoints import bert_folder
from unified import load
from unified.conversions.bert import read_bert
from unified.inference.sequences import Codec
from unified.model import TransformerConfig, UnifiedModel
from unified.model.span_heads import BEAMS, XlnetSpanHead, example_of_states, log_sum_exp
from unified.tasks.heads.batches import assembled
from unified.tasks.heads.questions import Answer, QuestionItem
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.heads.span_designs import DESIGNS

CONFIG = TransformerConfig(vocabulary_size=200, layers=1, width=16, heads=2, initializer_range=0.5, norm_epsilon=1e-12)
SIZES = (7, 3, 12, 1)
STATES = torch.randn(sum(SIZES), 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def head_of(task):
    torch.manual_seed(1)
    head = task.head(CONFIG).double().eval()
    for parameter in head.parameters():  # biases too
        torch.nn.init.normal_(parameter, std=0.5)
    return head


def reading_of(cls, targets, kinds):
    names = {"sizes": SIZES, "cls": cls, "labels": targets, "answer_types": kinds}
    return {name: torch.tensor(values) for name, values in names.items()}


def examples():
    """First index and states of each example of the batch."""
    starts = np.cumsum(SIZES) - SIZES
    return [STATES[start : start + size] for start, size in zip(starts, SIZES, strict=True)]


def nll(logits, index):
    return -float(torch.log_softmax(logits, -1)[index])


def test_a_softmax_of_examples_is_that_of_each_one():
    values = torch.randn(sum(SIZES), dtype=torch.float64) * 30
    found = log_sum_exp(values, example_of_states(torch.tensor(SIZES), sum(SIZES)), len(SIZES))
    parts = torch.stack([part.logsumexp(0) for part in values.split(SIZES)])
    torch.testing.assert_close(found, parts, rtol=1e-12, atol=0)
    assert (
        log_sum_exp(values.half(), example_of_states(torch.tensor(SIZES), sum(SIZES)), len(SIZES)).dtype
        == torch.float32
    )


def test_bert_is_transformers_bert(tmp_path):
    """A whole model, questions in windows of one batch: logits, and the loss of each window by itself."""
    import transformers

    bert_folder(tmp_path / "bert")
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    lm = load(tmp_path / "ours")
    theirs = transformers.BertForQuestionAnswering.from_pretrained(tmp_path / "bert", attn_implementation="eager")
    task = SpanAnswers(("",), stride=3)
    model = UnifiedModel.for_tasks(lm.model.config, {"span": task.head(lm.model.config)}).eval()
    model.transformer.load_state_dict(lm.model.transformer.state_dict())
    model.heads["span"].output.load_state_dict(theirs.qa_outputs.state_dict())
    context = "the cats sat on a mat. a mat sat on the cat"
    items = [
        QuestionItem("1", "on the cat", context, (Answer("sat on a mat", 9),)),
        QuestionItem("2", "a", context, (), impossible=True),
        QuestionItem("3", "the mat", "a cat sat", (Answer("cat", 2),)),
    ]
    encoded = task.encode(items, Codec(lm.tokenizer, lm.vocabulary, 14))
    assert len(encoded.examples) > 5
    members, batch, reading = assembled(encoded, np.arange(len(encoded.examples)), 28, lm.special.pad)
    scores = model.scores(batch, reading, "span")
    native = {symbol: row for row, symbol in enumerate(lm.tokenizer.native_symbols())}
    starts, ends, losses = [], [], []
    for member in members:
        example = encoded.examples[member]
        ids = torch.tensor([[native[lm.vocabulary.symbols[i]] for i in example.tokens]])
        index = torch.from_numpy(encoded.head_inputs["labels"][member])
        found = theirs(
            input_ids=ids, token_type_ids=torch.from_numpy(example.token_types)[None],
            start_positions=index[:, 0], end_positions=index[:, 1],
        )  # fmt: skip
        starts.append(found.start_logits[0])
        ends.append(found.end_logits[0])
        losses.append(found.loss)
    torch.testing.assert_close(scores.start, torch.cat(starts), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(scores.end, torch.cat(ends), atol=1e-5, rtol=1e-5)
    loss = task.loss(scores, reading)
    assert int(loss.count) == len(members)
    torch.testing.assert_close(loss.total, torch.stack(losses).sum(), atol=1e-5, rtol=1e-5)
    # The gradient reaches the model, too.
    loss.total.backward()
    torch.stack(losses).sum().backward()
    torch.testing.assert_close(
        model.heads["span"].output.weight.grad, theirs.qa_outputs.weight.grad, atol=1e-4, rtol=1e-4
    )


@pytest.fixture
def xlnet():
    """Our head and transformers' modules with its weights."""
    from transformers.models.xlnet import modeling_xlnet as published

    head = head_of(SpanAnswers(("",), design="xlnet"))
    config = SimpleNamespace(hidden_size=16, layer_norm_eps=1e-12)
    theirs = {
        "start": published.XLNetPoolerStartLogits(config).double(),
        "end": published.XLNetPoolerEndLogits(config).double(),
        "answer": published.XLNetPoolerAnswerClass(config).double(),
    }
    theirs["start"].dense.load_state_dict(head.start.state_dict())
    for name, part in (("dense_0", head.end_dense), ("LayerNorm", head.end_norm), ("dense_1", head.end)):
        getattr(theirs["end"], name).load_state_dict(part.state_dict())
    theirs["answer"].dense_0.load_state_dict(head.answer_dense.state_dict())
    theirs["answer"].dense_1.load_state_dict(head.answer.state_dict())
    return head, theirs


@torch.no_grad()
def test_xlnet_is_transformers_xlnet(xlnet):
    head, theirs = xlnet
    cls = [6, 2, 11, 0]
    reading = reading_of(cls, [[0, 3], [2, 2], [4, 9], [0, 0]], [0, 1, 0, -1])
    scores = head(STATES, reading)
    starts, ends = scores.start.split(SIZES), scores.end.split(SIZES)
    for i, states in enumerate(examples()):
        states, gold = states[None], reading["labels"][i : i + 1]
        torch.testing.assert_close(starts[i], theirs["start"](states)[0])
        torch.testing.assert_close(ends[i], theirs["end"](states, start_positions=gold[:, 0])[0])
        expected = torch.einsum("blh,bl->bh", states, starts[i].softmax(-1)[None])
        logit = theirs["answer"](states, start_states=expected, cls_index=reading["cls"][i : i + 1])
        torch.testing.assert_close(scores.answer_types[i], logit)


@torch.no_grad()
def test_xlnet_beams_are_transformers_beams():
    """Through the model of transformers, its hidden states given: top starts, and top ends for each of them."""
    import transformers

    config = transformers.XLNetConfig(
        vocab_size=50, d_model=16, n_layer=1, n_head=2, d_inner=16, start_n_top=BEAMS, end_n_top=BEAMS
    )
    model = transformers.XLNetForQuestionAnswering(config).double().eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    head = XlnetSpanHead(CONFIG).double().eval()
    head.start.load_state_dict(model.start_logits.dense.state_dict())
    for name, part in (("dense_0", head.end_dense), ("LayerNorm", head.end_norm), ("dense_1", head.end)):
        part.load_state_dict(getattr(model.end_logits, name).state_dict())
    head.answer_dense.load_state_dict(model.answer_class.dense_0.state_dict())
    head.answer.load_state_dict(model.answer_class.dense_1.state_dict())
    ids = torch.randint(0, 50, (3, 14))
    # The question and the separators around it may be no answer; they are not read here.
    mask = torch.zeros(3, 14, dtype=torch.float64)
    mask[:, 8:13] = 1
    cls = torch.full((3,), 13)
    theirs = model(ids, p_mask=mask, cls_index=cls)
    states = model.transformer(ids)[0][mask == 0]
    reading = {"sizes": torch.full((3,), 9), "cls": torch.full((3,), 8)}
    scores = head(states, reading)
    assert scores.end is None
    torch.testing.assert_close(scores.answer_types.squeeze(-1), theirs.cls_logits)
    index = torch.tensor([*range(8), 13])  # of what is read, in their sequence
    assert torch.equal(index[scores.beams.starts], theirs.start_top_index)
    ends = theirs.end_top_index.view(3, BEAMS, BEAMS).transpose(1, 2)
    assert torch.equal(index[scores.beams.ends], ends)
    chances = theirs.start_top_log_probs.unsqueeze(-1) * theirs.end_top_log_probs.view(3, BEAMS, BEAMS).transpose(1, 2)
    torch.testing.assert_close(scores.beams.scores.exp(), chances)


@torch.no_grad()
@pytest.mark.parametrize("sizes", [(1, 2, 9), (5, 30), (1,)])
def test_beams_of_short_examples_have_no_more_spans_than_they_can(sizes):
    head = head_of(SpanAnswers(("",), design="xlnet"))
    states = torch.randn(sum(sizes), 16, dtype=torch.float64)
    beams = head(states, {"sizes": torch.tensor(sizes), "cls": torch.zeros(len(sizes), dtype=torch.long)}).beams
    for i, size in enumerate(sizes):
        finite = beams.scores[i].isfinite()
        assert int(finite.sum()) == min(size, BEAMS) ** 2
        assert int(beams.starts[i][finite.any(1)].max()) < size and int(beams.ends[i][finite].max()) < size
        if size <= BEAMS:  # then they are all spans, and their probabilities add up to 1
            assert float(beams.scores[i].exp().sum()) == pytest.approx(1)


@pytest.mark.parametrize("design", ["bert", "unilm", "xlnet"])
@torch.no_grad()
def test_losses_written_out(design):
    """Two windows with their answers, one without (there is none), and one whose answer cannot be learnt."""
    labels = ("", "yes") if design == "unilm" else ("",)
    task = SpanAnswers(labels, design=design)
    head = head_of(task)
    targets, kinds = [[1, 4], [0, 0], [3, 3], [-1, -1]], [0, 2 if design == "unilm" else 1, -1, 0]
    reading = reading_of([0, 0, 0, 0], [*targets[:2], [0, 0], targets[3]], kinds)
    scores = head(STATES, reading)
    expected = 0.0
    for i, states in enumerate(examples()[:3]):
        start, end = (int(index) for index in reading["labels"][i])
        if design == "xlnet":
            starts = head.start(states).squeeze(-1)
            pairs = torch.cat([states, states[start].expand_as(states)], -1)
            ends = head.end(head.end_norm(torch.tanh(head.end_dense(pairs)))).squeeze(-1)
            weighted = (starts.softmax(-1).unsqueeze(-1) * states).sum(0)
            logit = head.answer(torch.tanh(head.answer_dense(torch.cat([weighted, states[0]]))))
            chance = torch.sigmoid(logit)
            expected += 0.5 * float(-torch.log(chance if kinds[i] else 1 - chance))
        else:
            starts, ends = head.output(states).unbind(-1)
        if design == "unilm":  # elsewhere is nothing, the first label
            expected += 0.5 * nll(head.answer_type(states[0]), {0: 0, 2: 2, -1: 1}[kinds[i]])
        expected += 0.5 * (nll(starts, start) + nll(ends, end))
    loss = task.loss(scores, reading)
    assert int(loss.count) == 3 and float(loss.total) == pytest.approx(expected, rel=1e-6)
    right = 0
    for i, (starts, ends) in enumerate(zip(scores.start.split(SIZES), scores.end.split(SIZES), strict=True)):
        right += i < 3 and [int(starts.argmax()), int(ends.argmax())] == reading["labels"][i].tolist()
    assert int(loss.correct) == right


def test_windows_that_lack_the_span_are_not_asked_for_a_kind_where_none_says_so():
    task = SpanAnswers(("no", "yes"), design="unilm")
    head = head_of(task)
    asked = reading_of([0] * 4, [[0, 0]] * 4, [1, 2, 0, -1])
    scores = head(STATES, asked)
    kinds = scores.answer_types.detach()
    loss = task.model_design.answer_types.losses(kinds, asked["answer_types"])
    assert float(loss[3]) == 0 and [float(loss[i]) for i in range(3)] == pytest.approx(
        [nll(kinds[i], kind) for i, kind in enumerate((1, 2, 0))]
    )


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("labels", [(), ("",)])
def test_a_design_learns_types_of_answers_where_its_head_scores_them(design, labels):
    task = SpanAnswers(labels, design=design)
    scores = head_of(task)(STATES, reading_of([0] * 4, [[0, 0]] * 4, [0] * 4))
    assert (task.model_design.answer_types is None) == (scores.answer_types is None)
