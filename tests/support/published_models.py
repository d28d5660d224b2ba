"""Tiny models of ``transformers`` with random weights, imported as published ones are, and what they say themselves."""

from __future__ import annotations

import argparse
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import sentencepiece
import torch
import transformers

from unified import UnifiedLM, masks
from unified.checkpoints import load_parameters
from unified.checkpoints.roberta import read_roberta
from unified.conversions.bert import read_bert
from unified.conversions.xlnet import read_xlnet
from unified.model import UnifiedModel

KINDS = ("bert", "roberta", "xlnet", "unilm")
WORDS = ["the", "cat", "sat", "on", "a", "mat", "dog", "bird", "sang", "."]
_ENTRIES = [
    "[PAD]",
    "[UNK]",
    "the",
    "cat",
    "[CLS]",
    "sat",
    "[SEP]",
    "on",
    "a",
    "mat",
    "[MASK]",
    "dog",
    "bird",
    "sang",
    ".",
]
_SHAPE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


@dataclass(frozen=True)
class Published:
    """A model of ``transformers`` and ours, which was imported from it; in float64, but for their XLNet.

    Attributes:
        theirs: the model of ``transformers``.
        lm: ours.
        rows: int64 (V,), their id of each of our symbols; -1 for symbols that they lack.
        known: log-probabilities that have been asked for.
    """

    theirs: torch.nn.Module
    lm: UnifiedLM
    rows: torch.Tensor
    known: dict[tuple, torch.Tensor] = field(default_factory=dict, repr=False)

    @torch.no_grad()
    def log_probs(self, tokens: Sequence[int], types: Sequence[int], mask: torch.Tensor, asked: int) -> torch.Tensor:
        """The published model's log-probabilities of our symbols, (V,), -inf for those that it lacks.

        Args:
            tokens: our ids (T,).
            types: token types (T,).
            mask: bool (T, T), True where a query may attend to a key.
            asked: the index whose token is predicted.
        """
        ids = self.rows[torch.as_tensor(tokens)]
        assert (ids >= 0).all()
        if isinstance(self.theirs, transformers.XLNetLMHeadModel):
            types, hidden = torch.tensor([types]), (~mask).float()[None]
            mapping = torch.zeros(1, 1, len(ids))
            mapping[0, 0, asked] = 1
            outputs = self.theirs(ids[None], token_type_ids=types, perm_mask=hidden, target_mapping=mapping)
            logits = outputs.logits[0, 0]
        else:
            added = torch.zeros(mask.shape, dtype=torch.float64).masked_fill(~mask, torch.finfo(torch.float64).min)
            types = {} if self.theirs.config.type_vocab_size == 1 else {"token_type_ids": torch.tensor([types])}
            outputs = self.theirs(input_ids=ids[None], attention_mask=added[None, None], **types)
            logits = outputs.logits[0, asked]
        log_probs = logits.double().log_softmax(-1)[self.rows]
        return log_probs.masked_fill(self.rows < 0, -torch.inf)

    def next_log_probs(self, scheme: str, given: Sequence[int], written: Sequence[int]) -> torch.Tensor:
        """Log-probabilities (V,) of the token that follows ``written``.

        Args:
            scheme: "cloze" or "next" behind a source, "left_to_right" or "permutation" behind a prompt.
            given, written: our ids, without special symbols.
        """
        asked = (scheme, tuple(given), tuple(written))  # beams share beginnings
        if asked not in self.known:
            self.known[asked] = self._next_log_probs(*asked)
        return self.known[asked]

    def _next_log_probs(self, scheme: str, given: Sequence[int], written: Sequence[int]) -> torch.Tensor:
        special = self.lm.special
        if scheme == "permutation":
            # A query at the next position sees the prompt and what is written, never itself.
            tokens, length = [*given, *written, special.unknown], len(given) + len(written) + 1
            mask = torch.ones(length, length).tril().bool()
            mask[: len(given), : len(given)] = True
            mask[-1, -1] = False
            return self.log_probs(tokens, [0] * length, mask, length - 1)
        if scheme == "left_to_right":
            tokens = [special.begin, *given, *written, special.mask]
            return self.log_probs(tokens, [2] * len(tokens), masks.left_to_right(len(tokens)).dense(), len(tokens) - 1)
        source = [special.begin, *given, special.separator]
        block = [*written, special.mask] if scheme == "cloze" else [special.begin, *written]
        mask, types = masks.seq2seq(len(source), len(block)).dense(), [4] * len(source) + [5] * len(block)
        return self.log_probs(source + block, types, mask, len(types) - 1)


def published(kind: str, folder: Path, shift: float = 0.0, writes: str = "nothing") -> Published:
    """One of :data:`KINDS`, its output bias shifted, which changes none of its probabilities.

    Args:
        folder: for the files of both.
        writes: how ours shall write; BERT's two token types and RoBERTa's none grow to six then, as in fine-tuning.
    """
    folder.mkdir(parents=True, exist_ok=True)
    make, read = {"roberta": (_roberta, read_roberta), "xlnet": (_xlnet, read_xlnet)}.get(kind, (_bert, read_bert))
    theirs = make(kind, folder / "theirs", shift)
    read(folder / "theirs").save(folder / "ours")
    lm = UnifiedLM.from_pretrained(folder / "ours")
    if writes != "nothing" and kind != "xlnet":
        lm = _writing(lm, writes)
        if kind == "bert":
            _six_types(theirs)
    lm.model.double()
    if kind == "roberta":
        native = {symbol: i for i, symbol in enumerate(lm.vocabulary.symbols[: theirs.config.vocab_size])}
    else:
        native = {symbol: i for i, symbol in enumerate(lm.tokenizer.native_symbols())}
    rows = torch.tensor([native.get(symbol, -1) for symbol in lm.vocabulary.symbols])
    return Published(theirs if kind == "xlnet" else theirs.double(), lm, rows)


def _drawn(model: torch.nn.Module, bias: torch.nn.Parameter, shift: float, deviation: float = 0.3) -> torch.nn.Module:
    """Weights at random, biases included, so that predictions differ clearly; the output bias ``shift`` higher."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=deviation)
    bias.data += shift
    return model.eval()


def _bert(kind: str, folder: Path, shift: float) -> torch.nn.Module:
    """BERT, or UniLM, which is a BERT of six token types."""
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(_ENTRIES), max_position_embeddings=40, type_vocab_size=2 if kind == "bert" else 6,
        attn_implementation="eager", **_SHAPE,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config)
    _drawn(model, model.cls.predictions.bias, shift)
    model.save_pretrained(folder)
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in _ENTRIES))
    (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": True}))
    return model


def _roberta(kind: str, folder: Path, shift: float) -> torch.nn.Module:
    """A RoBERTa of ``transformers``, saved under the names of fairseq."""
    torch.manual_seed(0)
    config = transformers.RobertaConfig(
        vocab_size=4 + len(WORDS) + 1, max_position_embeddings=40 + 2, type_vocab_size=1, pad_token_id=1,
        layer_norm_eps=1e-5, attn_implementation="eager", **_SHAPE,
    )  # fmt: skip
    model = transformers.RobertaForMaskedLM(config)
    _drawn(model, model.lm_head.bias, shift)
    model.roberta.embeddings.token_type_embeddings.weight.data.zero_()  # fairseq has none
    state, encoder = model.state_dict(), "encoder.sentence_encoder"
    renamed = {
        "roberta.embeddings.word_embeddings": f"{encoder}.embed_tokens",
        "roberta.embeddings.position_embeddings": f"{encoder}.embed_positions",
        "roberta.embeddings.LayerNorm": f"{encoder}.layernorm_embedding",
        "lm_head.dense": "encoder.lm_head.dense", "lm_head.layer_norm": "encoder.lm_head.layer_norm",
    }  # fmt: skip
    parts = {
        "attention.self.query": "self_attn.q_proj", "attention.self.key": "self_attn.k_proj",
        "attention.self.value": "self_attn.v_proj", "attention.output.dense": "self_attn.out_proj",
        "attention.output.LayerNorm": "self_attn_layer_norm", "intermediate.dense": "fc1", "output.dense": "fc2",
        "output.LayerNorm": "final_layer_norm",
    }  # fmt: skip
    for i in range(config.num_hidden_layers):
        renamed |= {f"roberta.encoder.layer.{i}.{old}": f"{encoder}.layers.{i}.{new}" for old, new in parts.items()}
    saved = {"encoder.lm_head.bias": state["lm_head.bias"]}
    for old, new in renamed.items():
        saved |= {f"{new}.{end}": state[f"{old}.{end}"] for end in ("weight", "bias") if f"{old}.{end}" in state}
    settings = argparse.Namespace(
        encoder_layers=2, encoder_embed_dim=16, encoder_attention_heads=2, encoder_ffn_embed_dim=24, max_positions=40
    )
    folder.mkdir()
    torch.save({"model": saved, "args": settings}, folder / "model.pt")
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in WORDS))
    return model


def _xlnet(kind: str, folder: Path, shift: float) -> torch.nn.Module:
    torch.manual_seed(0)
    pieces = xlnet_pieces()
    size = len(sentencepiece.SentencePieceProcessor(model_proto=pieces))
    config = transformers.XLNetConfig(
        vocab_size=size, d_model=16, n_layer=2, n_head=2, d_inner=24, ff_activation="gelu", mem_len=None
    )
    model = transformers.XLNetLMHeadModel(config)
    _drawn(model, model.lm_loss.bias, shift, deviation=0.1)
    model.save_pretrained(folder)
    (folder / "spiece.model").write_bytes(pieces)
    return model


def xlnet_pieces() -> bytes:
    """A sentencepiece model of characters with XLNet's symbols in XLNet's order."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)] * 20), model_writer=model, model_type="char", vocab_size=40,
        hard_vocab_limit=False, unk_id=0, bos_id=1, eos_id=2, pad_id=-1, num_threads=1, minloglevel=3,
        control_symbols=["<cls>", "<sep>", "<pad>", "<mask>", "<eod>", "<eop>"],
    )  # fmt: skip
    return model.getvalue()


def _writing(lm: UnifiedLM, writes: str) -> UnifiedLM:
    """A copy of the model with six token types instead of two."""
    model = UnifiedModel.for_language(replace(lm.model.config, token_types=6))
    load_parameters(model, lm.model.state_dict())
    return UnifiedLM(model, lm.vocabulary, lm.tokenizer, writes, lm.folder)


def _six_types(model: transformers.BertForMaskedLM) -> None:
    """UniLM's: types 2, 3 and 4 are copies of 0, type 5 one of 1."""
    table = model.bert.embeddings.token_type_embeddings
    table.weight.data = table.weight.data[[0, 1, 0, 0, 0, 1]]
