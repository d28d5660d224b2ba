"""Scores of generated text, from generate's output or from two files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unified.arguments import counted
from unified.cli.commands.scoring import ScoreParsers, add_against, add_parser
from unified.cli.fields import add_field_arguments, field_names, require_fields_in
from unified.errors import UnifiedError
from unified.files.fields import FieldNames

if TYPE_CHECKING:
    from unified.tasks.metrics.bootstrap import Examples
    from unified.tasks.metrics.summaries import PostProcessing

_FILES = """output of fairseq-generate (D- lines are scored against T- lines; several files are shards of one run), or
two plain files, hypotheses and references, one sentence a line; or rows with the field text"""


def add_parsers(scores: ScoreParsers) -> None:
    """Declare the types of scores that this module computes."""
    generation = add_parser(scores, "generation", "BLEU, ROUGE-1/2/L, exact sentences, similarity, repetition")
    _add_options(generation)
    generation.set_defaults(score=_generation)
    generation.add_argument(
        "--no-stemmer", action="store_true", help="compute ROUGE on words as they are, without stemming"
    )
    generation.add_argument(
        "--bleu-tokenizer",
        default="13a",
        metavar="NAME",
        help="tokenizer of sacrebleu: 13a, intl, char, zh, ... (default: 13a)",
    )
    generation.add_argument(
        "--sources",
        metavar="FILE",
        help="file with the sources of the texts, one a line, or rows with the field source: says how many of "
        "the content words come from them",
    )
    add_clean_up(generation)
    questions = add_parser(
        scores, "question-generation", "BLEU-1..4 and ROUGE-L as published for SQuAD question generation"
    )
    _add_options(questions)
    questions.set_defaults(score=_questions)
    questions.add_argument(
        "--sources",
        required=True,
        metavar="FILE",
        help="file with the source sentences, one a line, or rows with the field source; the hypotheses of equal "
        "sources are scored together",
    )
    form = questions.add_mutually_exclusive_group()
    form.add_argument(
        "--penn-treebank",
        action="store_true",
        help="lower-case and tokenize plain hypotheses as the references are, before they are scored",
    )
    form.add_argument(
        "--bert-words",
        action="store_true",
        help="lower-case and tokenize hypotheses of a model with BERT's vocabulary by the rules of UniLM's program, "
        "before they are scored",
    )
    questions.add_argument(
        "--meteor", action="store_true", help="compute METEOR 1.5 too, with its Java program (pip install '.[meteor]')"
    )


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_inputs(parser)
    add_against(parser, runs=False)
    parser.set_defaults(show=table)


def add_clean_up(parser: argparse.ArgumentParser) -> None:
    """Declares options for the sentences of summaries, and for their clean-up before scoring."""
    parser.add_argument(
        "--sentence-separator",
        metavar="TEXT",
        help="text between the sentences of a summary, such as '[X_SEP]'; ROUGE-L is then computed on summaries, "
        "sentence by sentence",
    )
    group = parser.add_argument_group(
        "clean-up", "Rules that were published with UniLM for three data sets of summaries."
    )
    group.add_argument(
        "--post-process",
        choices=("cnndm", "gigaword", "xsum"),
        help="data set by whose published rules the hypotheses are cleaned up before they are scored",
    )
    group.add_argument(
        "--max-words",
        type=int,
        metavar="N",
        help="most words of a summary, the rest is cut off; 0 cuts nothing (default: 70 for cnndm, else 0)",
    )
    group.add_argument(
        "--plain-references",
        action="store_true",
        help="treat the references as plain text and give them the form of the hypotheses",
    )


def cleaned(
    args: argparse.Namespace, hypotheses: list[str], references: list[list[str]]
) -> tuple[list[str], list[list[str]], str | None]:
    """Hypotheses and references after the clean-up of :func:`add_clean_up`, and a description of it.

    Raises:
        UnifiedError: options do not go together.
    """
    rules, separator = _post_processing(args), args.sentence_separator
    if separator == "":
        raise UnifiedError("--sentence-separator is empty; give the text between sentences, such as '[X_SEP]'")
    if rules is None:
        return hypotheses, references, None
    if args.plain_references:
        references = [[rules.in_form(text, separator) for text in group] for group in references]
    return [rules(hypothesis, separator) for hypothesis in hypotheses], references, str(rules)


def _post_processing(args: argparse.Namespace) -> PostProcessing | None:
    from unified.tasks.metrics.summaries import POST_PROCESSING

    if args.post_process is None:
        if args.max_words is not None or args.plain_references:
            raise UnifiedError("--max-words and --plain-references go with --post-process")
        return None
    rules = POST_PROCESSING[args.post_process]
    if rules.fewest and args.sentence_separator is None:
        raise UnifiedError(f"--post-process {args.post_process} drops sentences; give --sentence-separator")
    if args.max_words is not None and args.max_words < 0:
        raise UnifiedError(f"--max-words must be 0 or a number of words, got {args.max_words}")
    return rules if args.max_words is None else replace(rules, max_words=args.max_words)


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Options of :func:`read_inputs`."""
    parser.add_argument("predictions", nargs="+", metavar="FILE", help=_FILES)
    parser.add_argument(
        "--references",
        nargs="+",
        default=[],
        metavar="FILE",
        help="references, one a line, instead of T- lines or a second file; with several files a sentence has several "
        "references; files of rows (CSV, Parquet, JSON lines, ...) have them in the field references, or target, where "
        "a list of texts is several",
    )
    add_field_arguments(parser, "target")


def read_inputs(args: argparse.Namespace) -> tuple[list[str], list[list[str]]]:
    """Hypotheses, and for each the list of its references, from files of any format; rows with ids are matched by them.

    Raises:
        UnifiedError: a file cannot be read, the files do not go together, or their lengths differ.
    """
    from unified.tasks.metrics import outputs

    files, references = args.predictions, args.references
    for path in references or files[1:] or files:
        require_fields_in(path, args)
    fields = replace(field_names(args), parts=outputs.TARGET.parts)
    generated = [outputs.is_generate_output(path) for path in files]
    if all(generated):
        hypotheses, own = outputs.read_generate_output(files, need_references=not references)
        columns, names = _references(references, fields, references), references
        if not references:
            columns, names = [[[text] for text in own]], [" ".join(files)]
    else:
        plain = [*files, *references]
        if any(generated) or len(files) != (1 if references else 2):
            raise UnifiedError(
                "expected output of fairseq-generate (one file or its shards), two plain files (hypotheses, "
                f"references), or one plain file with --references; got {' '.join(files)}"
            )
        hypotheses, names = outputs.read_hypotheses(plain[0]), plain[1:]
        columns = _references(names, fields, plain)
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(hypotheses):
            raise UnifiedError(
                f"{name}: {counted(len(column), 'reference')} for "
                f"{counted(len(hypotheses), 'hypothesis', 'hypotheses')} in {files[0]}"
            )
    return hypotheses, [[text for own in group for text in own] for group in zip(*columns, strict=True)]


def _references(paths: Sequence[str], fields: FieldNames, files: Sequence[str]) -> list[list[list[str]]]:
    """The references of each of ``paths``, in the order of the first of ``files`` whose rows have ids."""
    from unified.tasks.metrics import outputs

    columns = [outputs.read_references(path, fields) for path in paths]  # before the ids: it says which rows are wrong
    first, ids = _with_ids(files)
    return [outputs.matched(path, column, first, ids) for path, column in zip(paths, columns, strict=True)]


def _with_ids(files: Sequence[str]) -> tuple[str, list[str] | None]:
    """The first of several files whose rows have ids, and these; no ids where no file has any."""
    from unified.tasks.metrics import outputs

    found = ((path, outputs.read_ids(path)) for path in files)
    return next(((path, ids) for path, ids in found if ids is not None), ("", None))


def _require_references(args: argparse.Namespace) -> None:
    """Refuse ``--against`` where the second of two plain files has the references.

    Raises:
        UnifiedError: asks for ``--references``.
    """
    from unified.tasks.metrics import outputs

    if args.against and not args.references and not outputs.is_generate_output(args.predictions[0]):
        raise UnifiedError("--against: name the files of references, which both systems share, with --references")


def _generation(args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.examples import Noted
    from unified.tasks.metrics.generation import GeneratedTexts

    hypotheses, references, sources = _read_for_both(args)
    hypotheses, references, clean_up = cleaned(args, hypotheses, references)
    texts = GeneratedTexts(
        hypotheses,
        references,
        use_stemmer=not args.no_stemmer,
        bleu_tokenizer=args.bleu_tokenizer,
        sentence_separator=args.sentence_separator,
        sources=sources,
    )
    return Noted(texts, {"post_process": clean_up}) if clean_up else texts


def _questions(args: argparse.Namespace) -> Examples:
    from unified.tasks.metrics.question_generation import GeneratedQuestions, from_bert_words, penn_treebank

    hypotheses, references, sources = _read_for_both(args)
    if args.penn_treebank:
        hypotheses = [penn_treebank(hypothesis) for hypothesis in hypotheses]
    if args.bert_words:
        hypotheses = [from_bert_words(hypothesis) for hypothesis in hypotheses]
    form = "penn-treebank" if args.penn_treebank else "bert-words" if args.bert_words else "none"
    assert sources is not None  # the option is required
    return GeneratedQuestions(hypotheses, references, sources, args.meteor, form)


def _read_for_both(args: argparse.Namespace) -> tuple[list[str], list[list[str]], list[str] | None]:
    """Hypotheses, their references, and their sources where there are any, in an order that two systems share.

    It is that of the file of references where their rows and those of the hypotheses have ids, else the hypotheses'.

    Raises:
        UnifiedError: as :func:`read_inputs`, or the references are not shared by both systems.
    """
    from unified.tasks.metrics import outputs

    _require_references(args)
    hypotheses, references = read_inputs(args)
    sources = None if args.sources is None else _sources(args, hypotheses)
    shared = args.references[0] if args.references else args.predictions[0]
    order = outputs.matched(args.predictions[0], [*range(len(hypotheses))], shared, outputs.read_ids(shared))
    return (
        [hypotheses[at] for at in order],
        [references[at] for at in order],
        None if sources is None else [sources[at] for at in order],
    )


def _sources(args: argparse.Namespace, hypotheses: list[str]) -> list[str]:
    """The texts of ``--sources``, one for each hypothesis.

    Raises:
        UnifiedError: the file cannot be read, or has more or fewer of them.
    """
    from unified.tasks.metrics import outputs

    sources = outputs.read_sources(args.sources)
    sources = outputs.matched(args.sources, sources, *_with_ids([*args.predictions, *args.references]))
    if len(sources) != len(hypotheses):
        raise UnifiedError(
            f"{args.sources}: {counted(len(sources), 'source')} for "
            f"{counted(len(hypotheses), 'hypothesis', 'hypotheses')} in {args.predictions[0]}"
        )
    return sources


_LABELS = {
    "sentences": "sentences",
    "questions": "questions",
    "sources": "source sentences",
    "exact_match": "exact sentences, %",
    "character_similarity": "character similarity, %",
    **{f"bleu{n}": f"BLEU-{n}" for n in (1, 2, 3, 4)},
    "bleu": "BLEU",
    "rouge1": "ROUGE-1",
    "rouge2": "ROUGE-2",
    "rougeL": "ROUGE-L",
    "meteor": "METEOR",
    "repeated_bigrams": "repeated bigrams, %",
    "source_words": "content words from the source, %",
    "bleu_signature": "BLEU signature",
    "rouge_signature": "ROUGE signature",
    "signature": "signature",
    "post_process": "clean-up",
}


def table(scores: dict[str, Any]) -> str:
    """The scores, one a line, beside those of another system where there is one, with notes on their limits."""
    intervals = scores.get("intervals", {})
    rows = [
        (_LABELS[name], _value(value, intervals.get(name)) + _beside(name, scores.get("against")))
        for name, value in scores.items()
        if name in _LABELS
    ]
    width = max(len(label) for label, _ in rows)
    lines = [f"{label:<{width}}  {value}" for label, value in rows]
    if (intervals or "against" in scores) and "meteor" in scores:
        lines.append("note: METEOR has no interval, because its Java program scores all texts at once")
    without_words = scores.get("without_words", 0)
    if without_words:
        found = counted(without_words, "reference")
        lines.append(f"note: {found} without an ASCII letter or digit, for which ROUGE is always 0")
    return "\n".join(lines)


def _beside(name: str, against: Mapping[str, Any] | None) -> str:
    """The other system's score, and how far this one is above it, with the interval."""
    if against is None or name not in against["differences"]:
        return ""
    interval = against["intervals"].get(name)
    bounds = "" if interval is None else f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
    return f"  against {against['scores'][name]:.2f}: {against['differences'][name]:+.2f}{bounds}"


def _value(value: int | float | str, interval: list[float] | None) -> str:
    if isinstance(value, str):
        return value
    text = f"{value:,d}" if isinstance(value, int) else f"{value:.2f}"
    return text if interval is None else f"{text}  [{interval[0]:.2f}, {interval[1]:.2f}]"
