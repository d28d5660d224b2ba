"""The recipes of docs/how-to/masks_in_transformers.md on tiny models: what sees what, equal losses, a few updates."""

import ast
import inspect

import pytest
import torch
import transformers

from docs.examples import bidirectional_decoder, hybrid_decoder, packed_trainer, prefix_decoder, seq2seq_encoder
from tests.support.transformers_models import CAUSAL, VOCABULARY, tiny
from unified import masks

MASK, END = 3, 2
TEXTS = [torch.randint(4, VOCABULARY, (n,), generator=torch.Generator().manual_seed(n)).tolist() for n in (7, 5, 9, 4)]
PAIRS = [(TEXTS[0], [*TEXTS[1], END]), (TEXTS[3], [*TEXTS[2], END])]
SHORT = [(source, [*target[:3], END]) for source, target in PAIRS]


@pytest.mark.parametrize(
    "recipe", [bidirectional_decoder, hybrid_decoder, packed_trainer, prefix_decoder, seq2seq_encoder]
)
def test_a_recipe_has_at_most_thirty_lines_of_code(recipe):
    """Lines that hold more than a comment, an import or a docstring."""
    source = inspect.getsource(recipe)
    left_out: set[int] = set()
    for node in ast.walk(ast.parse(source)):
        text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if text or isinstance(node, ast.Import | ast.ImportFrom):
            left_out.update(range(node.lineno, node.end_lineno + 1))
    lines = [line.strip() for number, line in enumerate(source.splitlines(), 1) if number not in left_out]
    assert 15 < sum(bool(line) and not line.startswith("#") for line in lines) <= 30


def draws() -> torch.Generator:
    return torch.Generator().manual_seed(5)


def logits(model: transformers.PreTrainedModel, batch: dict) -> torch.Tensor:
    return model(**{name: value for name, value in batch.items() if name != "labels"}).logits


def changed(batch: dict, row: int, index: int) -> dict:
    """The batch with another token at one place."""
    ids = batch["input_ids"].clone()
    ids[row, index] = 4 + (ids[row, index] - 3) % (VOCABULARY - 4)
    return {**batch, "input_ids": ids}


def dependent(model: transformers.PreTrainedModel, batch: dict, row: int, index: int) -> list[int]:
    """Indices of the row whose logits change with the token at ``index``; the batch's other rows must not."""
    differ = (logits(model, batch) - logits(model, changed(batch, row, index))).abs().amax(-1) > 1e-4
    assert not differ[torch.arange(len(differ)) != row].any()
    return differ[row].nonzero().flatten().tolist()


@pytest.mark.parametrize("name", CAUSAL)
def test_a_decoder_that_reads_in_both_directions(name):
    model = tiny(name)
    batch = bidirectional_decoder.masked_batch(TEXTS, MASK, 0.3, draws())
    assert dependent(model, batch, 1, 4) == [0, 1, 2, 3, 4]  # the last token of a text of 5, in a row of 9
    # Each hidden token is predicted by the state before it, whichever texts share the batch.
    hidden = [(row, index) for row, index in (batch["labels"] != -100).nonzero().tolist()]
    assert hidden and all(batch["input_ids"][row, index] == MASK for row, index in hidden)
    log_probabilities = logits(model, batch).log_softmax(-1)
    mean = -torch.stack([log_probabilities[r, i - 1, TEXTS[r][i]] for r, i in hidden]).mean()
    torch.testing.assert_close(model(**batch).loss, mean)


def test_a_few_updates_of_masked_next_token_prediction():
    losses = bidirectional_decoder.train(tiny("llama", "sdpa"), TEXTS, MASK, updates=12, lr=1e-2)
    assert sum(losses[-4:]) < sum(losses[:4])


def test_the_hybrid_is_the_weighted_sum_of_both_losses():
    model = tiny("qwen3")
    masked = torch.tensor([True, False, True, False])
    batch = hybrid_decoder.hybrid_batch(TEXTS, masked, MASK, 0.3, draws())
    # A sliding layer of the model would cut what a row sees; under unified_mask it does not.
    bidirectional, causal = (
        model(
            batch["input_ids"][rows],
            labels=batch["labels"][rows],
            attention_mask=batch["unified_mask"].additive()[rows],
            use_cache=False,
        ).loss
        for rows in (masked, ~masked)
    )
    loss = hybrid_decoder.hybrid_loss(model, batch, masked, weight=0.75)
    torch.testing.assert_close(loss, 0.75 * bidirectional + 0.25 * causal)
    only = torch.zeros(4, dtype=torch.bool)
    llama = tiny("llama")
    batch = hybrid_decoder.hybrid_batch(TEXTS, only, MASK, 0.3, draws())
    own = llama(batch["input_ids"], labels=batch["labels"]).loss  # a decoder's own loss, with padding behind
    torch.testing.assert_close(hybrid_decoder.hybrid_loss(llama, batch, only, weight=0.0), own)


def test_every_masked_row_of_the_hybrid_has_a_target():
    masked = torch.ones(4, dtype=torch.bool)
    batch = hybrid_decoder.hybrid_batch(TEXTS, masked, MASK, 0.0, draws())
    assert (batch["labels"] != -100).sum(1).tolist() == [1, 1, 1, 1]


def test_a_decoder_that_reads_in_both_directions_has_a_target_in_every_text():
    """Also where no draw hides a token, as in short texts: without a target a loss is NaN."""
    batch = bidirectional_decoder.masked_batch([*TEXTS, [4, 5]], MASK, 0.0, draws())
    assert [row.nonzero().flatten().tolist() for row in batch["labels"] != -100] == [[6], [4], [8], [3], [1]]


EVERY = torch.ones(3, dtype=torch.bool)


@pytest.mark.parametrize("share", [0.0, 1.0])
@pytest.mark.parametrize(
    "made",
    [
        lambda texts, share: bidirectional_decoder.masked_batch(texts, MASK, share, draws()),
        lambda texts, share: hybrid_decoder.hybrid_batch(texts, EVERY[: len(texts)], MASK, share, draws()),
    ],
    ids=["bidirectional", "hybrid"],
)
def test_a_first_token_is_neither_hidden_nor_a_target(made, share):
    """No state predicts it, which is all there is to a text of one token."""
    batch = made([[5], [], [6, 7]], share)
    assert batch["labels"].tolist() == [[-100, -100], [-100, -100], [-100, 7]]
    assert batch["input_ids"].tolist() == [[5, 0], [0, 0], [6, MASK]]
    for texts in ([[5]], [[5], []], [[]]):
        with pytest.raises(ValueError, match="^one text of a batch needs two tokens: the state before"):
            made(texts, share)


def test_a_hybrid_without_a_target_in_its_masked_rows_has_the_loss_of_the_others():
    masked = torch.tensor([True, False])
    batch = hybrid_decoder.hybrid_batch([[5], TEXTS[0]], masked, MASK, 0.3, draws())  # nothing stands before the token
    model = tiny("llama")
    causal = hybrid_decoder.hybrid_batch([TEXTS[0]], masked[1:], MASK, 0.3, draws())
    wanted = hybrid_decoder.hybrid_loss(model, causal, masked[1:])
    torch.testing.assert_close(hybrid_decoder.hybrid_loss(model, batch, masked), wanted)


def test_every_target_of_an_encoder_that_writes_has_a_hidden_token():
    batch = seq2seq_encoder.seq2seq_batch([*PAIRS, (TEXTS[0], [END])], MASK, 0.0, draws())
    hidden = batch["labels"] != -100
    assert hidden.sum(1).tolist() == [1, 1, 1] and not hidden[batch["token_type_ids"] == 0].any()
    assert (batch["input_ids"][hidden] == MASK).all()
    more = seq2seq_encoder.seq2seq_batch(PAIRS, MASK, 0.5, draws())["labels"] != -100
    drawn = torch.rand(more.shape, generator=draws())
    assert not (more & (drawn >= 0.5)).any()  # no more than the share, where a draw has hidden one


def test_a_prompt_is_read_in_both_directions_and_its_answer_is_not():
    model = tiny("llama")
    batch = prefix_decoder.prefix_batch(PAIRS)
    assert dependent(model, batch, 0, 6) == list(range(13))  # the last token of the prompt of 7
    assert dependent(model, batch, 0, 9) == [9, 10, 11, 12]
    # Each pair alone, under an additive mask.
    losses = []
    for prompt, answer in PAIRS:
        mask = masks.prefix_lm(len(prompt), len(answer)).additive()
        found = model(torch.tensor([[*prompt, *answer]]), attention_mask=mask, use_cache=False).logits.log_softmax(-1)
        places = range(len(prompt) - 1, len(prompt) + len(answer) - 1)
        losses += [-found[0, place, token] for place, token in zip(places, answer, strict=True)]
    torch.testing.assert_close(model(**batch).loss, torch.stack(losses).mean())


def test_a_prefix_language_model_learns_its_answers():
    model = tiny("llama", "sdpa")
    prefix_decoder.train(model, SHORT, updates=30, lr=1e-2)
    assert [prefix_decoder.answer(model, prompt, END, 6) for prompt, _ in SHORT] == [answer for _, answer in SHORT]


def test_generate_goes_on_from_a_prompt_that_was_read_under_its_mask():
    """It writes what a model writes that reads all anew for each token, and not what follows a causal prompt."""
    model = tiny("llama")
    found, wanted, causal = [], [], []
    for text in TEXTS:
        ids = torch.tensor([text])
        with torch.no_grad():
            read = model(ids, unified_mask=masks.bidirectional(len(text)), use_cache=True)
        begun = torch.cat([ids, read.logits[:, -1:].argmax(-1)], dim=1)
        written = model.generate(begun, past_key_values=read.past_key_values, max_new_tokens=5, eos_token_id=END)
        found.append(written[0, len(text) :].tolist())
        wanted.append(prefix_decoder.answer(model, text, END, 6))
        causal.append(model.generate(ids, max_new_tokens=6, eos_token_id=END)[0, len(text) :].tolist())
    assert found == wanted != causal
    with pytest.raises(ValueError, match=r"not used by the model: \['unified_mask'\]"):  # as the page says
        model.generate(ids, unified_mask=masks.bidirectional(len(text)))


def test_an_encoder_reads_a_source_and_writes_from_left_to_right():
    model = tiny("bert")
    batch = seq2seq_encoder.seq2seq_batch(PAIRS, MASK, 0.5, draws())
    assert dependent(model, batch, 0, 6) == list(range(13))
    assert dependent(model, batch, 0, 9) == [9, 10, 11, 12]
    assert batch["token_type_ids"][0].tolist() == [0] * 7 + [1] * 6 + [0]
    assert not (batch["labels"][batch["token_type_ids"] == 0] != -100).any()
    hidden = batch["labels"] != -100
    assert hidden.any() and (batch["input_ids"][hidden] == MASK).all()


def test_an_encoder_learns_to_write_its_targets():
    model = tiny("bert")
    optimizer, generator = torch.optim.AdamW(model.parameters(), lr=1e-2), draws()
    for _ in range(110):
        loss = model(**seq2seq_encoder.seq2seq_batch(SHORT, MASK, 0.7, generator)).loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert [seq2seq_encoder.write(model, source, MASK, END, 6) for source, _ in SHORT] == [out for _, out in SHORT]


@pytest.mark.parametrize("name", CAUSAL)
def test_packed_texts_have_the_loss_of_separate_ones(name):
    model = tiny(name)
    batch = packed_trainer.PackingCollator(12)([{"input_ids": text} for text in TEXTS])
    assert batch["input_ids"].shape == (3, 12)  # 9, 7 + 5, 4
    assert batch["unified_mask"].document_count == 2
    losses, counts = [], []
    for text in TEXTS:
        ids = torch.tensor([text])
        losses.append(model(ids, labels=ids, use_cache=False).loss * (len(text) - 1))
        counts.append(len(text) - 1)
    if name in ("llama", "gpt2"):  # the others have a sliding layer, which the mask overrides
        torch.testing.assert_close(model(**batch).loss, sum(losses) / sum(counts))
    row = next(index for index in range(3) if (batch["position_ids"][index] == 0).sum() == 2)
    assert dependent(model, batch, row, 3) == [3, 4, 5, 6]
    assert dependent(model, batch, row, 7) == [7, 8, 9, 10, 11]


def test_the_trainer_takes_the_updates_of_separate_texts(tmp_path):
    """Two updates on packed rows leave the same parameters as the same two on each text alone."""
    trained, alone = tiny("llama"), tiny("llama", "sdpa")
    settings = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        max_steps=2,
        per_device_train_batch_size=4,
        learning_rate=1e-2,
        report_to=[],
        use_cpu=True,
        save_strategy="no",
        lr_scheduler_type="constant",
        disable_tqdm=True,
        optim="adamw_torch",
    )
    data = [{"input_ids": text} for text in TEXTS]
    collator = packed_trainer.PackingCollator(12)
    trainer = transformers.Trainer(trained, settings, collator, train_dataset=data, eval_dataset=data)
    trainer.train()
    optimizer = torch.optim.AdamW(alone.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(2):
        optimizer.zero_grad()
        for text in TEXTS:
            ids = torch.tensor([text])
            (alone(ids, labels=ids).loss * (len(text) - 1) / sum(len(text) - 1 for text in TEXTS)).backward()
        torch.nn.utils.clip_grad_norm_(alone.parameters(), 1.0)
        optimizer.step()
    for (name, found), wanted in zip(trained.named_parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
    losses = [(alone(ids, labels=ids).loss.item(), len(text) - 1) for text in TEXTS for ids in [torch.tensor([text])]]
    mean = sum(loss * count for loss, count in losses) / sum(count for _, count in losses)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(mean, rel=1e-4)
