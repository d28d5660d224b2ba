"""A model card: ``README.md`` beside a fine-tuned model, made of its files of results."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from unified.reports.markdown import table_lines
from unified.reports.results import measures_of

#: Names on the Hugging Face hub of what models do, by the end of the name of their class in ``transformers``.
_PIPELINES = {
    "ForSequenceClassification": "text-classification",
    "ForTokenClassification": "token-classification",
    "ForQuestionAnswering": "question-answering",
    "ForMultipleChoice": "multiple-choice",
    "ForMaskedLM": "fill-mask",
    "ForPreTraining": "fill-mask",
}
_FEATURES = "feature-extraction"
#: The hub's names of tasks for models that write, by their decoding, see :data:`unified.generation.SCHEMES`.
_WRITING = {"cloze": "text2text-generation", "next": "text2text-generation"}
_CONTINUING = "text-generation"


def model_card(results: Sequence[Mapping[str, Any]], config: Mapping[str, Any], folder: str | Path) -> str:
    """The card of a model.

    Args:
        results: contents of its files of results, one for each task that it was fine-tuned for.
        config: content of its ``config.json``.
        folder: with the model, for the code that loads it.
    """
    called = json.dumps(str(folder), ensure_ascii=False)  # a text of Python, too
    (architecture,) = config["architectures"]
    does = next((does for end, does in _PIPELINES.items() if architecture.endswith(end)), _FEATURES)
    writes = config.get("decoding", "nothing") != "nothing"
    if writes:
        does = _WRITING.get(config["decoding"], _CONTINUING)
    first, tasks = results[0], ", ".join(result["task"] for result in results)
    lines = ["---", "library_name: transformers", f"pipeline_tag: {does}", "tags:", "- unified", "---", ""]
    lines += [f"# {tasks}", ""]
    lines += [f"A `{architecture}`: {_name(first['model']['name'])} fine-tuned for {tasks} by UNIFIED.", ""]
    search = _search(first["settings"])
    generate = [f'model.generate(["A text ..."], {search})'] if writes else []
    lines += ["## Use", "", "```python", "import unified", "", f"model = unified.load({called})", *generate, "```", ""]
    lines += ["```python", *_loading(architecture, config, called), *(_writing(search) if writes else ()), "```", ""]
    if does == _PIPELINES["ForSequenceClassification"]:
        lines += ["```python", *_classifying(config, called), "```", ""]
    for result in results:
        lines += [f"## Scores of {result['task']}", "", *_scores(result["scores"]), "", *_scored_on(result["scores"])]
    lines += ["## Training", "", *_table(("setting", "value"), _training(first).items()), ""]
    lines += ["```sh", shlex.join(first["command"]), "```", "", "## Data", ""]
    files = {f"{result['task']}/{name}": one for result in results for name, one in result["data"].items()}
    lines += _table(("file", "SHA-256"), files.items())
    return "\n".join(lines) + "\n"


def _search(settings: Mapping[str, Any]) -> str:
    """Arguments of ``generate`` that repeat the search behind the scored texts."""
    options = {name: value for name, value in settings.get("decoding", {}).items() if name not in _KEPT}
    return ", ".join(f"{name}={value!r}" for name, value in ({"beam": 5} | options).items())


#: Settings of decoding that the model keeps, and one that `generate` takes as ids.
_KEPT = frozenset(("max_length", "may-repeat"))


def _writing(search: str) -> tuple[str, ...]:
    """The section on how a model with its own code writes."""
    return (
        'inputs = tokenizer(["A text ..."], return_tensors="pt")',
        f"texts = tokenizer.batch_decode(model.generate(**inputs, {search}), skip_special_tokens=True)",
    )


def _name(model: str) -> str:
    """A model without the folders around it, which are those of one machine; a name of the hub stays."""
    return Path(model).name if Path(model).is_absolute() else model


def _loading(architecture: str, config: Mapping[str, Any], called: str) -> list[str]:
    """Python that loads a model by ``transformers``; one with its own code by the class that names it."""
    name, trust = architecture, ""
    if "auto_map" in config:
        name = [auto for auto, own in config["auto_map"].items() if own.endswith(f".{architecture}")][-1]
        trust = ", trust_remote_code=True"
    lines = [f"from transformers import {name}, AutoTokenizer", "", f"model = {name}.from_pretrained({called}{trust})"]
    return [*lines, f"tokenizer = AutoTokenizer.from_pretrained({called}{trust})"]


def _classifying(config: Mapping[str, Any], called: str) -> list[str]:
    """Python that classifies a text by a pipeline of ``transformers``, which cuts texts only if it is told to."""
    trust = ", trust_remote_code=True" if "auto_map" in config else ""
    made = f'classify = pipeline("text-classification", {called}, truncation=True{trust})'
    return ["from transformers import pipeline", "", made, 'print(classify("A text ...", top_k=None))']


def _scores(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [
        (split, measure, f"{value:.2f}")
        for split, measures in scores.items()
        for measure, value in measures_of(measures).items()
    ]
    return _table(("split", "measure", "score"), rows)


def _scored_on(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Notes on the scores of each split, such as the number of its items and the rules, in a line each."""
    said = []
    for split, measures in scores.items():
        notes = {name: value for name, value in measures.items() if name not in measures_of(measures)}
        if "signature" in notes:
            notes["signature"] = f"`{notes['signature']}`"
        shown = [f"{name} {value}" for name, value in notes.items() if isinstance(value, int | float | str)]
        said += [f"{split}: {', '.join(shown)}.", ""] if shown else []
    return said


def _training(result: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in result["settings"].items() if value is not None}
    return settings | {"seed": result["seed"], "date": result["date"]} | result["versions"]


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[str]:
    """Lines of a table; what is no text is written as JSON."""
    texts = ([cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) for cell in row] for row in rows)
    return table_lines(head, texts)
