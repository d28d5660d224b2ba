"""A model card: ``README.md`` beside a fine-tuned model, made of its files of results."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

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
#: What models that write do there, by their decoding, see :data:`unified.generation.SCHEMES`.
_WRITING = {"cloze": "text2text-generation", "next": "text2text-generation"}
_CONTINUING = "text-generation"


def model_card(results: Sequence[Mapping[str, Any]], config: Mapping[str, Any]) -> str:
    """The card of a model.

    Args:
        results: contents of its files of results, one for each task that it was fine-tuned for.
        config: content of its ``config.json``.
    """
    (architecture,) = config["architectures"]
    does = next((does for end, does in _PIPELINES.items() if architecture.endswith(end)), _FEATURES)
    writes = config.get("decoding", "nothing") != "nothing"
    if writes:
        does = _WRITING.get(config["decoding"], _CONTINUING)
    first, tasks = results[0], ", ".join(result["task"] for result in results)
    lines = ["---", "library_name: transformers", f"pipeline_tag: {does}", "tags:", "- unified", "---", ""]
    lines += [f"# {tasks}", ""]
    lines += [f"A `{architecture}`: {first['model']['name']} fine-tuned for {tasks} by UNIFIED.", ""]
    lines += ["## Use", "", "```python", "import unified", "", 'model = unified.load("FOLDER")', "```", ""]
    lines += ["```python", *_loading(architecture, config), *(_WRITES if writes else ()), "```", ""]
    for result in results:
        lines += [f"## Scores of {result['task']}", "", *_scores(result["scores"]), ""]
    lines += ["## Training", "", *_table(("setting", "value"), _training(first).items()), ""]
    lines += ["```sh", shlex.join(first["command"]), "```", "", "## Data", ""]
    files = {f"{result['task']}/{name}": one for result in results for name, one in result["data"].items()}
    lines += _table(("file", "SHA-256"), files.items())
    return "\n".join(lines) + "\n"


#: How a model with its own code writes.
_WRITES = (
    'inputs = tokenizer(["A text ..."], return_tensors="pt")',
    "texts = tokenizer.batch_decode(model.generate(**inputs, beam=5), skip_special_tokens=True)",
)


def _loading(architecture: str, config: Mapping[str, Any]) -> list[str]:
    """Python that loads a model by ``transformers``; one with its own code by the class that names it."""
    name, trust = architecture, ""
    if "auto_map" in config:
        name = [auto for auto, own in config["auto_map"].items() if own.endswith(f".{architecture}")][-1]
        trust = ", trust_remote_code=True"
    lines = [f"from transformers import {name}, AutoTokenizer", "", f'model = {name}.from_pretrained("FOLDER"{trust})']
    return [*lines, f'tokenizer = AutoTokenizer.from_pretrained("FOLDER"{trust})']


def _scores(scores: Mapping[str, Mapping[str, Any]]) -> list[str]:
    rows = [
        (split, measure, f"{value:.2f}" if isinstance(value, float) else str(value))
        for split, measures in scores.items()
        for measure, value in measures.items()
        if isinstance(value, int | float | str)
    ]
    return _table(("split", "measure", "score"), rows)


def _training(result: Mapping[str, Any]) -> dict[str, Any]:
    settings = {name: value for name, value in result["settings"].items() if value is not None}
    return settings | {"seed": result["seed"], "date": result["date"]} | result["versions"]


def _table(head: Sequence[str], rows: Any) -> list[str]:
    lines = [_row(head), "|" + "---|" * len(head)]
    return lines + [_row(row) for row in rows]


def _row(cells: Sequence[Any]) -> str:
    texts = (cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False) for cell in cells)
    return "| " + " | ".join(text.replace("|", "\\|").replace("\n", " ") for text in texts) + " |"
