"""``unified masks``: look at a mask in the terminal or as a picture file.

unified masks show seq2seq 4 3
unified masks show sliding_window 8 left=2 right=1 --memory 3
unified masks plot permutation 0,2,0,1 --query-stream 1,3 --output stream.svg
unified masks show pack 9 seq2seq:2,2 permutation:2,0,1
unified masks show my_module:my_builder 6
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from unified.cli.option_names import with_options
from unified.cli.output import (
    add_json_argument,
    add_overwrite_argument,
    output_file,
    print_json,
    require_output_file,
)
from unified.cli.values import non_negative
from unified.errors import UnifiedError
from unified.files.whole import write_whole_bytes
from unified.notation import imported

if TYPE_CHECKING:
    from unified.masks import AttentionMask

#: Options by the arguments of a picture.
_OPTIONS = {"path": "--output", "tokens": "--tokens"}

HELP = "show or plot an attention mask"

Builder: TypeAlias = "Callable[..., AttentionMask]"
#: Types of a builder's arguments.
Argument = int | list[int] | None

#: Functions of :mod:`unified.masks` and what they take, written out so that help does not wait for torch.
BUILDERS = {
    "bidirectional": "(length)",
    "left_to_right": "(length)",
    "causal": "(length)",
    "right_to_left": "(length)",
    "seq2seq": "(source_length, target_length)",
    "prefix_lm": "(source_length, target_length)",
    "permutation": "(steps)",
    "sliding_window": "(length, left, right=0)",
    "block_causal": "(length, size)",
    "block_diffusion": "(length, size)",
    "pseudo_masked": "(steps)",
    "tree": "(parents)",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    listed = "\n".join(f"  {name}{parameters}" for name, parameters in BUILDERS.items())
    for verb, what in (
        ("show", "print a mask as text: a line per query, a column per key, steps at the margins"),
        ("plot", "write a picture of a mask to a file: .svg with labels, .png without"),
    ):
        own = verbs.add_parser(
            verb,
            help=what,
            description=what,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            epilog=f"masks:\n{listed}\n  pack(length, MASK:ARGUMENTS ...), several documents in one row",
        )
        own.add_argument("mask", metavar="MASK", help="name of a mask, or module:function of a builder of your own")
        own.add_argument(
            "arguments",
            nargs="*",
            metavar="ARGUMENT",
            help="argument of the mask, by position or name: 4, none, 0,2,0,1 or name=4",
        )
        own.add_argument(
            "--query-stream",
            metavar="INDICES",
            help="tokens whose predicting queries are shown instead of the content stream, such as 1,3",
        )
        own.add_argument(
            "--sinks",
            type=non_negative,
            default=0,
            metavar="N",
            help="number of first keys that stay visible to all later queries (default: 0)",
        )
        own.add_argument(
            "--memory",
            type=non_negative,
            default=0,
            metavar="N",
            help="number of memory slots in front of the row (default: 0)",
        )
        add_json_argument(own)
        own.add_argument("--without-self", action="store_true", help="hide every token from itself")
        if verb == "plot":
            own.add_argument("--output", required=True, metavar="FILE", help="picture to write, .svg or .png")
            add_overwrite_argument(own)
            own.add_argument("--tokens", help='labels of the keys, separated by spaces: "[CLS] it rains [SEP]"')


def run(args: argparse.Namespace) -> None:
    """Run the command with parsed options."""
    from unified.cli.commands.showing.mask_fields import fields_of

    if args.verb == "plot":
        require_output_file(args)
    try:
        mask = _changed(_build(args.mask, args.arguments), args)
        if args.verb == "plot":
            write_whole_bytes(output_file(args), _picture(mask, args))
            if not args.json:
                print(f"wrote {args.output}")
        elif not args.json:
            print(mask)
        if args.json:
            print_json(({"output": args.output} if args.verb == "plot" else {}) | fields_of(mask))
    except ValueError as error:  # what masks raise of arguments that make no mask or no picture
        raise UnifiedError(str(error)) from error


def _picture(mask: AttentionMask, args: argparse.Namespace) -> bytes:
    """Content of the file of a picture."""
    from unified.masks.pictures import picture_content

    try:
        return picture_content(mask, args.output, None if args.tokens is None else args.tokens.split())
    except ValueError as error:
        raise UnifiedError(with_options(str(error), _OPTIONS)) from None


def _changed(mask: AttentionMask, args: argparse.Namespace) -> AttentionMask:
    """The mask with the additions that the options name."""
    if args.query_stream is not None:
        targets = _integers("--query-stream", args.query_stream)
        try:
            mask = mask.query_stream(targets)
        except ValueError as error:
            raise UnifiedError(f"--query-stream {args.query_stream}: {error}") from None
    if args.sinks:
        mask = mask.with_sinks(args.sinks)
    if args.memory:
        mask = mask.with_memory(args.memory)
    return mask.without_self() if args.without_self else mask


def _build(name: str, arguments: list[str]) -> AttentionMask:
    from unified import masks

    if name != "pack":
        return _call(name, _builder(name), arguments)
    if not arguments:
        raise UnifiedError("pack needs the length of the row and its documents: pack 9 seq2seq:2,2 right_to_left:3")
    length, *documents = arguments
    return masks.pack([_document(document) for document in documents], _whole("the length of the row", length))


def _document(text: str) -> AttentionMask:
    """``seq2seq:4,3``, ``permutation:0,2,1``, whose only argument is the list, or ``my_module:my_builder:6``."""
    name, *rest = text.split(":")
    # What follows the first colon is a function only where no mask is known by the name and it can be one.
    if name not in BUILDERS and rest and rest[0].isidentifier():
        name = f"{name}:{rest.pop(0)}"
    builder, arguments = _builder(name), ":".join(rest)
    if not arguments:
        return _call(name, builder, [])
    takes_one = len(inspect.signature(builder).parameters) == 1
    return _call(name, builder, [arguments] if takes_one else arguments.split(","))


def _builder(name: str) -> Builder:
    from unified import masks

    if name in BUILDERS:
        return vars(masks)[name]

    def refusal(problem: str) -> UnifiedError:
        return UnifiedError(f"mask {name!r}: {problem}")

    builder = imported(name, "mask", (*BUILDERS, "pack"), refusal, form="package.module:function")
    if not callable(builder):
        raise refusal(f"{name.rpartition(':')[2]} is not a function")
    return builder


def _call(name: str, builder: Builder, arguments: list[str]) -> AttentionMask:
    from unified.masks import AttentionMask

    positional: list[Argument] = []
    names: dict[str, Argument] = {}
    for number, argument in enumerate(arguments, 1):
        field, equals, value = argument.rpartition("=")
        if equals and field in names:
            raise UnifiedError(f"{name}: {field} is given twice")
        if equals:
            names[field] = _argument(f"{name}: {field}", value)
        else:
            positional.append(_argument(f"{name}: argument {number}", value))
    try:
        bound = inspect.signature(builder).bind(*positional, **names)
    except TypeError as error:
        raise UnifiedError(f"{name}: {error}; it takes {signature_of(builder)}") from None
    mask = builder(*bound.args, **bound.kwargs)
    if not isinstance(mask, AttentionMask):
        raise UnifiedError(f"{name} must return an AttentionMask of unified.masks, got {type(mask).__name__}")
    return mask


def _argument(name: str, value: str) -> Argument:
    if value.lower() == "none":
        return None
    return _integers(name, value) if "," in value else _whole(name, value)


def signature_of(builder: Builder) -> str:
    """Arguments of a builder as help shows them, such as ``(length, left, right=0)``."""
    parameters = inspect.signature(builder).parameters.values()
    return f"({', '.join(str(parameter.replace(annotation=parameter.empty)) for parameter in parameters)})"


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise UnifiedError(f"{name} must be an integer, got {text!r}") from None


def _integers(name: str, text: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise UnifiedError(f"{name} must be integers separated by commas, got {text!r}") from None
