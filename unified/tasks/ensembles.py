"""Models that answer or write together: whether they belong together, and what they are joined to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from unified.errors import UnifiedError
from unified.tasks.heads.span import SpanAnswers
from unified.tasks.prediction import Predictor
from unified.tokenization import load_tokenizer, tokenizer_files

if TYPE_CHECKING:
    from unified.inference.language_model import UnifiedLM

#: Settings of a head in which models of an ensemble may differ: they change neither what is read nor what is answered.
_MAY_DIFFER = ("dropout", "null_threshold", "threshold_found_on")


def require_alike(names: Sequence[str], handles: Sequence[UnifiedLM]) -> None:
    """Refuse models that do not belong together.

    Args:
        names: what the user calls the models.

    Raises:
        UnifiedError: names the first model that differs from the first one, and in what.
    """
    first, facts = names[0], _facts(handles[0])
    for name, handle in zip(names[1:], handles[1:], strict=True):
        own = _facts(handle)
        for what in {**facts, **own}:
            if facts.get(what) != own.get(what):
                raise UnifiedError(
                    f"{name} and {first} cannot answer together: {what} differ{_shown(facts.get(what), own.get(what))}"
                )
    for head, predictor in handles[0].predictors.items():
        if not predictor.task.ensembles:
            raise UnifiedError(
                f"{', '.join(names)}: models of {head} cannot answer together, because each keeps candidates of its "
                "own; give one model"
            )


def joined(predictors: Sequence[Predictor]) -> Predictor:
    """The predictor of models that answer together; the threshold of "no answer" is the mean of theirs."""
    first, others = predictors[0], predictors[1:]
    task = first.task
    if isinstance(task, SpanAnswers) and task.may_abstain:
        tasks = [predictor.task for predictor in predictors]
        found_on = {one.threshold_found_on for one in tasks}
        mean = sum(one.threshold for one in tasks) / len(tasks)
        task = task.with_threshold(mean, found_on.pop() if len(found_on) == 1 else None)
    return replace(first, task=task, others=tuple((one.model, one.head) for one in others))


def _facts(handle: UnifiedLM) -> dict[str, object]:
    """What must be equal, by what it is called in messages."""
    facts: dict[str, object] = {"vocabularies": handle.vocabulary.symbols, "tokenizers": _saved(handle.folder)}
    facts["heads"] = list(handle.predictors) if len(handle.predictors) != 1 else ["one"]
    if not handle.predictors:
        room = handle.model.config.position_limit
        own = {"ways of writing": handle.writes, "lengths of sources and targets": handle.lengths}
        return {**facts, **own, "numbers of positions": room}
    for number, (head, predictor) in enumerate(handle.predictors.items()):
        of_head = f" of the heads {head}" if len(handle.predictors) > 1 else ""
        facts[f"kinds of head{number or ''}"] = predictor.task.name
        settings = {name: value for name, value in asdict(predictor.task).items() if name not in _MAY_DIFFER}
        facts |= {f"the {name}{of_head}": value for name, value in settings.items()}
        codec = predictor.codec
        facts["the lengths of sequences"] = codec.longest
        facts["the orders of a sequence"] = (codec.cls_last, codec.marks_entities, codec.token_types)
        facts["the masks of a sequence"] = codec.mask
    return facts


def _saved(folder: Path) -> dict[str, bytes]:
    """Contents of the files that the tokenizer of a folder saves, by name; its settings are among them."""
    if not tokenizer_files(folder):
        return {}
    with TemporaryDirectory() as empty:
        load_tokenizer(folder).save(empty)
        return {path.name: path.read_bytes() for path in Path(empty).iterdir()}


def _shown(one: object, other: object) -> str:
    """Both values, where they can be read in a line."""
    texts = [str(value) for value in (one, other)]
    return f" ({texts[1]} and {texts[0]})" if sum(map(len, texts)) <= 80 else ""
