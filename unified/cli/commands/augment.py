"""``unified augment``: questions about unlabelled passages, and fine-tuning on them first and on real ones then."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.arguments import counted
from unified.cli.commands.annotating.pipeline import require_pipeline
from unified.cli.device import add_device_arguments, use_device
from unified.cli.fairseq_train import words_of
from unified.cli.fields import require_any_rows
from unified.cli.needed_options import require_with
from unified.cli.output import add_json_argument, print_json, standard_output_for_json
from unified.cli.parsing import options_of
from unified.cli.values import positive, share, training_seed, weight
from unified.errors import UnifiedError

if TYPE_CHECKING:
    from unified.files.claims import Claim
    from unified.tasks.augmentation.pipeline import Models
    from unified.tasks.augmentation.two_stages import TwoStages

HELP = "generate questions about the passages of a corpus, with and without answers, and fine-tune on them"


_ROLES = ("answer_model", "question_model", "reader_model")
#: Tokens of the shortest source of a question: a token of the passage, the separator, and a token of the answer.
_LEAST_SOURCE = 3
#: Weight of masked language modelling in both stages of fine-tuning.
_AUXILIARY_MASKING = 0.3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="corpus of documents, in the formats that `unified prepare` reads"
    )
    parser.add_argument(
        "--output",
        required=True,
        metavar="FOLDER",
        help="folder for the files of all stages; an interrupted run resumes when it is repeated",
    )
    parser.add_argument("--text-field", metavar="NAME", help="field or column that holds the text (default: text)")
    parser.add_argument(
        "--seed", type=training_seed, default=1, metavar="N", help="seed of all random choices (default: 1)"
    )

    models = parser.add_argument_group("models", "Checkpoint files, or folders with one.")
    models.add_argument(
        "--answer-model",
        required=True,
        metavar="MODEL",
        help="model that finds candidate answers, of `unified finetune squad-answers`",
    )
    models.add_argument(
        "--question-model",
        required=True,
        metavar="MODEL",
        help="model that writes the questions, of `unified finetune squad_qg`",
    )
    models.add_argument(
        "--reader-model",
        required=True,
        metavar="MODEL",
        help="model that answers the questions to check them, of `unified finetune squad1.1` or squad2.0",
    )
    add_device_arguments(models)
    models.add_argument(
        "--batch-size",
        type=positive,
        default=32,
        metavar="N",
        help="questions that are written together (default: 32)",
    )
    models.add_argument(
        "--max-tokens",
        type=positive,
        default=4096,
        metavar="N",
        help="most tokens of a batch that is read (default: 4096)",
    )
    models.add_argument(
        "--chunk", type=positive, default=16, metavar="N", help="passages that are saved together (default: 16)"
    )

    stages = parser.add_argument_group("stages", "Defaults are those of UniLM's appendix A, as far as it states them.")
    stages.add_argument(
        "--passages", type=positive, metavar="N", help="paragraphs to draw from the corpus (default: all)"
    )
    stages.add_argument(
        "--words",
        type=positive,
        nargs=2,
        default=(80, 500),
        metavar=("MIN", "MAX"),
        help="fewest and most words of a paragraph (default: 80 500)",
    )
    stages.add_argument(
        "--top", type=positive, default=30, metavar="N", help="candidate answers of a passage (default: 30)"
    )
    stages.add_argument(
        "--beam", type=positive, default=3, metavar="N", help="beam size of the search for questions (default: 3)"
    )
    stages.add_argument(
        "--max-length", type=positive, metavar="N", help="most tokens of a question (default: as in training, else 48)"
    )
    stages.add_argument(
        "--max-source",
        type=positive,
        metavar="N",
        help="most tokens of the passage and answer that a question is written from (default: as in training, else "
        "456 or what the positions leave)",
    )
    stages.add_argument(
        "--min-f1",
        type=share,
        default=0.6,
        metavar="F",
        help="least F1 between the candidate answer and the reader's for a question to be kept, from 0 to 1 (default: "
        "0.6)",
    )
    stages.add_argument(
        "--unanswerable",
        type=share,
        default=0.8,
        metavar="F",
        help="share of the kept questions that an unanswerable question is made of, where that is possible, from 0 to "
        "1 (default: 0.8)",
    )
    stages.add_argument(
        "--spacy",
        metavar="PIPELINE",
        help="spaCy pipeline that finds entities and their types: a name or a folder (default: rules for dates, "
        "numbers and names)",
    )
    stages.add_argument(
        "--spacy-code", metavar="MODULE", help="Python module that registers the spaCy pipeline's own components"
    )

    training = parser.add_argument_group(
        "fine-tuning",
        "With --data and --init the commands of both stages are printed; with --finetune they are run.",
    )
    training.add_argument("--data", metavar="FOLDER", help="folder with the train and dev files of SQuAD 2.0")
    training.add_argument(
        "--init", metavar="CHECKPOINT", help="checkpoint that the first stage of fine-tuning starts from"
    )
    training.add_argument("--finetune", action="store_true", help="run the commands of both stages")
    training.add_argument(
        "--auxiliary-masking",
        type=weight,
        metavar="W",
        help="weight of the loss of masked language modelling in both stages; 0 disables it (default: "
        f"{_AUXILIARY_MASKING})",
    )
    training.add_argument(
        "--first-stage",
        metavar="OPTIONS",
        help="further options of `unified finetune` for the first stage, in one string",
    )
    training.add_argument(
        "--second-stage",
        metavar="OPTIONS",
        help="further options of `unified finetune` for the second stage, in one string",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> int:
    """Run the command with parsed options; returns the exit status."""
    if args.json:
        with standard_output_for_json():
            made = _run(args)
        print_json(made)
    else:
        _run(args)
    return 0


def _run(args: argparse.Namespace) -> dict[str, Any]:
    """Makes the questions and fine-tunes, as far as the options say; returns the counts."""
    # Imported here, so that --help does not wait for torch.
    from unified.files.claims import claimed_folder
    from unified.tasks.augmentation.pipeline import KEPT
    from unified.tasks.augmentation.stages import Stages

    if args.words[0] > args.words[1]:
        raise UnifiedError(f"--words {args.words[0]} {args.words[1]}: the first must not exceed the second")
    if args.text_field is not None:
        require_any_rows(f"--text-field {args.text_field}", args.inputs)
    require_pipeline(args)
    use_device(args)
    output = Path(args.output)
    then = _two_stages(args, output)
    claim = _claim(args)
    models = None if Stages(output, args.chunk).path(KEPT).exists() else _models(args)
    with claimed_folder(output, claim, "name another folder"):
        counts = _run_stages(args, output, models)
        if then is not None:
            if not counts["swap"] and not counts["negation"]:
                raise UnifiedError(
                    f"{output}: no unanswerable question could be made of those that were kept, so that the first "
                    "stage would learn from answered questions alone, and the dev file of --data has others; take more "
                    "passages, or leave out --data and --init"
                )
            then.prepare()
            if args.finetune:
                then.run()
            else:
                print("\n".join(map(shlex.join, then.commands().values())))
    commands = {} if then is None else then.commands()
    return {
        "output": output,
        "counts": counts,
        "commands": {name: shlex.join(words) for name, words in commands.items()},
    }


def _run_stages(args: argparse.Namespace, output: Path, models: Models | None) -> dict[str, Any]:
    """Makes questions of passages, and prints and returns how many.

    Raises:
        UnifiedError: nothing can be made of the corpus, or no question was kept.
    """
    from unified.tasks.augmentation.entities import entities_by_rules, entities_of_spacy
    from unified.tasks.augmentation.passages import Passage, sample_passages
    from unified.tasks.augmentation.pipeline import GENERATED, Pipeline
    from unified.tasks.augmentation.stages import Stages

    find = entities_of_spacy(args.spacy, args.spacy_code) if args.spacy else entities_by_rules

    def passages() -> list[Passage]:
        found = sample_passages(args.inputs, _text_field(args), args.passages, tuple(args.words), args.seed)
        if args.passages and len(found) < args.passages:
            print(f"passages: only {counted(len(found), 'paragraph')} of that length", file=sys.stderr, flush=True)
        return found

    pipeline = Pipeline(args.top, args.min_f1, args.unanswerable, find, args.seed)
    counts = pipeline.run(Stages(output, args.chunk), passages, models)
    print(json.dumps(counts, indent=2), flush=True)
    if not counts["kept"]:
        raise UnifiedError(
            f"{output}: no question was answered like its candidate, so there is nothing to train on; see the file "
            "questions.jsonl: do --answer-model, --question-model and --reader-model suit the corpus?"
        )
    print(f"written to {output / GENERATED}", file=sys.stderr, flush=True)
    return counts


def _two_stages(args: argparse.Namespace, output: Path) -> TwoStages | None:
    """Both stages of fine-tuning; None where they are not asked for.

    Raises:
        UnifiedError: an option is missing, has no effect, or cannot be, those of ``unified finetune`` included.
    """
    from unified.tasks.augmentation.pipeline import GENERATED
    from unified.tasks.augmentation.two_stages import TwoStages

    masking = args.auxiliary_masking
    further = {"--first-stage": args.first_stage, "--second-stage": args.second_stage}
    if not (args.data and args.init):
        if args.data or args.init or args.finetune:
            raise UnifiedError("fine-tuning needs both --data and --init")
        require_with("--data and --init", None, {"--auxiliary-masking": masking, **further})
        return None
    if not args.unanswerable:
        raise UnifiedError(
            "--unanswerable 0: the first stage would learn from answered questions alone, and the dev file of --data "
            "has others; give a share above 0, or leave out --data and --init"
        )
    masking = _AUXILIARY_MASKING if masking is None else masking
    first, second = (() if text is None else tuple(words_of(option, text)) for option, text in further.items())
    generated = (output / GENERATED).parent
    then = TwoStages(output, generated, Path(args.data), Path(args.init), masking, first, second, args.seed)
    then.check()
    for (option, text), words, more in zip(further.items(), then.commands().values(), (first, second), strict=True):
        if text is not None:
            _check_stage(f"{option} {text!r}", words, len(more))
    return then


def _check_stage(option: str, words: list[str], more: int) -> None:
    """Refuse options of a stage before hours of other work.

    Args:
        option: that the user gave, for the message.
        words: of the command; its last ones are the user's.
        more: how many are.

    Raises:
        UnifiedError: ``unified finetune`` would refuse them, whatever the model and the items are, or they name other
            files than those by which the stages follow each other.
    """
    from unified.cli.commands import finetune

    try:
        given = options_of(words[1:])
        finetune.check(given)
    except UnifiedError as problem:
        raise UnifiedError(f"{option}: {problem}") from None
    own = options_of(words[1 : len(words) - more])
    for name in ("data", "init", "output"):
        if vars(given)[name] != vars(own)[name]:
            raise UnifiedError(f"{option}: --{name} of this stage is {vars(own)[name]}; leave it out")


def _claim(args: argparse.Namespace) -> Claim:
    """The settings that decide the files of all stages; folders may move, contents may not change."""
    from unified.conversions.named_models import checkpoint_named
    from unified.files.claims import Claim
    from unified.files.hashes import data_hashes, hashes
    from unified.files.rows import is_hub

    names = ["passages", "words", "top", "beam", "max_length", "max_source", "min_f1", "unanswerable"]
    names += ["spacy", "spacy_code", "batch_size", "max_tokens", "chunk", "seed"]
    for path in args.inputs:
        if not is_hub(path):
            _existing("INPUT", Path(path))
    inputs = {"the corpus": data_hashes(args.inputs)}
    for role in _ROLES:
        inputs[f"--{role.replace('_', '-')}"] = hashes(
            [_existing(f"--{role.replace('_', '-')}", checkpoint_named(getattr(args, role)))]
        )
    options = {f"--{name.replace('_', '-')}": getattr(args, name) for name in names}
    return Claim({"--text-field": _text_field(args), **options}, inputs)


def _text_field(args: argparse.Namespace) -> str:
    return "text" if args.text_field is None else args.text_field


def _existing(what: str, path: Path) -> Path:
    if not path.is_file():
        raise UnifiedError(f"{what} {path}: no such file")
    return path


def _models(args: argparse.Namespace) -> Models:
    from dataclasses import replace

    from unified.tasks.augmentation.pipeline import Models
    from unified.tasks.augmentation.questions import Asking
    from unified.tasks.composing import usual_question, usual_window
    from unified.tasks.loading import load, require_language_model, require_task_model

    loaded = {path: load(path, device=args.device) for path in {getattr(args, r) for r in _ROLES}}
    readers = []
    for role in ("answer_model", "reader_model"):
        try:
            predictor = require_task_model(loaded[getattr(args, role)]).predictor("span")
        except UnifiedError as error:
            raise UnifiedError(f"--{role.replace('_', '-')} {getattr(args, role)}: {error}") from None
        readers.append(replace(predictor, max_tokens=args.max_tokens))
    try:
        asks = require_language_model(loaded[args.question_model])
        asks.scheme(prompt=False)
    except UnifiedError as error:
        raise UnifiedError(f"--question-model {args.question_model}: {error}") from None
    max_length = usual_question(asks.lengths) if args.max_length is None else args.max_length
    tokens_left = int(min(asks.length_rules.tokens_left(max_length), 1 << 30))
    if tokens_left < _LEAST_SOURCE:
        raise UnifiedError(
            f"--max-length {max_length}: the model has no room for a passage beside a question of so many tokens; "
            "lower it"
        )
    max_source = usual_window(asks.lengths, tokens_left) if args.max_source is None else args.max_source
    if not _LEAST_SOURCE <= max_source <= tokens_left:
        raise UnifiedError(
            f"--max-source {max_source}: the model has room for {_LEAST_SOURCE} to {tokens_left} tokens beside a "
            "question"
        )
    options = {"beam": args.beam, "max_length": max_length, "batch_size": args.batch_size}
    return Models(readers[0], Asking(asks, max_source, options), readers[1])
