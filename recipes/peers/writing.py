"""Fine-tune an encoder-decoder of transformers for a generation task, on the items of ``unified finetune``.

    python recipes/peers/writing.py TASK --data ITEMS --model MODEL --output FOLDER [--seed N …]

Encoder and decoder both start from MODEL, a folder of BERT's kind; the decoder's attention to the encoder is new (Rothe
et al. 2020). A token head that MODEL lacks starts as ours does, as the identity. Texts are searched for by our search.
Writes them in the form of ours and results.json under the name "transformers", scored by our task.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from finetune import check, costs, model_of, parse, settings
from peer_search import PeerDecoder
from torch import nn
from training_loop import train
from transformers import AutoModelForCausalLM, AutoTokenizer, EncoderDecoderModel

from unified.errors import UnifiedError
from unified.generation import GenerationConfig, generate
from unified.reports.results import write_result
from unified.tasks.catalogue import task_named
from unified.tasks.datasets.texts import text_of
from unified.tasks.finetuning import data_hash
from unified.tasks.heads.items import read_items
from unified.tasks.writing import WritingItem, WritingTask, WritingTraining
from unified.tokenization import load_tokenizer, parts_of


@dataclass(frozen=True)
class EncoderDecoder:
    """The peer of a model that writes.

    Attributes:
        folder: model and tokenizer, BERT's, that both halves start from.
        training: how much of sources and targets is read.
    """

    folder: Path
    training: WritingTraining

    def __post_init__(self):
        object.__setattr__(self, "tokenizer", AutoTokenizer.from_pretrained(self.folder))
        object.__setattr__(self, "spelling", load_tokenizer(self.folder))

    def model(self) -> EncoderDecoderModel:
        """Both halves; a token head's transform that the folder lacks starts as the identity, as that of ours."""
        decoder, loading = AutoModelForCausalLM.from_pretrained(
            self.folder, is_decoder=True, add_cross_attention=True, output_loading_info=True
        )
        if any(".transform." in name for name in loading["missing_keys"]):
            _start_as_identity(decoder)
        model = EncoderDecoderModel.from_encoder_decoder_pretrained(str(self.folder), decoder_model=decoder)
        symbols = self.tokenizer
        model.config.decoder_start_token_id, model.config.eos_token_id = symbols.cls_token_id, symbols.sep_token_id
        model.config.pad_token_id = symbols.pad_token_id
        model.config.vocab_size = model.config.decoder.vocab_size
        return model

    def source(self, item: WritingItem) -> list[int]:
        """[CLS] source [SEP], with [SEP] between parts."""
        ids: list[int] = []
        for number, part in enumerate(parts_of(item.source)):
            ids += [self.tokenizer.sep_token_id] if number else []
            ids += self.tokenizer.encode(part, add_special_tokens=False)
        return [self.tokenizer.cls_token_id, *ids[: self.training.max_source_tokens], self.tokenizer.sep_token_id]

    def example(self, item: WritingItem) -> dict[str, list[int]]:
        target = self.tokenizer.encode(item.target, add_special_tokens=False)[: self.training.max_target]
        return {"input_ids": self.source(item), "labels": [*target, self.tokenizer.sep_token_id]}

    def collate(self, inputs: list[dict[str, list[int]]]) -> dict[str, torch.Tensor]:
        """Padded to the longest; labels by -100."""
        batch = self.sources([one["input_ids"] for one in inputs])
        return {**batch, "labels": _padded([one["labels"] for one in inputs], -100)}

    def sources(self, rows: list[list[int]]) -> dict[str, torch.Tensor]:
        ids = _padded(rows, self.tokenizer.pad_token_id)
        return {"input_ids": ids, "attention_mask": (ids != self.tokenizer.pad_token_id).long()}

    @torch.no_grad()
    def texts(
        self, model: EncoderDecoderModel, items: Sequence[WritingItem], task: WritingTask, size: int = 32
    ) -> list[str]:
        """Texts that the model writes, found by our search with the task's settings and spelt as ours are.

        The longest sources go first.
        """
        decoder, config = PeerDecoder(model.eval(), self.tokenizer), self.search(task)
        rows, found = [self.source(item) for item in items], [""] * len(items)
        order = sorted(range(len(items)), key=lambda i: -len(rows[i]))
        for start in range(0, len(order), size):
            some = order[start : start + size]
            batch = self.sources([rows[i] for i in some])["input_ids"].to(model.device)
            for i, (best, *_) in zip(some, generate(decoder, batch, config), strict=True):
                found[i] = self.text(best.tokens.tolist())
        return found

    def text(self, ids: list[int]) -> str:
        """Returns what tokens stand for without special symbols, in the spelling that ours has."""
        return self.spelling.decode(self.tokenizer.convert_ids_to_tokens(ids, skip_special_tokens=True))

    def search(self, task: WritingTask) -> GenerationConfig:
        """Settings of the search: those by which ours writes after a fine-tuning on targets of as many tokens."""
        options = dict(task.decoding)
        options["max_length"] = min(options["max_length"], self.training.max_target)
        marks = [self.tokenizer.encode(mark, add_special_tokens=False) for mark in task.may_repeat]
        return GenerationConfig(**options, no_repeat_ngram_ignore=frozenset(i for ids in marks for i in ids))


@torch.no_grad()
def _start_as_identity(decoder: nn.Module) -> None:
    """Start as :meth:`unified.model.heads.LanguageModelHead.start_as_readout` starts a new token head of ours."""
    dense = decoder.cls.predictions.transform.dense
    nn.init.eye_(dense.weight).mul_(decoder.config.initializer_range)
    nn.init.zeros_(dense.bias)


def _padded(rows: list[list[int]], value: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [value] * (width - len(row)) for row in rows])


def report(
    output: Path,
    task: WritingTask,
    data: Path,
    write: Callable[[Sequence[WritingItem]], Sequence[str]],
    run: str,
    seed: int,
    bert_words: bool,
    **more: Any,
) -> None:
    """Texts of all splits but the first in files, and results.json.

    Args:
        data: a folder of items.
        write: makes texts of items.
        bert_words: whether they have the words of BERT's tokenizer.
        more: stands in results.json too.
    """
    scores, began = {}, time.monotonic()
    for path in sorted(data.glob("*.jsonl")):
        if path.stem not in ("train", *task.unlabelled):
            items = read_items(path, text_of)
            texts = write(items)
            rows = [{"id": item.id, "text": text} for item, text in zip(items, texts, strict=True)]
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            (output / f"predictions.{path.name}").write_text("".join(lines), encoding="utf-8")
            scores[path.stem] = task.scored(items, texts, bert_words).scores()
    write_result(
        output,
        task=task.name,
        run=run,
        scores=scores,
        seed=seed,
        command=[sys.executable, *sys.argv],
        data=data_hash(data),
        published={},
        **more,
        prediction_seconds=round(time.monotonic() - began, 1),
    )
    print(json.dumps(scores, indent=2))


def main(words: list[str] | None = None) -> None:
    arguments = parse(words)
    task = task_named(arguments.task)
    check(arguments, task)
    training = settings(arguments, task)
    peer = EncoderDecoder(arguments.model, training)
    torch.manual_seed(arguments.seed)
    model = peer.model().to("cuda" if torch.cuda.is_available() else "cpu")
    examples = [peer.example(item) for item in read_items(arguments.data / "train.jsonl", text_of)]
    updates = arguments.updates or training.epochs * math.ceil(len(examples) / training.batch_size)
    arguments.output.mkdir(parents=True, exist_ok=True)
    snapshot = arguments.output / "state.pt"
    spent = train(model, examples, peer.collate, training, updates, arguments.seed, snapshot)
    report(
        arguments.output,
        task,
        arguments.data,
        lambda items: peer.texts(model, items, task),
        arguments.run_name,
        arguments.seed,
        bert_words=True,
        model=model_of(arguments.model),
        settings={"decoding": dict(task.decoding), "updates": updates, **asdict(training)},
        **costs(spent),
        parameters=sum(one.numel() for one in model.parameters()),
    )
    snapshot.unlink()


if __name__ == "__main__":
    try:
        main()
    except UnifiedError as error:
        sys.exit(f"peers: error: {error}")
