"""Mutants of a module: sources that differ from it by one small mistake.

Left alone is what no behaviour depends on or what is no code of its own: docstrings, type hints and type variables,
imports, assertions, messages of errors and of the log, texts for people (strings with a blank), and decorators that
only cache or declare.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

_COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: (r"is", "is not"), ast.IsNot: (r"is\s+not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: (r"not\s+in", "in"),
}  # fmt: skip
_ARITHMETIC = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "//"), ast.FloorDiv: ("//", "*"), ast.Div: ("/", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.BitOr: ("|", "&"), ast.BitAnd: ("&", "|"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
}  # fmt: skip
#: Names of functions and attributes whose calls only tell people something.
_TELLING = {"print", "warn", "debug", "info", "warning", "error", "exception", "log_once", "announce"}
_NO_BEHAVIOUR = {"overload", "abstractmethod", "override", "final", "cache", "lru_cache", "cached_property", "wraps"}
#: Names of calls that only type checkers read.
_FOR_CHECKERS = {"TypeVar"}
_FOR_PEOPLE = {"help", "metavar", "metadata", "description", "epilog", "desc"}
#: Names of calls and of their arguments that only refuse mistakes of programmers.
_GUARDS = {("dataclass", "frozen"), ("zip", "strict")}


@dataclass(frozen=True)
class Mutant:
    """One mistake.

    Attributes:
        operator: kind of mistake.
        line: of the original source, counted from 1, where it stands.
        lines: those of its statement, or, of the header of a function, of its body; empty for what runs when the module
            is imported.
        text: the line, stripped.
        before, after: the changed piece of code and what stands in its place.
        edits: (start, end, replacement) in characters of the original source, in order.
        part: hash of the text of the statement of the module that it stands in: a class, a function, a constant.
        begin: character of the original source at which that text begins.
        number: of this one among equal mistakes in lines of equal text, in the order of the module.
    """

    operator: str
    line: int
    lines: range
    text: str
    before: str
    after: str
    edits: tuple[tuple[int, int, str], ...]
    part: str
    begin: int
    number: int = 1

    @property
    def said(self) -> str:
        """The mistake in words; with :attr:`text` it tells the mutants of one source apart."""
        number = f" ({self.number})" if self.number > 1 else ""
        return f"{self.operator}: {self.before} -> {self.after}{number}"

    @property
    def key(self) -> str:
        """Tells the mutants of one part apart. A change of other parts does not change it."""
        edits = ((start - self.begin, end - self.begin, new) for start, end, new in self.edits)
        return " ".join(f"{self.operator} {start}-{end} {new!r}" for start, end, new in edits)

    @property
    def is_in_a_function(self) -> bool:
        """Whether it stands in the body of a function, not in what makes a function or runs at import."""
        return self.line in self.lines

    def applied(self, source: str) -> str:
        """The mutated source."""
        for start, end, new in reversed(self.edits):
            source = source[:start] + new + source[end:]
        return source

    def is_valid(self, source: str) -> bool:
        """Whether the mutated source is Python."""
        try:
            compile(self.applied(source), "<mutant>", "exec", dont_inherit=True)
        except SyntaxError:
            return False
        return True

    def __str__(self) -> str:
        return f"line {self.line}, {self.said}"


def mutants_of(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines; a few are no valid Python."""
    times = Counter[tuple[str, str]]()
    numbered = []
    for one in sorted(_Finder(source).found, key=lambda one: (one.line, one.edits)):
        times[one.text, one.said] += 1
        numbered.append(replace(one, number=times[one.text, one.said]))
    return numbered


class _Finder(ast.NodeVisitor):
    """Walks through the parts of a module that mistakes are put into."""

    def __init__(self, source: str):
        self.source, self.found = source, list[Mutant]()
        self._lines_of, self._depth = range(0), 0
        self._part, self._begin = "", 0
        self._lines = source.splitlines(keepends=True)
        self._starts = [0]
        for line in self._lines:
            self._starts.append(self._starts[-1] + len(line))
        self.visit(ast.parse(source))

    def visit(self, node: ast.AST) -> None:
        if not isinstance(node, ast.stmt):
            super().visit(node)
            return
        before = self._lines_of
        if isinstance(node, ast.FunctionDef):
            self._depth += 1
            self._lines_of = range(node.body[0].lineno, node.end_lineno + 1)
        elif self._depth:
            header = isinstance(node, ast.If | ast.For | ast.While | ast.With | ast.Try)
            self._lines_of = range(node.lineno, node.body[0].lineno if header else node.end_lineno + 1)
        super().visit(node)
        self._depth -= isinstance(node, ast.FunctionDef)
        self._lines_of = before

    # Places

    def _index(self, line: int, column: int) -> int:
        """Index of a character, of a line and a number of bytes in it."""
        return self._starts[line - 1] + len(self._lines[line - 1].encode()[:column].decode())

    def _span(self, node: ast.AST) -> tuple[int, int]:
        return self._index(node.lineno, node.col_offset), self._index(node.end_lineno, node.end_col_offset)

    def _add(self, operator: str, node: ast.AST, edits: Sequence[tuple[int, int, str]]) -> None:
        start, end = edits[0][0], edits[-1][1]
        mutated = self.source[start:end]
        for first, last, new in reversed(edits):
            mutated = mutated[: first - start] + new + mutated[last - start :]
        before, after = (" ".join(text.split())[:80] for text in (self.source[start:end], mutated))
        line = self.source.count("\n", 0, start) + 1
        text = self._lines[line - 1].strip()
        self.found.append(
            Mutant(operator, line, self._lines_of, text, before, after or "nothing", tuple(edits),
                   self._part, self._begin)
        )  # fmt: skip

    def _replace(self, operator: str, node: ast.AST, new: str) -> None:
        self._add(operator, node, [(*self._span(node), new)])

    def _between(self, operator: str, left: ast.AST, right: ast.AST, pattern: str, new: str) -> tuple[int, int, str]:
        """The edit that replaces an operator, which stands between two operands."""
        start, end = self._span(left)[1], self._span(right)[0]
        match = re.compile(rf"(?:#[^\n]*|[^#])*?({pattern})").match(self.source, start, end)
        assert match is not None, f"no {pattern} in {self.source[start:end]!r}"
        return match.start(1), match.end(1), new

    # What is left alone

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:  # noqa: N802
        """Mostly a message; before Python 3.12 its parts have no places either."""

    def visit_Assert(self, node: ast.Assert) -> None:  # noqa: N802
        """Says what is true anyway."""

    def visit_Import(self, node: ast.Import) -> None:  # noqa: N802
        """Without it nothing works."""

    visit_ImportFrom = visit_Import  # noqa: N815

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:  # noqa: N802
        if node.value is not None:
            self.visit(node.value)

    def visit_arguments(self, node: ast.arguments) -> None:
        for default in (*node.defaults, *filter(None, node.kw_defaults)):
            self.visit(default)

    def visit_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        if not any(isinstance(target, ast.Name) and target.id in ("__all__", "__slots__") for target in node.targets):
            self._dropped(node, all(isinstance(one, ast.Attribute | ast.Subscript) for one in node.targets))
            self.visit(node.value)

    # Statements

    def _body(self, nodes: Sequence[ast.stmt]) -> None:
        for node in nodes:
            is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if not is_text:  # a docstring, or ...
                self.visit(node)

    def visit_Module(self, node: ast.Module) -> None:  # noqa: N802
        for one in node.body:
            decorators = one.decorator_list if isinstance(one, ast.ClassDef | ast.FunctionDef) else []
            self._begin = self._starts[min(part.lineno for part in (one, *decorators)) - 1]
            text = self.source[self._begin : self._starts[one.end_lineno]]
            self._part = hashlib.sha256(text.encode()).hexdigest()[:10]
            self._body([one])

    def visit_ClassDef(self, node: ast.ClassDef) -> None:  # noqa: N802
        self._decorators(node.decorator_list)
        if not any(_name_of(base) == "Protocol" for base in node.bases):
            self._body(node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:  # noqa: N802
        self._decorators(node.decorator_list)
        if not any(_name_of(one) in ("overload", "abstractmethod") for one in node.decorator_list):
            self.visit(node.args)
            self._body(node.body)

    def _decorators(self, nodes: Sequence[ast.expr]) -> None:
        for node in nodes:
            if _name_of(node) not in _NO_BEHAVIOUR:
                start, end = self._span(node)
                begin = self.source.rindex("@", 0, start)
                self._add("decorator removed", node, [(begin, end, "")])
                if isinstance(node, ast.Call):
                    self.visit_Call(node)

    def _dropped(self, node: ast.stmt, may: bool = True) -> None:
        if may:
            self._replace("statement dropped", node, "pass")

    def visit_Expr(self, node: ast.Expr) -> None:  # noqa: N802
        if isinstance(node.value, ast.Call) and not _tells(node.value):
            self._dropped(node)
        self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:  # noqa: N802
        self._dropped(node)  # its message is left alone

    def visit_Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self._dropped(node)

    visit_Break = visit_Continue  # noqa: N815

    def visit_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        self._dropped(node)
        if type(node.op) in _ARITHMETIC:
            old, new = _ARITHMETIC[type(node.op)]
            edit = self._between("arithmetic", node.target, node.value, re.escape(old) + "=", new + "=")
            self._add("arithmetic", node, [edit])
        self.visit(node.value)

    def visit_Return(self, node: ast.Return) -> None:  # noqa: N802
        if node.value is not None:
            if not (isinstance(node.value, ast.Constant) and node.value.value is None):
                self._replace("return value", node.value, "None")
            self.visit(node.value)

    def visit_If(self, node: ast.If) -> None:  # noqa: N802
        if _name_of(node.test) == "TYPE_CHECKING":
            self._body(node.orelse)
            return
        self._negated(node.test)
        self.visit(node.test)
        self._body(node.body)
        self._body(node.orelse)

    def visit_While(self, node: ast.While) -> None:  # noqa: N802
        self.visit(node.test)
        self._body(node.body)

    # Expressions

    def _negated(self, test: ast.expr) -> None:
        """Conditions without an operator of their own, which has mutants anyway."""
        if isinstance(test, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            start, end = self._span(test)
            self._add("condition negated", test, [(start, end, f"(not {self.source[start:end]})")])

    def visit_IfExp(self, node: ast.IfExp) -> None:  # noqa: N802
        self._negated(node.test)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:  # noqa: N802
        operands = pairwise([node.left, *node.comparators])
        for (left, right), kind in zip(operands, node.ops, strict=True):
            old, new = _COMPARISONS[type(kind)]
            self._add("comparison", node, [self._between("comparison", left, right, old, new)])
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:  # noqa: N802
        if type(node.op) in _ARITHMETIC:
            old, new = _ARITHMETIC[type(node.op)]
            self._add("arithmetic", node, [self._between("arithmetic", node.left, node.right, re.escape(old), new)])
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:  # noqa: N802
        old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        self._add("and, or", node, [self._between("and, or", *pair, old, new) for pair in pairwise(node.values)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:  # noqa: N802
        if isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            self._add("not, minus", node, [(self._span(node)[0], self._span(node.operand)[0], "")])
        self.visit(node.operand)

    def visit_Call(self, node: ast.Call) -> None:  # noqa: N802
        if _tells(node) or _name_of(node) in _FOR_CHECKERS:
            return
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            if keyword.arg in _FOR_PEOPLE or (_name_of(node), keyword.arg) in _GUARDS:
                continue
            if keyword.arg is not None:
                self._add("argument dropped", keyword, [self._without(keyword, node)])
            self.visit(keyword.value)

    def _without(self, keyword: ast.keyword, call: ast.Call) -> tuple[int, int, str]:
        start, end = self._span(keyword)
        behind = re.compile(r"\s*\)?\s*,\s*").match(self.source, end)
        if behind and ")" not in behind.group():
            return start, behind.end(), ""
        comma = re.compile(r",\s*$").search(self.source[:start])
        return (comma.start() if comma else start), end, ""

    def visit_Constant(self, node: ast.Constant) -> None:  # noqa: N802
        changed = _another(node.value)
        if changed is not None:
            self._replace("constant", node, changed)


def _another(value: object) -> str | None:
    """Another constant of the same type; None for constants that are left alone."""
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    if isinstance(value, float):
        return repr(value * 2 + 1 if value in (0.0, float("inf")) else value * 2)
    if isinstance(value, str) and " " not in value:
        return repr(f"{value}XX")
    return None


def _name_of(node: ast.AST) -> str:
    """The last name of ``a.b.name`` or ``a.b.name(...)``; empty for anything else."""
    if isinstance(node, ast.Call):
        return _name_of(node.func)
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _tells(node: ast.Call) -> bool:
    name = _name_of(node)
    is_error = isinstance(node.func, ast.Name) and name.endswith(("Error", "Warning"))
    return name in _TELLING or is_error
