"""``unified prepare``: text to a folder to train from."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unified.arguments import counted
from unified.cli.fields import require_any_rows, require_different_fields
from unified.cli.output import add_json_argument, print_json
from unified.cli.values import non_negative
from unified.errors import UnifiedError, nearest
from unified.files.text_files import CHUNK_BYTES

if TYPE_CHECKING:
    from unified.corpus.annotate import AnnotationSource
    from unified.corpus.prepare import Corpus

HELP = "turn text, or pairs of source and target, into a folder for training"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    files = parser.add_argument_group(
        "text",
        "Raw text (a sentence or paragraph a line, a blank line between documents), or files with a document a row: "
        "CSV, TSV, JSON lines, a JSON array, plain or compressed (.gz, .xz, .zst), Parquet, or a data set of Hugging "
        "Face's hub (hub:OWNER/NAME@SPLIT). The names of files say what they are.",
    )
    files.add_argument(
        "inputs", nargs="+", metavar="INPUT", help="training text, or the sources of training pairs with --target"
    )
    files.add_argument(
        "--valid",
        nargs="+",
        metavar="FILE",
        help="validation text, or the sources of validation pairs with --valid-target",
    )
    files.add_argument(
        "--valid-share",
        type=float,
        default=0.0,
        metavar="F",
        help="share of the training documents to use for validation, from 0 to 1 (default: 0)",
    )
    files.add_argument(
        "--test", nargs="+", metavar="FILE", help="test text, or the sources of test pairs with --test-target"
    )
    files.add_argument("--text-field", metavar="NAME", help="field or column that holds the text (default: text)")
    files.add_argument(
        "--skip-empty",
        action="store_true",
        help="leave out rows whose text, source or target is empty or null; without it they are refused",
    )
    files.add_argument("--output", required=True, metavar="DIR", help="folder to make")
    files.add_argument("--overwrite", action="store_true", help="replace DIR if this command made it")

    files.add_argument(
        "--clean",
        metavar="RULES",
        help="rules that clean the documents, such as 'urls,noise': urls, paths, noise, short_sentences=10, "
        "short_documents=100, language=en, chunks=300; 'anna' stands for all of these, and 'sentences' divides lines "
        "into sentences and drops none (default: none)",
    )

    pairs = parser.add_argument_group("pairs", "Two fields of a file, or pairs of raw text files equal in lines.")
    pairs.add_argument("--source-field", metavar="NAME", help="field or column that holds the source of a pair")
    pairs.add_argument("--target-field", metavar="NAME", help="field or column that holds the target of a pair")
    pairs.add_argument(
        "--target", nargs="+", metavar="FILE", help="targets of the training pairs, one file for each INPUT"
    )
    pairs.add_argument(
        "--valid-target",
        nargs="+",
        metavar="FILE",
        help="targets of the validation pairs, one file for each file of --valid",
    )
    pairs.add_argument(
        "--test-target", nargs="+", metavar="FILE", help="targets of the test pairs, one file for each file of --test"
    )
    pairs.add_argument(
        "--oracle",
        action="store_true",
        help="keep the marks of sentences that `unified pairs --oracle` chose; objectives with the setting extractive "
        "read them",
    )

    tokenizer = parser.add_argument_group("tokenizer")
    tokenizer.add_argument(
        "--tokenizer",
        default="unigram",
        metavar="TYPE|PATH|NAME",
        help="tokenizer to train (unigram, bpe, char, wordpiece or anna), or one that exists: a sentencepiece model, "
        "a WordPiece vocab.txt, a folder with a tokenizer, such as the one that the model was pre-trained on or one of "
        "transformers, or a name of the Hugging Face hub (default: unigram)",
    )
    tokenizer.add_argument(
        "--vocabulary-size",
        type=int,
        metavar="N",
        help="pieces of the tokenizer to train (default: 32,000, or fewer where the text has fewer)",
    )
    tokenizer.add_argument(
        "--character-coverage",
        type=float,
        metavar="F",
        help="share of the characters of the text that the tokenizer knows, from 0 to 1 (default: 0.9995)",
    )
    tokenizer.add_argument(
        "--normalization",
        choices=("nmt_nfkc", "nfkc", "identity"),
        help="Unicode normalization by sentencepiece (default: nmt_nfkc; identity for char)",
    )
    tokenizer.add_argument("--lowercase", action="store_true", help="write the text in lower case")
    tokenizer.add_argument("--byte-fallback", action="store_true", help="write characters without a piece as bytes")
    tokenizer.add_argument(
        "--word-share",
        type=float,
        metavar="F",
        help="share of anna's vocabulary that are whole words, from 0 to 1 (default: 0.7)",
    )
    tokenizer.add_argument(
        "--reserve",
        type=int,
        default=0,
        metavar="N",
        help="have at least N symbols [unused1], [unused2], ... in the dictionary, which no text contains: a later "
        "fine-tuning takes them as its markers (default: 0)",
    )
    tokenizer.add_argument(
        "--sample-megabytes",
        type=int,
        default=20,
        metavar="N",
        help="size of the sample of text that trains the tokenizer, in millions of characters (default: 20)",
    )

    spans = parser.add_argument_group("annotations", "Spans of documents, for objectives that hide whole phrases.")
    spans.add_argument(
        "--annotate",
        metavar="KINDS",
        help="kinds of spans to find and keep, separated by commas: noun_phrases, entities, parts_of_speech; an "
        "interrupted run resumes when it is repeated",
    )
    spans.add_argument(
        "--spacy",
        metavar="PIPELINE",
        help="spaCy pipeline that finds the spans of --annotate and the noun phrases for --tokenizer anna: a name or "
        "a folder",
    )
    spans.add_argument(
        "--spacy-code", metavar="MODULE", help="Python module that registers the spaCy pipeline's own components"
    )

    parser.add_argument(
        "--workers", type=int, metavar="N", help="processes that work in parallel (default: one per core)"
    )
    parser.add_argument(
        "--chunk-bytes",
        type=int,
        default=CHUNK_BYTES,
        metavar="N",
        help="bytes of text that a process takes at once; progress is shown, and annotations are kept, after each such "
        "chunk; another number draws other lines for a new tokenizer (default: a MiB)",
    )
    parser.add_argument(
        "--seed",
        type=non_negative,
        default=1,
        help="seed of the choice of validation documents and of the sample (default: 1)",
    )
    add_json_argument(parser)


def run(args: argparse.Namespace) -> None:
    """Run the command with parsed options."""
    # Imported here: `unified --help` imports this module and should not wait for the tokenizers' libraries.
    from unified.corpus.cleaning import Cleaning
    from unified.corpus.prepare import Settings, prepare
    from unified.corpus.tokenizer_source import TokenizerSource
    from unified.runtime.parallel import available_cores

    train = _corpus(args, args.inputs, args.target, "--target")
    assert train is not None  # there is at least one INPUT
    _require_rows(args)
    settings = Settings(
        train=train,
        valid=_corpus(args, args.valid, args.valid_target, "--valid-target"),
        test=_corpus(args, args.test, args.test_target, "--test-target"),
        valid_share=args.valid_share,
        tokenizer=TokenizerSource(
            name=_tokenizer(args.tokenizer),
            vocabulary_size=args.vocabulary_size,
            character_coverage=args.character_coverage,
            normalization=args.normalization,
            lowercase=args.lowercase,
            byte_fallback=args.byte_fallback,
            word_share=args.word_share,
            spacy=args.spacy if args.tokenizer == "anna" else None,
            spacy_code=args.spacy_code if args.tokenizer == "anna" else None,
            sample_megabytes=args.sample_megabytes,
        ),
        cleaning=None if args.clean is None else Cleaning.parse(args.clean),
        annotation=_annotation(args),
        skip_empty=args.skip_empty,
        oracle=args.oracle,
        reserve=args.reserve,
        seed=args.seed,
    )
    workers = available_cores() if args.workers is None else args.workers
    try:
        manifest = prepare(settings, args.output, workers=workers, overwrite=args.overwrite)
    except KeyboardInterrupt:
        anew = "begins anew" if args.annotate is None else "goes on behind the annotations that were found"
        print(f"interrupted; nothing is written to {args.output}, and the same command {anew}", file=sys.stderr)
        raise
    if args.json:
        print_json({"output": args.output, **manifest})
        return
    for line in _summary(manifest):
        print(line)
    print(f"wrote {args.output}")


def _tokenizer(name: str) -> str:
    """A type of tokenizer to train, or the path of one that exists, which may be fetched from the hub.

    Raises:
        UnifiedError: it is neither, and the hub has no model of that name, or cannot be asked; or it is a folder with
            checkpoints whose dictionary is missing.
    """
    from unified.corpus.tokenizer_source import TRAINED

    if name in TRAINED:
        return name
    from unified.conversions.named_tokenizers import tokenizer_named

    try:
        return str(tokenizer_named(name))
    except UnifiedError as error:
        if Path(name).exists():
            raise
        # Whoever has mistyped a type wants no word on the hub.
        why = nearest(name, TRAINED) or f", nor a model; {error}"
        raise UnifiedError(f"--tokenizer {name}: none of {', '.join(TRAINED)}{why}") from None


def _annotation(args: argparse.Namespace) -> AnnotationSource | None:
    """The annotating pipeline; None where no option names one."""
    from unified.corpus.annotate import AnnotationSource

    if args.annotate is None:
        if (args.spacy or args.spacy_code) and args.tokenizer != "anna":
            raise UnifiedError(
                "--spacy and --spacy-code need --annotate, which says what to annotate, or --tokenizer anna"
            )
        return None
    if args.spacy is None:
        raise UnifiedError("--annotate needs --spacy PIPELINE, which finds the spans")
    return AnnotationSource(tuple(args.annotate.split(",")), args.spacy, args.spacy_code)


def _corpus(
    args: argparse.Namespace, paths: list[str] | None, targets: list[str] | None, target_option: str
) -> Corpus | None:
    """The corpus that ``paths`` are by the options about pairs; None where there are no paths."""
    from unified.corpus.readers import DocumentCorpus, ParallelCorpus, RowPairCorpus
    from unified.files.rows import FORMATS, has_fields

    if paths is None:
        if targets is not None:
            raise UnifiedError(f"{target_option}: there are no sources to these targets")
        return None
    fields = (args.source_field, args.target_field)
    named = {"--source-field": args.source_field, "--target-field": args.target_field}
    require_different_fields({option: name for option, name in named.items() if name is not None})
    if fields == (None, None) and args.target is None:
        if targets is not None:
            raise UnifiedError(f"{target_option} needs --target: the training text has no targets")
        text_field = "text" if args.text_field is None else args.text_field
        return DocumentCorpus(tuple(paths), text_field, args.chunk_bytes)
    if args.target is None:
        if None in fields:
            raise UnifiedError("--source-field and --target-field go together")
        if targets is not None:
            raise UnifiedError(f"{target_option} and --source-field are two ways to say what the pairs are; use one")
        raw = next((path for path in paths if not has_fields(path)), None)
        if raw is not None:
            raise UnifiedError(
                f"{raw}: --source-field needs one file of rows ({FORMATS}), or --target a file of targets"
            )
        return RowPairCorpus(tuple(paths), *fields, args.chunk_bytes)
    if fields != (None, None):
        raise UnifiedError("--target and --source-field are two ways to say what the pairs are; use one")
    if targets is None or len(targets) != len(paths):
        given = counted(len(targets or []), "file")
        raise UnifiedError(f"{target_option}: {given} for {counted(len(paths), 'file')} of sources")
    packed = next((path for path in (*paths, *targets) if has_fields(path)), None)
    if packed is not None:
        raise UnifiedError(
            f"{packed}: its name says that it holds fields; --source-field and --target-field name those of a pair"
        )
    return ParallelCorpus(tuple(paths), tuple(targets), args.chunk_bytes)


def _require_rows(args: argparse.Namespace) -> None:
    """Refuse options about rows where there are none that they could be for.

    Raises:
        UnifiedError: names the first option.
    """
    named = None if args.text_field is None else f"--text-field {args.text_field}"
    if (args.source_field, args.target_field, args.target) != (None, None, None):
        if named is not None:
            raise UnifiedError(f"{named} is for documents; fields of pairs are named by --source-field, --target-field")
        return
    paths = [*args.inputs, *(args.valid or []), *(args.test or [])]
    if named is not None or args.skip_empty:
        require_any_rows(named or "--skip-empty", paths)


def _summary(manifest: dict[str, Any]) -> list[str]:
    from unified.data.annotations import ORACLE, SENTENCES

    lines = []
    for name, own in manifest["splits"].items():
        skipped = f" ({own['skipped']:,} skipped)" if own["skipped"] else ""
        if manifest["content"] == "documents":
            documents = f"{counted(own['documents'], 'document')}{skipped}, {counted(own['sentences'], 'sentence')}"
            lines.append(f"{name}: {documents}, {_tokens(own)}")
            lines += [f"{name}: {count:,} {kind}" for kind, count in own.get("spans", {}).items()]
        else:
            sides = "; ".join(f"{side} {_tokens(own[side])}" for side in ("source", "target"))
            lines.append(f"{name}: {counted(own['pairs'], 'pair')}{skipped}; {sides}")
            if "spans" in own:
                spans = own["spans"]
                lines.append(
                    f"{name}: {counted(spans[SENTENCES], 'sentence')}, of which the oracle takes {spans[ORACLE]:,}"
                )
    reserved = f", {manifest['reserved']:,} of them reserved" if manifest["reserved"] else ""
    return [*_cleaning(manifest), *lines, f"vocabulary: {counted(manifest['symbols'], 'symbol')}{reserved}"]


def _cleaning(manifest: dict[str, Any]) -> list[str]:
    lines = []
    for name, report in manifest.get("cleaning", {}).items():
        lines.append(f"cleaning of {name}: {_amount(report['input'])}")
        lines += [f"  {rule} removed {_amount(removed)}" for rule, removed in report["removed"].items()]
        chunks = "" if report["chunks"] is None else f", now {counted(report['chunks'], 'document')}"
        lines.append(f"  kept {_amount(report['kept'])}{chunks}")
    return lines


def _amount(counts: dict[str, Any]) -> str:
    return ", ".join(counted(number, unit.removesuffix("s"), unit) for unit, number in counts.items())


def _tokens(counts: dict[str, Any]) -> str:
    share = 100 * counts["unknown"] / counts["tokens"]
    return f"{counted(counts['tokens'], 'token')}, {counts['unknown']:,} of them unknown ({share:.3f} %)"
