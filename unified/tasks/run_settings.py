"""Settings that identify a fine-tuning in its results file: model and settings, without seed and data."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from unified.checkpoints.trained import contents
from unified.files.claims import Claim
from unified.files.destination import manifest_outputs
from unified.files.hashes import file_hash
from unified.tasks.finetuning import Job
from unified.tasks.heads.items import Splits, items_text
from unified.tasks.several import AnyTask, SeveralTasks
from unified.tasks.writing import WritingTask
from unified.training.fairseq_options import by_name, decisive_options

#: Options of ``unified finetune`` that decide no score, or whose contents are compared instead; and the seed.
NOT_DECISIVE = frozenset(
    "command config run data init output seed seeds grid micro_batch device dry_run json report_to".split()
)
#: Options that are no settings of a result: besides those above, names, and options whose effect is named by what they
#: lead to, as head, items and training.
NOT_SETTINGS = NOT_DECISIVE.union(
    "task run_name system valid test text_field second_field label_field source_field target_field labels skip_empty "
    "max_source max_target".split()
)


def model_of(name: str, job: Job) -> dict[str, Any]:
    """The model that is fine-tuned: how the user calls it, a hash of its contents, and its size.

    Its contents are the checkpoint, the dictionary and the tokenizer.
    """
    digest = hashlib.sha256()
    digest.update(bytes.fromhex(file_hash(job.start.checkpoint)))
    for file, own in sorted(manifest_outputs(job.items).items()):
        if not file.endswith(".jsonl"):
            digest.update(f"{file} {own}\n".encode())
    config = job.start.config
    size = {field: getattr(config, field) for field in ("layers", "width", "heads", "vocabulary_size")}
    return {"name": name, "sha256": digest.hexdigest(), **size}


def settings_of(options: Mapping[str, Any], job: Job, command: Sequence[str]) -> dict[str, Any]:
    """Everything else that decides the scores but seed, data and versions, named as on the command line.

    Args:
        options: of ``unified finetune``, by their names in Python; what an option leaves to the task is None.
        command: of ``fairseq-train``.
    """
    return {**_decisive(options, job), "updates": int(str(by_name(command)["--max-update"]))}


def claim_of(options: Mapping[str, Any], job: Job, splits: Splits) -> Claim:
    """The settings in which another fine-tuning in the same folder must agree.

    Args:
        options: as of :func:`settings_of`.
        splits: items that are learnt and judged.
    """
    chosen = {"task": options["task"], "seed": options["seed"], "run": options["run_name"], **_decisive(options, job)}
    names = {name.replace("_", "-") for name in options} | {"run"}
    settings = {f"--{name}" if name in names - {"task"} else name: value for name, value in chosen.items()}
    files = {f"{name}.jsonl": items_text(items) for name, items in splits.items()}
    items = {name: hashlib.sha256(text.encode("utf-8")).hexdigest() for name, text in files.items()}
    start = contents([job.start.checkpoint], job.start.vocabulary, job.start.tokenizer)
    return Claim(settings, {"--init": start, "--data": items})


def decisive_values(
    options: Mapping[str, Any], task: AnyTask, passed_over: frozenset[str] = NOT_DECISIVE
) -> dict[str, Any]:
    """Values of the options that decide a score, by their names in Python; of ``--fairseq`` the words that do.

    With several tasks a micro-batch is of one: its size decides which tasks an update has, and how many updates there
    are.

    Args:
        options: as of :func:`settings_of`.
        task: what is fine-tuned.
        passed_over: names of options that do not count.
    """
    passed_over -= {"micro_batch"} if isinstance(task, SeveralTasks) else set()
    values = {name: value for name, value in options.items() if name not in passed_over}
    return {**values, "fairseq": decisive_options(options["fairseq"])}


def _decisive(options: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """Settings that decide the scores, but seed, data and the updates that follow from these."""
    task = job.task
    if isinstance(task, WritingTask):
        own: dict[str, Any] = {
            "decoding": {**task.decoding, "may-repeat": list(task.may_repeat)},
            "separator": task.separator,
        }
    else:
        own = {"head": task.head, "mask": job.config.mask, "lstm": job.config.lstm}
    settings = decisive_values(options, task, NOT_SETTINGS) | asdict(job.training)
    return {**{name.replace("_", "-"): value for name, value in settings.items()}, **own}
