"""All mutants of a file, from its syntax tree: pure functions on source text.

A replacement is made for the bytes of one node, so that the rest of the file, and its lines, stay as they are.
Messages, logs, annotations and decorators are left alone: tests do not compare texts.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tools.mutants.model import Kind, Mutant

_TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
#: Larger numbers are limits and sizes, whose neighbours are as good.
_LARGEST_COUNT = 10
_LOGS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
_WAITS = {"sleep", "wait", "wait_for", "join", "acquire", "flush", "drain", "gather", "result"}
_LOCKS = ("lock", "mutex", "semaphore", "slot", "exclusive")
_TEXT_METHODS = {"__repr__", "__str__", "describe", "__format__"}
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Fields:
    """Fields of classes, to find one of the same type beside another."""

    #: For each class: its annotated fields with the text of their annotations.
    classes: tuple[Mapping[str, str], ...] = ()

    def siblings(self, name: str) -> tuple[str, ...]:
        """Return the fields that every class with a field of this name has, with the same type."""
        owners = [fields for fields in self.classes if name in fields]
        if not owners:
            return ()
        common = set.intersection(
            *({other for other in fields if other != name and fields[other] == fields[name]} for fields in owners)
        )
        return tuple(sorted(common))


def fields_of(source: str) -> Fields:
    """Return the annotated fields of all classes of a file."""
    classes = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ClassDef):
            fields = {
                each.target.id: ast.unparse(each.annotation)
                for each in node.body
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)
            }
            if len(fields) > 1:
                classes.append(fields)
    return Fields(tuple(classes))


def mutants_of(path: str, source: str, group: str, fields: Fields) -> list[Mutant]:
    """Return all mutants of a file in the order of their places; names are unique."""
    visitor = _Visitor(path, source, group, fields)
    visitor.visit(ast.parse(source))
    found = sorted(visitor.found, key=lambda mutant: (mutant.start, mutant.end, mutant.name))
    seen: Counter[str] = Counter()
    named = []
    for mutant in found:
        seen[mutant.name] += 1
        number = seen[mutant.name]
        named.append(mutant if number == 1 else replace(mutant, name=f"{mutant.name} #{number}"))
    return named


class _Visitor(ast.NodeVisitor):
    def __init__(self, path: str, source: str, group: str, fields: Fields) -> None:
        self.found: list[Mutant] = []
        self._path, self._group, self._fields = path, group, fields
        self._scope: list[str] = []
        self._functions = 0
        self._line_starts = _line_starts(source.encode())

    # ------------------------------------------------------------ where not to look

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._in_scope(node.name, node.body)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name in _TEXT_METHODS:
            return
        self._functions += 1
        self._in_scope(node.name, node.body)
        self._functions -= 1

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815  # named by ast

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_Raise(self, node: ast.Raise) -> None:
        """Messages are made there."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """A text."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """For the type checker."""

    def _in_scope(self, name: str, body: Sequence[ast.stmt]) -> None:
        self._scope.append(name)
        for statement in body:
            self.visit(statement)
        self._scope.pop()

    # ------------------------------------------------------------ faults

    def visit_Compare(self, node: ast.Compare) -> None:
        if self._functions and len(node.ops) == 1:
            turned = ast.Compare(node.left, [_TURNED[type(node.ops[0])]()], node.comparators)
            self._add(Kind.COMPARISON, node, turned)
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if self._functions and type(node.value) is int and abs(node.value) <= _LARGEST_COUNT:
            self._add(Kind.ONE_OFF, node, ast.Constant(node.value + 1))

    def visit_BinOp(self, node: ast.BinOp) -> None:
        if self._functions and isinstance(node.op, ast.Add | ast.Sub) and not _is_text(node.left, node.right):
            other = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            self._add(Kind.ONE_OFF, node, ast.BinOp(node.left, other, node.right))
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        if _is_type_checking(node.test):
            return
        if self._functions:
            self._add(Kind.BRANCH, node.test, ast.Constant(False))
            if node.orelse:
                self._add(Kind.BRANCH, node.test, ast.Constant(True))
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        if self._functions:
            self._add(Kind.BRANCH, node.test, ast.Constant(False))
            self._add(Kind.BRANCH, node.test, ast.Constant(True))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if self._functions:
            for dropped in range(len(node.values)):
                kept = [value for place, value in enumerate(node.values) if place != dropped]
                self._add(Kind.BRANCH, node, kept[0] if len(kept) == 1 else ast.BoolOp(node.op, kept))
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        if self._functions:
            for condition in node.ifs:
                self._add(Kind.BRANCH, condition, ast.Constant(True))
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) or _is_log(value):
            return
        if self._functions and isinstance(value, ast.Await | ast.Call):
            self._add(Kind.WAIT if _is_wait(value) else Kind.CALL, node, ast.Pass())
        self.generic_visit(node)

    def visit_With(self, node: ast.With | ast.AsyncWith) -> None:
        only = node.items[0]
        context = ast.unparse(only.context_expr)
        if self._functions and only.optional_vars is None and any(word in context.lower() for word in _LOCKS):
            free = ast.parse("__import__('contextlib').nullcontext()", mode="eval").body
            self._add(Kind.WAIT, only.context_expr, free)
        self.generic_visit(node)

    visit_AsyncWith = visit_With  # noqa: N815  # named by ast

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if self._functions and isinstance(node.ctx, ast.Load):
            for sibling in self._fields.siblings(node.attr):
                self._add(Kind.FIELD, node, ast.Attribute(node.value, sibling))
        self.generic_visit(node)

    def _add(self, kind: Kind, node: ast.stmt | ast.expr, changed: ast.AST) -> None:
        before, after = _shown(node), _shown(changed)
        if before == after or node.end_lineno is None or node.end_col_offset is None:
            return
        replacement = ast.unparse(changed)
        scope = ".".join(self._scope)
        self.found.append(
            Mutant(
                name=f"{self._path}::{scope}: {kind}: {before} => {after}",
                group=self._group,
                path=self._path,
                kind=kind,
                first_line=node.lineno,
                last_line=node.end_lineno,
                start=self._line_starts[node.lineno - 1] + node.col_offset,
                end=self._line_starts[node.end_lineno - 1] + node.end_col_offset,
                # What stands around a node may bind more tightly than what replaces it.
                replacement=replacement if isinstance(changed, ast.stmt) else f"({replacement})",
            )
        )


def _line_starts(source: bytes) -> list[int]:
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= _LONGEST_SHOWN else f"{text[: _LONGEST_SHOWN - 20]} ... {text[-15:]}"


def _is_text(*nodes: ast.expr) -> bool:
    return any(isinstance(each, ast.JoinedStr | ast.List | ast.Tuple) or _is_string(each) for each in nodes)


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _is_type_checking(node: ast.expr) -> bool:
    return ast.unparse(node).endswith("TYPE_CHECKING")


def _called(node: ast.expr) -> ast.Call | None:
    value = node.value if isinstance(node, ast.Await) else node
    return value if isinstance(value, ast.Call) else None


def _is_log(node: ast.expr) -> bool:
    call = _called(node)
    if call is None or not isinstance(call.func, ast.Attribute) or call.func.attr not in _LOGS:
        return False
    return "log" in ast.unparse(call.func.value).lower()


def _is_wait(node: ast.expr) -> bool:
    call = _called(node)
    if call is None:
        return isinstance(node, ast.Await)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ast.unparse(call.func)
    return isinstance(node, ast.Await) or name in _WAITS
