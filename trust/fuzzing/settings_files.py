"""Files of results, logs, settings and claims, and the notations of options."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

from trust.fuzzing.mutators import JSON, JSON_LINES, TEXT
from trust.fuzzing.reader import Mutator, Reader, sample_file
from unified.cli.configuration import config_first
from unified.cli.parsing import make_parser
from unified.errors import UnifiedError
from unified.files.claims import Claim, claimed_folder
from unified.files.destination import check_destination, manifest_outputs
from unified.objectives.parse import parse_objectives
from unified.reports.result_tables import result_tables, tables
from unified.reports.results import read_results
from unified.tasks.catalogue import task_named
from unified.tasks.heads.items import TextItem, WordsItem
from unified.tasks.heads.registry import parse_heads
from unified.tasks.run_report import report_of

_RESULT = {
    "task": "sst2", "run": "ours", "seed": 1, "command": ["fairseq-train", "data", "--save-dir", "runs/x"],
    "scores": {"valid": {"accuracy": 90.0, "matthews": 50.5, "total": 10, "signature": "rules:glue"}},
    "model": {"name": "bert", "sha256": "0" * 64, "layers": 2},
    "settings": {"head": "classification(dropout=0.1)", "epochs": 3, "lr": 2e-5, "fairseq": {"a": 1}},
    "data": {"train.jsonl": "1" * 64, "valid.jsonl": "2" * 64}, "versions": {"python": "3.11.7", "torch": "2.13.0"},
    "date": "2026-11-25T00:00:00+00:00", "machine": {"processor": "x", "cores": 2},
    "published": {"valid": {"BERT": {"accuracy": 93.5}}}, "checkpoint": "best",
}  # fmt: skip
_LOG = "".join(
    f"2026-11-25 | INFO | {kind} | " + json.dumps({"epoch": 1, "update": 0.1, **values}) + "\n"
    for kind, values in (
        ("train_inner", {"loss": "7.1", "bert_loss": "7.1", "ups": "3.5", "num_updates": "10", "wall": "5"}),
        ("valid", {"valid_loss": "6.5", "valid_bert_loss": "6.5", "valid_bert_ppl": "90.5", "valid_bert_accuracy": "1",
                   "valid_num_updates": "10"}),
    )
)  # fmt: skip
_ITEMS = "".join(json.dumps({"id": str(i), "text": f"text {i}", "label": "ab"[i % 2]}) + "\n" for i in range(4))
_RUN = "data: data/corpus\noutput: models/x\nmodel: small\nobjectives: 'bert:1,xlnet:1'\nlr: 1e-4\nseed: 3\n"
_FINETUNE = (
    "task: sst2\ndata: data\ninit: bert\noutput: models/x\nlr: 2e-5\nepochs: 3\nhead: classification(dropout=0.1)\n"
)
_CLAIM = {"settings": {"--seed": 1, "--lr": 0.1}, "inputs": {"--data": {"train.jsonl": "0" * 64}}}
_MANIFEST = {"kind": "documents", "outputs": {"dict.txt": {"bytes": 9, "sha256": "0" * 64}}}
_HEADS = "first=classification(dropout=0.2,labels=('a','b')):2,span(design='bert',stride=64),tagging(features='last')"
_OBJECTIVES = "bidirectional:2,long=random_spans(mean_span=32):1,spanbert(p=0.3),seq2seq:0.5"


def _results() -> object:
    found = read_results(["results.json"])
    return [tables(found, intervals=True), json.dumps([one.described() for one in result_tables(found, (), True)])]


def _make_run() -> None:
    for name, content in (
        ("run/results.json", json.dumps(_RESULT)), ("run/train.log", _LOG), ("run/run.yaml", _FINETUNE),
        ("run/data/valid.jsonl", _ITEMS), ("run/predictions.valid.jsonl", _ITEMS),
    ):  # fmt: skip
        sample_file(name, content.encode())()


def _of_run(file: str, mutators: tuple[Mutator, ...]) -> Reader:
    return Reader(
        f"report of {file}", f"run/{file}", _make_run, lambda: report_of(Path("run"), 4, 1).html(), mutators,
        inputs=1000,
    )  # fmt: skip


def _options(command: str) -> Callable[[], object]:
    """Options of a command from the file run.yaml, as the command line reads them."""

    def read() -> object:
        try:
            return vars(make_parser(command).parse_args(config_first([command, "--config", "run.yaml"])))
        except SystemExit as error:  # argparse has printed one line about options that are missing
            raise UnifiedError("run.yaml: refused by the command line") from error

    return read


def _claimed() -> object:
    claim = Claim(_CLAIM["settings"], _CLAIM["inputs"])
    with claimed_folder(Path("folder"), claim, "name a new folder"):
        return None


def _make_claim() -> None:
    sample_file("folder/claim.json", json.dumps(_CLAIM).encode())()
    sample_file("folder/begun.txt", b"begun")()


def _manifest() -> object:
    manifest_outputs(Path("folder"))
    check_destination(Path("folder"), overwrite=True)
    return None


def _make_manifest() -> None:
    sample_file("folder/manifest.json", json.dumps(_MANIFEST).encode())()
    sample_file("folder/dict.txt", b"a 1\nb 1\n")()


def _option_text() -> str:
    """The text of an option; a command line can hold any bytes but zeros."""
    return Path("option.txt").read_bytes().replace(b"\0", b"").decode("utf-8", "surrogateescape")


def _heads() -> object:
    found = []
    for entry in parse_heads(_option_text(), own_classes=False):
        items = [TextItem(str(i), "text", None, "ab"[i % 2]) for i in range(4)]
        words = [WordsItem(str(i), ("a", "b"), ("O", "B-X")) for i in range(4)]
        if entry.head_class.name in ("classification", "tagging"):
            found.append(entry.for_items(items if entry.head_class.name == "classification" else words))
    return found


_SETTINGS = (
    "dropout=2", "dropout=-1", "dropout=True", "dropout='x'", "dropout=1e400", "dropout=0.1,dropout=0.2",
    "dropout=None",
    "dropout=[0.1]", "dropout=float('nan')", "labels=('a','a')", "labels='ab'", "labels=()", "labels=('a',)",
    "labels=5",
    "labels=(1,2)", "labels=None", "labels=[['a']]", "labels=(('a',),('b',))", "positive=3", "positive=('a',)",
    "recurrent_width=0", "recurrent_width=-1", "recurrent_width='x'", "recurrent_width=10**9", "features=3",
    "features=['last']", "context=5", "design=[]", "design={}", "stride=True", "stride=1e9", "max_query=0",
    "null_threshold='x'", "null_threshold=2", "passage_first=3", "rules=[]", "rules=5", "threshold_found_on=3",
    "nbest=99999999999999999999", "mean_span=0", "mean_span=-1", "mean_span='x'", "p=2", "p=None", "p=[]", "p=1e-400",
    "noise_density=1.5", "mask_probability='a'", "max_predictions=-1", "x=1", "=1", "a=", "**x", "1", "a=b", "a=b()",
    "a=" + "(" * 300 + ")" * 300, "a=" + "-" * 5000 + "1", "a=" + "9" * 5000, "a='\u00b2'", "a=\u00b2", "a=0x", "a='''",
    "\u00e4=1", "a=...", "a=1_0", "a=b''", "a=1j", "a={1,2}", "a={}", "a=lambda: 0", "types=('a','a')", "negative=1",
    "max_windows=0", "max_windows=-1", "max_windows=1.5", "max_windows=True", "max_windows='x'",
)  # fmt: skip
_OUTSIDE = (
    ":", "::", ":nan", ":-1", ":inf", ":1e999", ":0", ":\u00b2", ":\u0663", ":1:2", ":os:system", "os:system", "a.b:C",
    "=", "x=", "=x", "x=y=z", ",", ",,", "(", ")", "[", "'", '"', "\\", "\n", "\r", "\0", "%s", "{}", "\ud800",
    "\u2028",
    "classification,classification", "pop", "keys=classification", "forward=classification", "token=classification",
    "a" * 5000, "a," * 500, "()" * 50,
)  # fmt: skip


def wrong_setting(data: bytes, rng: random.Random) -> bytes:
    """A setting stands within a pair of parentheses, or in place of all that was there."""
    text = data.decode("utf-8", "replace")
    entries = text.split(",") if rng.random() < 0.5 else [text]
    at = rng.randrange(len(entries))
    name = entries[at].partition("(")[0].partition(":")[0] or "tagging"
    entries[at] = f"{name}({','.join(rng.sample(_SETTINGS, rng.choice((1, 1, 2))))})"
    return ",".join(entries).encode("utf-8", "replace")


def wrong_sign(data: bytes, rng: random.Random) -> bytes:
    """A sign, or an entry, that notations give a meaning to."""
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_OUTSIDE).encode("utf-8", "surrogatepass") + data[at:]


_NOTATION: tuple[Mutator, ...] = (*(wrong_setting,) * 5, *(wrong_sign,) * 4, *TEXT)


def _notation(name: str, text: str, read: Callable[[], object]) -> Reader:
    return Reader(name, "option.txt", sample_file("option.txt", text.encode()), read, _NOTATION, named=False)


READERS: tuple[Reader, ...] = (
    Reader("results.json", "results.json", sample_file("results.json", json.dumps(_RESULT).encode()), _results, JSON,
           inputs=3000),
    _of_run("results.json", JSON),
    _of_run("train.log", TEXT),
    _of_run("run.yaml", TEXT),
    _of_run("predictions.valid.jsonl", JSON_LINES),
    _of_run("data/valid.jsonl", JSON_LINES),
    Reader("run.yaml of pretrain", "run.yaml", sample_file("run.yaml", _RUN.encode()), _options("pretrain"), TEXT,
           inputs=1000),
    Reader("run.yaml of finetune", "run.yaml", sample_file("run.yaml", _FINETUNE.encode()), _options("finetune"), TEXT,
           inputs=1000),
    Reader("claim.json", "folder/claim.json", _make_claim, _claimed, JSON, named=False),
    Reader("manifest.json", "folder/manifest.json", _make_manifest, _manifest, JSON),
    _notation("--head", _HEADS, _heads),
    _notation("--objectives", _OBJECTIVES, lambda: parse_objectives(_option_text(), own_classes=False)),
    _notation("name of a task", "classification(dropout=0.2)",
              lambda: task_named(_option_text()) if ":" not in _option_text() else None),
)  # fmt: skip
