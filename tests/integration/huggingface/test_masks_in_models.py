"""Models of transformers under masks of unified.masks: the numbers of an additive 4-D mask, and what is refused."""

import gc
import pickle
import weakref
from collections.abc import Callable

import pytest
import torch
import transformers
from torch._dynamo.testing import CompileCounter
from torch.nn.attention.flex_attention import flex_attention

import unified.huggingface
from tests.support.transformers_models import CAUSAL, CONFIGS, VOCABULARY, packed, tiny
from unified import masks
from unified.attention import FlexAttention, prepare
from unified.errors import UnifiedError
from unified.huggingface import attention
from unified.masks import AttentionMask
from unified.runtime.announcements import log_once

LENGTH = 14
#: Every kind of mask, for a text of 4 tokens or more.
KINDS: dict[str, Callable[[int], AttentionMask]] = {
    "bidirectional": masks.bidirectional,
    "left to right": masks.left_to_right,
    "right to left": masks.right_to_left,
    "seq2seq": lambda n: masks.seq2seq(3, n - 3),
    "permutation": lambda n: masks.permutation([2, 0, 4, 1, 3, 6, 5][:n]),
    "causal window": lambda n: masks.sliding_window(n, 2),
    "two-sided window": lambda n: masks.sliding_window(n, 1, 1),
    "window with a sink": lambda n: masks.sliding_window(n, 1).with_sinks(1),
    "block causal": lambda n: masks.block_causal(n, 2),
    "block diffusion": lambda n: masks.block_diffusion(n // 2, 2),
    "pseudo-masked": lambda n: masks.pseudo_masked([0, 1, 0, 0][: n - 2]),
    "tree": lambda n: masks.tree([-1, 0, 0, 1, 1, 2, 3][:n]),
    "neighbours": lambda n: masks.bidirectional(n).without_self(),
    "prediction order within the text": lambda n: masks.permutation([2, 0, 4, 1, 3, 6, 5][:n]),  # causal() of the batch
}


@pytest.fixture(scope="module")
def models():
    return {name: tiny(name) for name in CONFIGS}


def rows(kind: str) -> tuple[AttentionMask, torch.Tensor, torch.Tensor]:
    """Mask, positions and ids: a row of two packed texts and padding, and one of a text and more padding."""
    make = KINDS[kind]
    mask, positions = packed([[make(7), make(4)], [make(6)]], LENGTH)
    if kind == "prediction order within the text":
        mask = mask.causal()
    ids = torch.randint(3, VOCABULARY, (2, LENGTH), generator=torch.Generator().manual_seed(1))
    return mask, positions, ids


def logits_and_gradients(model, mask, inputs, seen, names):
    """Logits of the rows that see something, and gradients of a random weighted sum of them, by name."""
    logits = model(**inputs, **mask).logits[seen]
    weight = torch.randn(logits.shape, generator=torch.Generator().manual_seed(2)) / len(logits)
    gradients = torch.autograd.grad((logits * weight).sum(), list(model.parameters()), materialize_grads=True)
    return {"logits": logits, **dict(zip(names, gradients, strict=True))}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONFIGS)
def test_outputs_and_gradients_are_those_of_an_additive_mask(models, name, kind):
    model = models[name]
    mask, positions, ids = rows(kind)
    inputs = {"input_ids": ids, "position_ids": positions} | ({"use_cache": False} if name in CAUSAL else {})
    seen = ~mask.fully_masked()
    names = [parameter for parameter, _ in model.named_parameters()]
    wanted = logits_and_gradients(model, {"attention_mask": mask.additive()}, inputs, seen, names)
    found = logits_and_gradients(model, {"unified_mask": mask}, inputs, seen, names)
    for what in wanted:
        torch.testing.assert_close(found[what], wanted[what], rtol=1e-5, atol=1e-5, msg=lambda m, w=what: f"{w}: {m}")
    if kind != "left to right":  # which is what some decoders make of the positions
        assert (model(**inputs).logits[seen] - found["logits"]).abs().max() > 1e-3


@pytest.mark.parametrize("name", CONFIGS)
def test_without_the_keyword_a_model_does_what_it_did(models, name):
    ids = rows("tree")[2]
    padding = torch.ones_like(ids)
    padding[0, 10:] = 0
    theirs = tiny(name, "sdpa")
    given = [{}, {"attention_mask": padding}, {"attention_mask": padding[:, None, None, :].bool()}]
    if name in CAUSAL:
        given.append({"position_ids": torch.arange(LENGTH).remainder(5).expand(2, -1), "use_cache": False})
    for inputs in given:
        assert torch.equal(models[name](ids, **inputs).logits, theirs(ids, **inputs).logits), inputs


@pytest.mark.parametrize("name", CONFIGS)
def test_an_attention_can_be_set_and_taken_back(name):
    model = tiny(name, "sdpa")
    mask, positions, ids = rows("tree")
    before = model(ids).logits
    model.set_attn_implementation("unified")
    under_mask = model(ids, unified_mask=mask, position_ids=positions).logits
    assert torch.equal(under_mask, tiny(name)(ids, unified_mask=mask, position_ids=positions).logits)
    model.set_attn_implementation("sdpa")
    assert torch.equal(model(ids).logits, before)


@pytest.mark.parametrize("name", CONFIGS)
def test_packed_texts_do_not_see_each_other(models, name):
    """Nor does a text see how the row goes on, through any number of layers: each alone gives the same."""
    text, other = masks.seq2seq(3, 4), masks.bidirectional(5)
    mask, positions = packed([[text, other]], LENGTH)
    ids = rows("tree")[2][:1]
    model = models[name]
    together = model(ids, unified_mask=mask, position_ids=positions).logits[0]
    first = model(ids[:, :7], unified_mask=masks.batch([text]), position_ids=positions[:, :7]).logits[0]
    second = model(ids[:, 7:12], unified_mask=masks.batch([other]), position_ids=positions[:, 7:12]).logits[0]
    torch.testing.assert_close(together[:12], torch.cat([first, second]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_need_not_make_a_mask_that_nobody_reads(models, name, monkeypatch):
    """A 4-D mask of any size is passed on as it is, so that no (T, T) matrix is made from positions or padding."""
    mask, positions, ids = rows("tree")
    inputs = {"unified_mask": mask, "position_ids": positions} | ({"use_cache": False} if name in CAUSAL else {})
    wanted = models[name](ids, **inputs).logits

    def make(**arguments: object) -> None:
        raise AssertionError("a mask is made")

    monkeypatch.setitem(transformers.AttentionMaskInterface._global_mapping, "unified", make)
    assert torch.equal(models[name](ids, attention_mask=torch.ones(1, 1, 1, 1), **inputs).logits, wanted)
    with pytest.raises(AssertionError, match="a mask is made"):
        models[name](ids, **inputs)


def test_one_row_serves_a_whole_batch(models):
    ids = rows("tree")[2]
    mask = masks.seq2seq(5, LENGTH - 5)
    one, many = (models["llama"](ids, unified_mask=given).logits for given in (mask, masks.batch([mask, mask])))
    torch.testing.assert_close(one, many)


def gradients(model, mask, ids):
    model.zero_grad()
    model.train()
    model(ids, unified_mask=mask, labels=ids).loss.backward()
    return [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("name", ["modernbert", "llama"])
def test_gradient_checkpointing_changes_nothing(name):
    mask, _, ids = rows("seq2seq")
    model = tiny(name)
    plain = gradients(model, mask, ids)
    model.gradient_checkpointing_enable()
    for found, wanted in zip(gradients(model, mask, ids), plain, strict=True):
        torch.testing.assert_close(found, wanted)


def test_attention_dropout_keeps_to_the_mask():
    config = CONFIGS["bert"](16)
    config.attention_probs_dropout_prob, config.hidden_dropout_prob = 0.5, 0.0
    model = transformers.BertModel._from_config(config, attn_implementation="unified").train()
    mask, positions, ids = rows("seq2seq")
    changed = ids.clone()
    changed[0, 7:] = 5  # what the first text does not see

    def states(ids: torch.Tensor, seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        return model(ids, unified_mask=mask, position_ids=positions).last_hidden_state[0, :7]

    assert torch.equal(states(ids, 0), states(changed, 0)) and not torch.equal(states(ids, 0), states(ids, 1))


@pytest.mark.parametrize("name", ["bert", "llama", "qwen3", "gemma3"])
def test_under_autocast(models, name):
    """Where a model norms its queries and keys, they are float32 then, and its values are not."""
    mask, positions, ids = rows("seq2seq")
    seen = ~mask.fully_masked()
    inputs = {"input_ids": ids, "position_ids": positions} | ({"use_cache": False} if name in CAUSAL else {})
    exact = models[name](**inputs, unified_mask=mask).logits[seen]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        wanted = models[name](**inputs, attention_mask=mask.additive()).logits[seen]
        found = models[name](**inputs, unified_mask=mask).logits[seen]
    assert (found - exact).abs().max() < 2 * (wanted - exact).abs().max()


@pytest.mark.parametrize("name", sorted(CONFIGS.keys() - {"gpt2"}))
def test_weights_are_given_where_they_are_asked_for(models, name):
    mask, positions, ids = rows("tree")
    given = models[name](ids, unified_mask=mask, position_ids=positions, output_attentions=True)
    assert len(given.attentions) == 2
    for weights in given.attentions:
        assert weights.shape == (2, 4, LENGTH, LENGTH)
        assert not weights[~mask.for_sdpa().expand_as(weights)].any()
        torch.testing.assert_close(weights.sum(-1), (~mask.fully_masked())[:, None].expand(2, 4, -1).float())
    torch.testing.assert_close(given.logits, models[name](ids, unified_mask=mask, position_ids=positions).logits)


def test_layers_share_one_preparation_which_ends_with_the_mask(models, monkeypatch):
    made = []

    def noted(*args, **named):
        prepared = prepare(*args, **named)
        made.append(weakref.ref(prepared))
        return prepared

    monkeypatch.setattr(attention, "prepare", noted)
    ids = rows("tree")[2]
    mask = rows("tree")[0]
    for _ in range(2):
        models["llama"](ids, unified_mask=mask)
    assert len(made) == 1
    models["llama"](ids, unified_mask=rows("seq2seq")[0])
    assert len(made) == 2
    models["llama"](ids, unified_mask=mask)
    del mask
    gc.collect()
    assert [prepared() for prepared in made] == [None] * len(made), "masks that are gone are not kept"


def test_a_mask_met_in_inference_mode_can_be_trained_with():
    mask, _, ids = rows("seq2seq")
    model = tiny("llama")
    with torch.inference_mode():
        model(ids, unified_mask=mask)
    assert gradients(model, mask, ids)


def test_a_compiled_layer_is_compiled_once_for_all_masks(models):
    module = models["bert"].bert.encoder.layer[0].attention.self
    query, key, value = torch.randn(3, 2, 4, LENGTH, 4)
    counter = CompileCounter()

    def layer(query: torch.Tensor, mask: AttentionMask) -> torch.Tensor:
        return 2 * attention.unified_attention(module, 2 * query, key, value, None, unified_mask=mask)[0]

    compiled = torch.compile(layer, backend=counter)
    counts = []
    for kind in ("tree", "seq2seq", "bidirectional"):
        mask = rows(kind)[0]
        torch.testing.assert_close(compiled(query, mask), layer(query, mask))
        counts.append(counter.frame_count)
    assert counts[0] > 0 and set(counts) == {counts[0]}


@torch.no_grad()
def test_a_tree_of_drafts_reads_a_cache_of_prompts_padded_at_the_left(models):
    model, parents, cached = models["llama"], [-1, 0, 0, 1, 1, 2], 6
    depth, draws = torch.tensor([0, 1, 1, 2, 2, 2]), torch.Generator().manual_seed(3)
    prompts = torch.randint(4, VOCABULARY, (2, cached), generator=draws)
    drafts = torch.randint(4, VOCABULARY, (2, len(parents)), generator=draws)
    lengths = [cached, 4]
    hidden = torch.arange(cached) < cached - torch.tensor(lengths)[:, None]
    positions = (torch.arange(cached) - hidden.sum(1, keepdim=True)).clamp(min=0)
    read = model(
        prompts, unified_mask=masks.causal(cached).without_keys(hidden), position_ids=positions, use_cache=True
    )
    tree = masks.tree(parents)
    logits = model(
        drafts,
        past_key_values=read.past_key_values,
        position_ids=torch.tensor(lengths)[:, None] + depth,
        unified_mask=masks.batch([tree.with_memory(cached, filled=length) for length in lengths]),
    ).logits
    for row, length in enumerate(lengths):
        for token in range(len(parents)):
            path = tree.dense()[token].nonzero()[:, 0]
            alone = torch.cat([prompts[row, cached - length :], drafts[row, path]])[None]
            torch.testing.assert_close(model(alone).logits[0, -1], logits[row, token])


@torch.no_grad()
def test_prompts_padded_at_the_left_are_read_under_a_mask_and_continued_by_generate(models):
    model, longest, lengths, more = models["llama"], 5, [2, 5, 1], 4
    prompts = torch.randint(4, VOCABULARY, (3, longest), generator=torch.Generator().manual_seed(4))
    shown = (torch.arange(longest) >= longest - torch.tensor(lengths)[:, None]).long()
    read = model(
        prompts,
        unified_mask=masks.bidirectional(longest).without_keys(shown == 0),
        position_ids=(shown.cumsum(1) - 1).clamp(min=0),
        use_cache=True,
    )
    begun = torch.cat([prompts, read.logits[:, -1:].argmax(-1)], dim=1)
    written = model.generate(
        begun,
        attention_mask=torch.cat([shown, torch.ones(3, 1).long()], dim=1),
        past_key_values=read.past_key_values,
        max_new_tokens=more,
        min_new_tokens=more,
        do_sample=False,
        eos_token_id=None,
    )
    for row, length in enumerate(lengths):
        text = prompts[row : row + 1, longest - length :]
        for count in range(more + 1):
            scores = model(text, unified_mask=masks.prefix_lm(length, count), use_cache=False).logits
            text = torch.cat([text, scores[:, -1:].argmax(-1)], dim=1)
        assert text[0, length:].tolist() == written[row, longest:].tolist()


def test_a_prompt_fills_a_cache_and_a_filled_cache_is_refused(models):
    """An empty cache, which decoders make of themselves in evaluation, changes nothing."""
    mask, _, ids = rows("left to right")
    prompt = models["llama"](ids, unified_mask=mask, use_cache=True)
    cached = r"for 14 queries and 14 keys, attention got 1 and 15; a cache holds keys .* use_cache=False"
    with pytest.raises(UnifiedError, match=cached):
        models["llama"](ids[:, :1], unified_mask=mask, past_key_values=prompt.past_key_values)
    # As one more row of the mask, it is served.
    longer = masks.batch([masks.left_to_right(LENGTH + 1)] * 2)
    past = models["llama"](ids, use_cache=True).past_key_values
    last = AttentionMask(longer.query_step[:, -1:], longer.key_start, longer.key_stop)
    found = models["llama"](ids[:, :1], unified_mask=last, past_key_values=past).logits
    wanted = models["llama"](torch.cat([ids, ids[:, :1]], dim=1), use_cache=False).logits[:, -1:]
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "mask, words",
    [
        (torch.ones(2, LENGTH), "unified_mask must be an AttentionMask of unified.masks, got Tensor"),
        (masks.batch([masks.bidirectional(LENGTH)] * 3), "unified_mask is for 3 rows, attention got 2"),
        (masks.bidirectional(9), "unified_mask is for 9 queries and 9 keys, attention got 14 and 14$"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(models, mask, words):
    with pytest.raises(UnifiedError, match=words):
        models["bert"](rows("tree")[2], unified_mask=mask)


_SMALL = {"vocab_size": 9, "hidden_size": 8}
_LAYERS = {"num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 8}
REFUSED = {
    "carry a state from token to token": lambda: transformers.MambaConfig(**_SMALL, num_hidden_layers=1),
    "layers (conv) that carry a state": lambda: transformers.Lfm2Config(
        **_SMALL, **_LAYERS, num_key_value_heads=2, layer_types=["conv", "full_attention"]
    ),
    "does not go through the AttentionInterface": lambda: transformers.BloomConfig(**_SMALL, n_layer=1, n_head=2),
    "has cross-attention": lambda: transformers.T5Config(vocab_size=9, d_model=8, d_ff=8, num_layers=1, num_heads=1),
    "cross-attention, whose keys": lambda: transformers.BertConfig(
        **_SMALL, **_LAYERS, is_decoder=True, add_cross_attention=True
    ),
    "changes the scores": lambda: transformers.GptOssConfig(
        **_SMALL, **_LAYERS, num_key_value_heads=2, head_dim=4, num_local_experts=2
    ),
}


@pytest.mark.parametrize("words", REFUSED)
def test_a_model_that_cannot_take_a_mask_is_refused(words):
    """It would train without the mask, in silence, whichever way the attention was chosen."""
    with pytest.raises(UnifiedError) as refused:
        transformers.AutoModel.from_config(REFUSED[words]()).set_attn_implementation("unified")
    assert words in str(refused.value) and "Model cannot take the attention 'unified': " in str(refused.value)
    with pytest.raises(UnifiedError, match="cannot take the attention 'unified'"):
        transformers.AutoModel.from_config(REFUSED[words](), attn_implementation="unified")
    transformers.AutoModel.from_config(REFUSED[words]()).set_attn_implementation("eager")


def test_a_model_that_keeps_the_mask_to_itself_is_refused(monkeypatch):
    """Its class says that it hands keywords to its attention, and it does not."""
    mask, _, ids = rows("tree")
    model = tiny("bert")
    forward = model.bert.encoder.forward
    monkeypatch.setattr(model.bert.encoder, "forward", lambda states, **kwargs: forward(states))
    with pytest.raises(UnifiedError, match="BertModel has not handed unified_mask to its attention"):
        model(ids, unified_mask=mask)
    assert model(ids).logits.shape == (2, LENGTH, VOCABULARY)
    loaded = pickle.loads(pickle.dumps(tiny("bert")))
    assert torch.equal(loaded(ids, unified_mask=mask).logits, tiny("bert")(ids, unified_mask=mask).logits)


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_with_another_attention_is_refused_a_mask(name, tmp_path):
    """It takes keywords that it does not know, and would go on without the mask, in silence."""
    mask, _, ids = rows("tree")
    model = tiny(name)
    model(ids, unified_mask=mask)  # another model has used the same mask
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path)  # a saved model does not keep its attention
    words = (
        r"Model has the attention 'sdpa', which does not know unified_mask; call set_attn_implementation\('unified'\)"
    )
    with pytest.raises(UnifiedError, match=words):
        loaded(ids, unified_mask=mask)
    model.set_attn_implementation("sdpa")
    with pytest.raises(UnifiedError, match=words):
        model(ids, unified_mask=mask)
    with pytest.raises(UnifiedError, match="Model has the attention 'eager', which does not know"):
        tiny(name, "eager").base_model(ids, unified_mask=mask)
    loaded.set_attn_implementation("unified")
    assert loaded(ids, unified_mask=mask).logits.shape == (2, LENGTH, VOCABULARY)


def test_a_whole_model_is_compiled_under_a_mask(models):
    mask, positions, ids = rows("tree")
    compiled = torch.compile(models["llama"], backend="eager")
    for inputs in ({}, {"unified_mask": mask, "position_ids": positions}):
        torch.testing.assert_close(compiled(ids, **inputs).logits, models["llama"](ids, **inputs).logits)


@torch.no_grad()
def test_a_model_that_is_compiled_for_any_length_is_compiled_once(models):
    torch._dynamo.reset()
    counter = CompileCounter()
    compiled = torch.compile(models["llama"], backend=counter, dynamic=True)
    counts = []
    for length in (6, 9, 12):
        ids = torch.randint(3, VOCABULARY, (2, length))
        mask = masks.pack_rows([[masks.prefix_lm(2, length - 2)], [masks.bidirectional(length - 1)]], length)
        found, wanted = (model(ids, unified_mask=mask, use_cache=False).logits for model in (compiled, models["llama"]))
        torch.testing.assert_close(found, wanted)
        counts.append(counter.frame_count)
    assert counts[0] > 0 and set(counts) == {counts[0]}


def test_a_layer_that_changes_the_scores_is_refused(models):
    module = models["llama"].model.layers[0].self_attn
    query, key = torch.zeros(2, 4, LENGTH, 4), torch.zeros(2, 2, LENGTH, 4)
    mask = rows("tree")[0]
    with pytest.raises(UnifiedError, match="scores by s_aux, which is not served"):
        unified.huggingface.unified_attention(module, query, key, key, None, unified_mask=mask, s_aux=torch.ones(4))


@pytest.mark.parametrize("name", CONFIGS)
def test_where_flex_serves_all_layers_read_one_block_mask_of_ours(models, name, monkeypatch):
    """As on a GPU, by torch's FlexAttention without a compiler, which a CPU has for the forward alone."""
    served = []

    def flex(query, key, value, block_mask, kernel_options):
        served.append(block_mask)
        return flex_attention(query, key, value, block_mask=block_mask)

    mask, positions, ids = rows("seq2seq")
    seen = ~mask.fully_masked()
    with torch.no_grad():
        wanted = models[name](ids, unified_mask=mask, position_ids=positions).logits[seen]
        monkeypatch.setattr(FlexAttention, "pays", lambda *case: True)
        monkeypatch.setattr(FlexAttention, "unsupported", lambda *case: None)
        monkeypatch.setattr("unified.attention.flex.compiled_flex_attention", lambda: flex)
        other = rows("seq2seq")[0]  # nothing has been prepared for it
        found = models[name](ids, unified_mask=other, position_ids=positions).logits[seen]
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
    assert len(served) == models[name].config.num_hidden_layers and len(set(map(id, served))) == 1
    assert torch.equal(served[0].to_dense(), mask.block_mask().to_dense())


@pytest.mark.gpu
@pytest.mark.parametrize("name", CONFIGS)
def test_on_a_gpu_flex_gives_the_same(name, caplog):
    model = tiny(name, width=64).cuda()  # FlexAttention wants heads of 16 or more
    mask, positions, ids = rows("seq2seq")
    seen = ~mask.fully_masked()
    log_once.cache_clear()
    with torch.no_grad(), caplog.at_level("INFO", "unified.attention"):
        found = model(ids.cuda(), unified_mask=mask, position_ids=positions.cuda()).logits.cpu()
    assert "attention backend 'flex' on cuda" in caplog.text
    wanted = model.cpu()(ids, unified_mask=mask, position_ids=positions).logits
    torch.testing.assert_close(found[seen], wanted[seen], rtol=1e-3, atol=1e-3)
