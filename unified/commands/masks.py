"""``unified masks``: look at a mask in the terminal or as a picture file.

unified masks show seq2seq --source 4 --target 3
unified masks plot permutation --steps G,1,G,0 --query-stream 1,3 --output stream.svg
unified masks show pack --length 9 seq2seq:2,2 right_to_left:3
"""

from __future__ import annotations

import argparse

from unified import masks
from unified.errors import UnifiedError

NAME = "masks"
HELP = "show or plot an attention mask"

_BY_LENGTH = {
    "bidirectional": "every token sees every token",
    "left_to_right": "every token sees itself and those before it",
    "right_to_left": "every token sees itself and those after it",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    show = verbs.add_parser("show", help="print it as text: a line per query, a column per key, ranks at the margins")
    _add_builders(show)
    plot = verbs.add_parser("plot", help="write it to a file: .svg with labels, .png without")
    for builder in _add_builders(plot):
        builder.add_argument("--output", required=True, metavar="FILE", help="picture to write, .svg or .png")
        builder.add_argument("--tokens", help='labels of the keys, separated by spaces: "[CLS] it rains [SEP]"')


def run(args: argparse.Namespace) -> None:
    mask = _build(args)
    if args.memory:
        mask = mask.with_memory(args.memory)
    if args.without_self:
        mask = mask.without_self()
    if args.verb == "show":
        print(mask)
        return
    masks.plot(mask, args.output, None if args.tokens is None else args.tokens.split())
    print(f"wrote {args.output}")


def _add_builders(parser: argparse.ArgumentParser) -> list[argparse.ArgumentParser]:
    kinds = parser.add_subparsers(dest="builder", metavar="MASK", required=True)
    by_length = [_add_builder(kinds, name, help) for name, help in _BY_LENGTH.items()]
    for builder in by_length:
        builder.add_argument("--length", type=int, required=True, help="tokens")
    seq2seq = _add_builder(kinds, "seq2seq", "the source sees itself, a target token the source and the target so far")
    seq2seq.add_argument("--source", type=int, required=True, help="source tokens")
    seq2seq.add_argument("--target", type=int, required=True, help="target tokens")
    permutation = _add_builder(kinds, "permutation", "tokens become visible in any order")
    permutation.add_argument("--steps", required=True, help="per token G (given) or its step: G,1,G,0")
    permutation.add_argument("--query-stream", metavar="PLACES", help="show the queries that predict these tokens: 1,3")
    pack = _add_builder(kinds, "pack", "several documents in one row")
    pack.add_argument("documents", nargs="+", metavar="MASK:LENGTHS", help="seq2seq:4,3 or left_to_right:5")
    pack.add_argument("--length", type=int, required=True, help="tokens of the row; the rest is padding")
    return [*by_length, seq2seq, permutation, pack]


def _add_builder(kinds: argparse._SubParsersAction, name: str, help: str) -> argparse.ArgumentParser:
    builder = kinds.add_parser(name, help=help, description=help)
    builder.add_argument("--memory", type=int, default=0, metavar="N", help="N memory slots in front")
    builder.add_argument("--without-self", action="store_true", help="no token attends to itself")
    return builder


def _build(args: argparse.Namespace) -> masks.AttentionMask:
    if args.builder in _BY_LENGTH:
        return getattr(masks, args.builder)(args.length)
    if args.builder == "seq2seq":
        return masks.seq2seq(args.source, args.target)
    if args.builder == "pack":
        return masks.pack([_document(document) for document in args.documents], args.length)
    mask = masks.permutation(_steps(args.steps))
    if args.query_stream is None:
        return mask
    return mask.query_stream(_integers("--query-stream", args.query_stream))


def _document(text: str) -> masks.AttentionMask:
    """``seq2seq:4,3`` or ``left_to_right:5``."""
    name, _, lengths = text.partition(":")
    wanted = {**dict.fromkeys(_BY_LENGTH, 1), "seq2seq": 2}
    numbers = _integers(f"the lengths of {text!r}", lengths)
    if wanted.get(name) != len(numbers):
        raise UnifiedError(f"a document must be like seq2seq:4,3 or one of {', '.join(_BY_LENGTH)}:5, got {text!r}")
    return getattr(masks, name)(*numbers)


def _steps(text: str) -> list[int]:
    given = {"G": str(masks.GIVEN), "g": str(masks.GIVEN)}
    return _integers("--steps", ",".join(given.get(part.strip(), part) for part in text.split(",")))


def _integers(name: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError as error:
        raise UnifiedError(f"{name} must be integers separated by commas, got {text!r}") from error
