"""Check the Spark SQL of transforms without Spark: its errors, what it reads, whether it is deterministic.

sqlglot parses the text, in its dialect `spark`. Spark's own parser and analyser decide; the preview and the check
before a run use them. Known differences:

- Types are not checked here: that a filter is a condition, that arguments fit, that a struct has a field deep inside.
- Columns are compared case-insensitively, as with Spark's default of `spark.sql.caseSensitive`.
- In a SELECT every output that is no plain column needs a name by AS. Spark would name `CAST(key AS STRING)` key.
- Expressions may say `records.value`; Spark knows that name only if the DataFrame has the alias `records`.
- `identifier('key')` reads a column that is not found here.
- A text that is compared with `timestamp`, cast to a time, or follows DATE or TIMESTAMP is a special time if it is one
  of now, today, tomorrow, yesterday. Spark casts in more places.
- `value:a.b`, `a >>> 1`, `a !< b`, `a !> b` and `X '1F'` with a blank are Spark's; sqlglot rejects them, and they get a
  warning in an expression. So does a function that sqlglot knows with another number of arguments, and nesting too deep
  for it.
- The functions are those of Spark 4.2, without those that access files or Java; any other is rejected.
- A SELECT that sqlglot cannot parse is rejected; an expression is not, if no word in it begins a query.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from mirror_lib.features.transforms.model import RECORDS
from mirror_lib.features.transforms.sql.expression_check import CheckedSql, ExpressionCheck
from mirror_lib.features.transforms.sql.parser import parse_expression, parse_statements, parse_type, read_words
from mirror_lib.features.transforms.sql.select_check import SelectCheck
from mirror_lib.features.transforms.sql.text import Finding, Word, place_at
from mirror_lib.problems import Severity

__all__ = ["CheckedSchema", "CheckedSql", "check_column", "check_filter", "check_schema", "check_select"]

_READABLE = "use another form, such as `variant_get(value, '$.a')` for `value:a`, or the expression of a column"
_STATEMENTS = frozenset(
    ["select", "with", "from", "insert", "update", "delete", "merge", "create", "drop", "alter", "values", "table"]
)


@dataclass(frozen=True, slots=True)
class CheckedSchema:
    """The properties of a schema in Spark's DDL.

    Attributes:
        fields: the names at its top, None if it is not a struct or could not be read.
        findings: errors and warnings.
    """

    fields: tuple[str, ...] | None = None
    findings: tuple[Finding, ...] = ()


def check_filter(text: str) -> CheckedSql:
    """A condition on one record."""
    return _check_one(text, "the filter")


def check_column(text: str) -> CheckedSql:
    """The expression of one column."""
    return _check_one(text, "the expression of a column")


def check_select(text: str) -> CheckedSql:
    """One `SELECT ... FROM records [LATERAL VIEW ...] [WHERE ...]`."""
    parsed = parse_statements(text)
    first = parsed.words[0].lower if parsed.words else ""
    if not parsed.words and not parsed.findings:
        return CheckedSql(text, (Finding(Severity.ERROR, "it is empty", f"write SELECT ... FROM {RECORDS}"),))
    if first not in ("select", "with", "(") and parsed.words:
        word = parsed.words[0]
        sentence = f"`{word.text}` does not start a SELECT"
        place = place_at(text, word.start, word.end)
        return CheckedSql(text, (Finding(Severity.ERROR, sentence, f"write SELECT ... FROM {RECORDS}", place),))
    if parsed.has_errors:
        return CheckedSql(text, parsed.findings)
    if not parsed.trees:
        # A query that is not read could read anything.
        findings = tuple(replace(each, severity=Severity.ERROR, advice=_READABLE) for each in parsed.findings)
        return CheckedSql(text, findings)
    if len(parsed.trees) > 1:
        return CheckedSql(text, (_several_statements(text, parsed.words),))
    check = SelectCheck(text, parsed)
    check.run(parsed.trees[0])
    return check.result()


def check_schema(text: str) -> CheckedSchema:
    """The schema of a JSON document: columns such as `country STRING, card STRING`, or one type."""
    if not text.strip():
        return CheckedSchema(findings=(Finding(Severity.ERROR, "it is empty", "write `name TYPE, ...`"),))
    is_type = text.lstrip().lower().startswith(("struct<", "array<", "map<")) or text.strip().lower() == "variant"
    head = "" if is_type else "STRUCT<"
    colon = None if is_type else _colon(text)
    if colon is not None:
        sentence, advice = "a colon is allowed only inside STRUCT<...>", "remove it: `name TYPE`"
        return CheckedSchema(findings=(Finding(Severity.ERROR, sentence, advice, place_at(text, colon.start)),))
    parsed = parse_type(text if is_type else f"STRUCT<{text}>")
    if not parsed.trees or parsed.findings:
        where = next((finding.place for finding in parsed.findings if finding.place), None)
        offset = None if where is None else max(0, where.column - 1 - len(head))
        place = None if offset is None or "\n" in text else place_at(text, min(offset, len(text)))
        advice = "write columns such as `country STRING, card STRING`"
        return CheckedSchema(findings=(Finding(Severity.ERROR, "it is not Spark DDL", advice, place),))
    return _checked_schema(parsed.trees[0])


def _colon(text: str) -> Word | None:
    """A colon between the name and the type of a column, which sqlglot takes and Spark does not."""
    depth = 0
    for word in read_words(text).words:
        if word.is_string:
            continue
        if word.text == ":" and depth == 0:
            return word
        depth += word.text.count("<") - word.text.count(">")
    return None


def _checked_schema(tree: exp.Expr) -> CheckedSchema:
    columns = [each for each in tree.expressions if isinstance(each, exp.ColumnDef)]
    struct = isinstance(tree, exp.DataType) and tree.is_type(exp.DataType.Type.STRUCT)
    findings = tuple(
        Finding(Severity.ERROR, f"the field {each.name} has no type", f"write {each.name} STRING, for example")
        for each in columns
        if each.args.get("kind") is None
    )
    complete = struct and len(columns) == len(tree.expressions)
    if struct and not complete:
        advice = "write columns such as `country STRING, card STRING`"
        return CheckedSchema(findings=(Finding(Severity.ERROR, "a field has no name or no type", advice),))
    return CheckedSchema(tuple(each.name for each in columns) if complete else None, findings)


def _check_one(text: str, what: str) -> CheckedSql:
    if not text.strip():
        return CheckedSql(text, (Finding(Severity.ERROR, f"{what} is empty", "write Spark SQL, or remove the key"),))
    parsed = parse_expression(text)
    problem = _no_expression(text, parsed.words, what)
    if problem is not None:
        return CheckedSql(text, (problem,))
    if not parsed.words and not parsed.findings:
        return CheckedSql(text, (Finding(Severity.ERROR, f"{what} is empty", "write Spark SQL, or remove the key"),))
    if parsed.has_errors:
        return CheckedSql(text, parsed.findings)
    check = ExpressionCheck(text, parsed, what)
    check.run(parsed.trees[0] if parsed.trees else None)
    return check.result()


def _no_expression(text: str, words: tuple[Word, ...], what: str) -> Finding | None:
    """What is plain before the parser is asked."""
    semicolon = next((word for word in words if word.text == ";" and not word.is_string), None)
    if semicolon is not None:
        place = place_at(text, semicolon.start)
        return Finding(Severity.ERROR, f"{what} contains a semicolon", "write one expression without it", place)
    if words and words[0].lower in _STATEMENTS and not (len(words) > 1 and words[1].text == "("):
        place = place_at(text, words[0].start, words[0].end)
        advice = "write an expression here, or the statement into the file of sql.file"
        return Finding(Severity.ERROR, f"{what} is a statement", advice, place)
    return None


def _several_statements(text: str, words: tuple[Word, ...]) -> Finding:
    semicolon = next((word for word in words if word.text == ";" and not word.is_string), words[0])
    place = place_at(text, semicolon.start)
    return Finding(Severity.ERROR, "there is more than one statement", "keep one SELECT", place)
