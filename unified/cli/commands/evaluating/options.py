"""Options that types of evaluation share: the model, how it scores texts, and the file of results."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.cli.device import add_device_arguments, use_device
from unified.cli.intervals import require_drawn
from unified.cli.needed_options import require_with
from unified.cli.values import non_negative, positive, run_name
from unified.errors import UnifiedError
from unified.evaluation.names import SENTENCES, SUMS, scoring_names

if TYPE_CHECKING:
    from unified.evaluation.patterns import Sampling
    from unified.evaluation.scorings import Scoring
    from unified.inference.language_model import UnifiedLM
    from unified.inference.trained_model import TrainedModel

#: File of a folder of ``--output`` with the scores of each example.
EXAMPLES = "examples.jsonl"
#: Name of the run in tables, and seed in results, where nobody says.
_RUN, _SEED = "ours", 1


def add_model_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the model, and where it computes."""
    parser.add_argument(
        "--model",
        required=True,
        metavar="CHECKPOINT",
        help="checkpoint file, a folder with one or of transformers, or a name of the Hugging Face hub",
    )
    add_device_arguments(parser)


def add_scoring_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare how texts are scored."""
    listed = "; ".join(f"{name}: {sentence}" for name, sentence in SENTENCES.items())
    sums = "; ".join(f"{name}: {meaning}" for name, meaning in SUMS.items())
    group = parser.add_argument_group(
        "scoring",
        f"The score of a text is the sum of the log-probabilities of its tokens, its first one included. {listed}. "
        f"Scores joined by '+' are added; {sums}.",
    )
    group.add_argument(
        "--scoring",
        metavar="NAME",
        help=f"how to score: {', '.join((*SENTENCES, *SUMS))}, or several of them joined by '+' (default: what the "
        "model has learnt first)",
    )
    group.add_argument(
        "--draws",
        type=positive,
        metavar="N",
        help="orders of permutation, and draws of diffusion, for each text (default: 16)",
    )
    group.add_argument("--seed", type=non_negative, metavar="N", help="seed of what is drawn at random (default: 1)")


def add_output_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the file of results."""
    parser.add_argument(
        "--output",
        metavar="FOLDER",
        help="folder for results.json, which `unified results` reads, and examples.jsonl, each example's score",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace a results.json that is in FOLDER")
    parser.add_argument(
        "--run",
        dest="run_name",
        type=run_name,
        metavar="NAME",
        help=f"name of the run in tables of results (default: {_RUN})",
    )


def check_options(args: argparse.Namespace, name: str) -> None:
    """Refuse options without effect, and a folder that cannot be made or that holds results, before any work.

    Args:
        name: of the type of evaluation, whose results ``--overwrite`` replaces.

    Raises:
        UnifiedError: an option needs another one that is not given; a file stands in the folder's way; it is the
            folder of a training; it holds results of something else, or ``--overwrite`` is not given; its examples are
            those of nothing that is known, or are what is to be evaluated.
    """
    from unified.files.claims import FILE_NAME as CLAIM
    from unified.files.destination import require_folders
    from unified.reports.results import FILE_NAME, command_of

    require_drawn(args, "resamples")
    require_with("--output", args.output, {"--overwrite": args.overwrite, "--run": args.run_name})
    if args.output is None:
        return
    folder = Path(args.output)
    require_folders(folder, f"--output {folder}")
    if (folder / CLAIM).exists():
        raise UnifiedError(
            f"--output {folder}: the folder of a training, which keeps its own results there; name another"
        )
    results = folder / FILE_NAME
    if results.exists() and command_of(results)[:3] != ["unified", "evaluate", name]:
        raise UnifiedError(f"{results}: there already, and not of this evaluation; name another folder for --output")
    if results.exists() and not args.overwrite:
        raise UnifiedError(f"{results}: there already; --overwrite replaces it")
    examples, data = folder / EXAMPLES, Path(args.data)
    if examples.exists() and not results.exists():
        raise UnifiedError(
            f"{examples}: there already, and no {FILE_NAME} beside it says that an evaluation made it; name another "
            "folder for --output"
        )
    if examples.exists() and any(path.exists() and path.samefile(examples) for path in (data, data / EXAMPLES)):
        raise UnifiedError(f"{examples}: a file that the command reads; name another folder for --output")


def chosen_names(args: argparse.Namespace) -> list[str]:
    """Names of ``--scoring``, refused before a model is loaded; none where the model decides."""
    return [] if args.scoring is None else scoring_names(args.scoring)


def language_model(args: argparse.Namespace) -> UnifiedLM:
    """The model of ``--model``.

    Raises:
        UnifiedError: it cannot be loaded, or was fine-tuned for tasks and predicts no tokens.
    """
    from unified.inference.language_model import UnifiedLM

    return UnifiedLM.from_pretrained(args.model, device=use_device(args))


def chosen_scorings(names: Sequence[str], lm: UnifiedLM) -> list[Scoring]:
    """The scorings of these names, or the first that the model has learnt; says where it has not learnt one.

    Raises:
        UnifiedError: the model cannot score so.
    """
    from unified.evaluation.scorings import SCORINGS, learnt_scorings, require_scorable, unlearnt

    own = names or (*learnt_scorings(lm), "left_to_right")[:1]
    scorings = [SCORINGS[name] for name in own]
    for scoring in scorings:
        require_scorable(lm, scoring)
        note = unlearnt(lm, scoring)
        if note:
            print(f"note: {note}", file=sys.stderr, flush=True)
    return scorings


def draws_at_random(scorings: Sequence[Scoring]) -> bool:
    """Whether a score depends on a seed."""
    return any(scoring.draws for scoring in scorings)


def chosen_sampling(args: argparse.Namespace, scorings: Sequence[Scoring]) -> Sampling:
    """Say how many draws scorings make, and the seed of these and of intervals.

    Raises:
        UnifiedError: ``--draws`` or ``--seed`` is given, and nothing is drawn.
    """
    from unified.evaluation.patterns import Sampling

    if not draws_at_random(scorings):
        require_with("--scoring permutation or diffusion", None, {"--draws": args.draws})
        require_drawn(args, "seed")
    given = {"draws": args.draws, "seed": args.seed}
    return Sampling(**{name: value for name, value in given.items() if value is not None})


def data_name(path: Path) -> str:
    """The name of data in tables: of their folder, or of their file without the endings of its format."""
    from unified.files.text_files import without_compression

    path = path.resolve()
    return path.name if path.is_dir() else Path(without_compression(path.name)).stem


def write_results(
    args: argparse.Namespace,
    model: TrainedModel,
    task: str,
    split: str,
    files: Sequence[Path],
    scores: Mapping[str, Any],
    settings: Mapping[str, Any],
    seed: int | None,
    examples: Iterable[Mapping[str, Any]],
    **details: Any,
) -> Path | None:
    """Write ``results.json`` and ``examples.jsonl`` into the folder of ``--output``; None without that option.

    Args:
        split: what the data are called in tables.
        files: that were read.
        scores: measure -> score; the numbers with a fraction are columns of tables.
        settings: what decides the scores beside model, data and seed, named as on the command line.
        seed: of the scores; None where nothing is drawn, so that tables have one result however often it is computed.
        examples: their scores, a row for each.
        details: whatever else is worth keeping.

    Returns:
        the file of results.
    """
    if not args.output:
        return None
    from unified.checkpoints.trained import contents
    from unified.conversions.named_models import checkpoint_named
    from unified.files.hashes import data_hashes
    from unified.files.whole import to_disk, whole_file
    from unified.reports.results import FILE_NAME, write_result

    # All that takes long comes first, so that hardly a kill leaves examples alone.
    data = _joined(data_hashes(files))
    of_model = contents([checkpoint_named(args.model)], model.vocabulary, model.tokenizer)
    parameters = sum(parameter.numel() for parameter in model.model.parameters())
    folder = Path(args.output)
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(folder / EXAMPLES) as stream:
        stream.writelines(f"{json.dumps(row, ensure_ascii=False)}\n".encode() for row in examples)
        to_disk(stream)
        (folder / FILE_NAME).unlink(missing_ok=True)  # no kill may leave new examples beside old results
    return write_result(
        folder,
        task=task,
        run=_RUN if args.run_name is None else args.run_name,
        scores={split: scores},
        seed=_SEED if seed is None else seed,
        command=[*("unified", "evaluate", task, args.data, "--model", args.model), *_words({**settings, "seed": seed})],
        model={"name": args.model, "sha256": _joined(of_model), "parameters": parameters},
        settings=settings,
        data={f"{split}.jsonl": data},
        published={},
        **details,
    )


def _words(options: Mapping[str, Any]) -> list[str]:
    """Options of a command line that repeats an evaluation; None stands for one that is not given."""
    given = ((name, value) for name, value in options.items() if value is not None)
    return [word for name, value in given for word in (f"--{name}", str(value))]


def _joined(digests: Mapping[str, str]) -> str:
    """One SHA-256 of those of several files."""
    return hashlib.sha256("".join(digests[name] for name in sorted(digests)).encode()).hexdigest()
