"""Check one SELECT: only plain ones over the records alone may transform them."""

from __future__ import annotations

from sqlglot import exp

from mirror_lib.features.transforms.model import RECORDS, TARGET_COLUMNS
from mirror_lib.features.transforms.sql.expression_check import ONE_RECORD, CheckedSql, ExpressionCheck, start_of
from mirror_lib.features.transforms.sql.parser import DIALECT, Parsed
from mirror_lib.features.transforms.sql.text import Call
from mirror_lib.problems import Severity

_TARGETS = ", ".join(TARGET_COLUMNS)
#: Arguments of sqlglot's Select that a transform may have; all others are rejected.
_ALLOWED_CLAUSES = frozenset({"expressions", "from", "where", "laterals"})
#: Names of the others, and the words that they begin with.
_CLAUSES = {
    "joins": ("a join", ("join",)),
    "group": ("GROUP BY", ("group by", "group")),
    "having": ("HAVING", ("having",)),
    "order": ("ORDER BY", ("order by", "order")),
    "sort": ("SORT BY", ("sort by", "sort")),
    "cluster": ("CLUSTER BY", ("cluster by", "cluster")),
    "distribute": ("DISTRIBUTE BY", ("distribute by", "distribute")),
    "limit": ("LIMIT", ("limit",)),
    "offset": ("OFFSET", ("offset",)),
    "distinct": ("DISTINCT", ("distinct",)),
    "windows": ("WINDOW", ("window",)),
    "with": ("WITH", ("with",)),
    "sample": ("TABLESAMPLE", ("tablesample",)),
    "pivots": ("PIVOT", ("pivot", "unpivot")),
    "hint": ("a hint", ("/*+",)),
    "db": ("another table", ()),
    "catalog": ("another table", ()),
}


_INSTEAD = {"another table": f"read only from {RECORDS}", "a hint": "remove it"}


class SelectCheck(ExpressionCheck):
    """Checks one SELECT."""

    def __init__(self, text: str, parsed: Parsed) -> None:
        super().__init__(text, parsed, "the SELECT")
        self._sets: list[str] = []
        self._generators: list[Call] = []

    def run(self, tree: exp.Expr | None) -> None:
        if not isinstance(tree, exp.Select):
            first = self._words[0]
            what = "a set operation" if isinstance(tree, exp.SetOperation) else "anything but one plain SELECT"
            word = self._word("union", "intersect", "except", "minus") or first
            self._refuse(what, word, f"write SELECT ... FROM {RECORDS}")
            return
        pipe = self._word("|>")
        if pipe is not None:
            self._refuse("a pipe", pipe, "write one plain SELECT")
        self._look_at_clauses(tree)
        self._look_at_source(tree)
        self._look_at_laterals(tree)
        super().run(tree)
        if not tree.expressions:
            self._refuse("a SELECT without columns to set", self._words[0], f"it may set {_TARGETS}")
        for output in tree.expressions:
            self._look_at_output(output)
        if len(self._generators) > 1:
            second = self._generators[1]
            advice = "write the others as LATERAL VIEW"
            self._refuse_call(second, "one SELECT generates several records in two ways", advice)

    def result(self) -> CheckedSql:
        checked = super().result()
        many = bool(self._generators or self._lateral)
        return CheckedSql(
            checked.text,
            checked.findings,
            checked.reads,
            checked.fields,
            checked.non_determinism,
            tuple(self._sets),
            many,
        )

    def _look_at_clauses(self, node: exp.Expr) -> None:
        for key, value in node.args.items():
            name = key.rstrip("_")
            if not value or name in _ALLOWED_CLAUSES or (isinstance(node, exp.Table) and name in ("this", "alias")):
                continue
            what, words = _CLAUSES.get(name, (f"the clause {name.upper()}", (name,)))
            why = _INSTEAD.get(what, ONE_RECORD)
            self._refuse(what, self._word(*words) or self._word("from"), why)

    def _look_at_source(self, tree: exp.Select) -> None:
        source = tree.find(exp.From)
        if source is None or source.parent is not tree:
            word = self._words[-1]
            self._add_at(Severity.ERROR, "the SELECT has no FROM", f"write FROM {RECORDS}", word.end - 1, 1)
            return
        table = source.this
        if not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
            self._refuse("a subquery or a function as a table", self._word("from"), f"read only from {RECORDS}")
            return
        if table.name.lower() != RECORDS and not table.args.get("db"):
            start = start_of(table)
            sentence = f"the SELECT reads the table {table.name}"
            self._add_at(Severity.ERROR, sentence, f"read only from {RECORDS}", start, len(table.name))
        if table.alias:
            self._tables = frozenset({table.alias.lower()})
        self._look_at_clauses(table)

    def _look_at_laterals(self, tree: exp.Select) -> None:
        for lateral in tree.find_all(exp.Lateral):
            if not lateral.args.get("view"):
                self._refuse("a lateral join", self._word("lateral"), "write LATERAL VIEW with explode")
                continue
            alias = lateral.args.get("alias")
            table = alias.name.lower() if alias is not None else ""
            columns = alias.args.get("columns") or () if alias is not None else ()
            # Without names they are Spark's own: `col`, or `pos` and `col`, or `key` and `value`.
            names = frozenset(each.name.lower() for each in columns) or frozenset({"col", "pos"})
            self._lateral[table or f"\0{len(self._lateral)}"] = names

    def _look_at_generator(self, call: Call) -> None:
        if call.before in ("view", "outer"):
            return
        if call.depth == 0 and call.before in ("select", ",") and not self._is_behind_where(call):
            self._generators.append(call)
            return
        advice = "write it as LATERAL VIEW, whose columns expressions may use"
        self._refuse_call(call, f"{call.name} is not allowed inside an expression", advice)

    def _is_behind_where(self, call: Call) -> bool:
        where = self._word("where")
        return where is not None and call.start > where.start

    def _look_at_output(self, output: exp.Expr) -> None:
        if isinstance(output, exp.Star) or (isinstance(output, exp.Column) and isinstance(output.this, exp.Star)):
            # It is rejected in any position.
            return
        names = _output_names(output)
        if not names:
            start = start_of(output)
            advice = f"give it a name with AS: one of {_TARGETS}"
            self._add_at(Severity.ERROR, f"an output of the SELECT has no name: {_shorten(output)}", advice, start, 1)
        for name in names:
            if name.lower() not in TARGET_COLUMNS:
                advice = f"the SELECT may set {_TARGETS}"
                sentence = f"a transform cannot set {name}"
                self._add_at(Severity.ERROR, sentence, advice, start_of(output), 1)
            elif name.lower() in self._sets:
                self._add_at(Severity.ERROR, f"the SELECT sets {name} twice", "keep one", start_of(output), 1)
            else:
                self._sets.append(name.lower())


def _output_names(output: exp.Expr) -> tuple[str, ...]:
    if isinstance(output, exp.Alias):
        return (output.alias,)
    if isinstance(output, exp.Aliases):
        return tuple(each.name for each in output.expressions)
    return (output.name,) if isinstance(output, (exp.Column, exp.Dot)) else ()


def _shorten(output: exp.Expr) -> str:
    text = output.sql(dialect=DIALECT)
    return text if len(text) <= 60 else f"{text[:57]}..."
