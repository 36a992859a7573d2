"""Check one Spark SQL expression: forbidden parts, the columns it reads, and what its result depends on."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from mirror_lib.features.transforms.model import RECORDS, SOURCE_COLUMNS, Influence, NonDeterminism
from mirror_lib.features.transforms.sql.parser import Parsed
from mirror_lib.features.transforms.sql.spark_functions import (
    AGGREGATES,
    GENERATORS,
    INFLUENCES,
    KNOWN_FUNCTIONS,
    ONLY_WITH_PARENTHESES,
    REFUSED,
    SPECIAL_TIMES,
    TIME_WINDOWS,
    WINDOW_FUNCTIONS,
    WITH_FILES_IN_OPTIONS,
    WITHOUT_PARENTHESES,
)
from mirror_lib.features.transforms.sql.text import Call, Finding, Word, calls, place_at
from mirror_lib.problems import Severity

ONE_RECORD = "a transform sees one record at a time"
_NOTHING_ELSE = "a transform can access only its record; a Python function (`function`) can do more"
#: Words by which other data is accessed. Used where sqlglot could not read all of a text.
_QUERY_WORDS = frozenset({"select", "values", "table", "using", "with", "|>"})

_COLUMNS = {column.lower(): column for column in SOURCE_COLUMNS}
#: Possible first arguments of timestampdiff and similar functions.
_UNITS = frozenset(
    ("microsecond", "millisecond", "second", "minute", "hour", "day", "dayofyear", "week", "month", "quarter", "year")
)
_QUERIES = (exp.Query, exp.Values)
#: `SELECT TRANSFORM(...) USING 'program'` starts a program.
_COMMANDS = (exp.QueryTransform, exp.Command)


@dataclass(frozen=True, slots=True)
class CheckedSql:
    """The properties of a SQL text.

    Attributes:
        text: as written.
        findings: errors and warnings, in no particular order.
        reads: the source columns it reads, spelled as in `SOURCE_COLUMNS`.
        fields: the fields that it reads directly in columns, as (column, field).
        non_determinism: why the same record may not give the same result.
        sets: the columns that a SELECT sets, lower case.
        one_to_many: True if one record may become several.
    """

    text: str
    findings: tuple[Finding, ...] = ()
    reads: frozenset[str] = frozenset()
    fields: frozenset[tuple[str, str]] = frozenset()
    non_determinism: tuple[NonDeterminism, ...] = ()
    sets: tuple[str, ...] = ()
    one_to_many: bool = False

    @property
    def is_valid(self) -> bool:
        """True if it has no error."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)


class ExpressionCheck:
    """One pass over one expression."""

    def __init__(self, text: str, parsed: Parsed, what: str) -> None:
        self._text = text
        self._words = parsed.words
        self._what = what
        self._findings = list(parsed.findings)
        self._calls = tuple(calls(parsed.words))
        self._reads: set[str] = set()
        self._fields: set[tuple[str, str]] = set()
        #: Columns added by LATERAL VIEW, by table.
        self._lateral: dict[str, frozenset[str]] = {}
        self._tables = frozenset({RECORDS})
        if parsed.findings:
            # sqlglot may have dropped arguments that it does not know: their columns are found by their names.
            self._reads |= set(self._named_columns())
            self._look_at_words()

    def run(self, tree: exp.Expr | None) -> None:
        """Check everything in a tree, or only the words if there is none."""
        self._look_at_calls()
        self._look_at_names()
        if tree is not None:
            for node in tree.walk():
                self._look_at(node, tree)

    def result(self) -> CheckedSql:
        """Return the result."""
        return CheckedSql(
            self._text,
            tuple(dict.fromkeys(self._findings)),
            frozenset(self._reads),
            frozenset(self._fields),
            tuple(dict.fromkeys(self._non_determinism())),
        )

    def _look_at(self, node: exp.Expr, root: exp.Expr) -> None:
        if isinstance(node, _QUERIES) and node is not root:
            word = self._word("select", "values", skip=isinstance(root, exp.Select))
            self._refuse("a subquery", word, f"{ONE_RECORD}, and no other data")
        elif isinstance(node, _COMMANDS):
            self._refuse("a script or a command", self._words[0], _NOTHING_ELSE)
        elif isinstance(node, exp.Table) and not (isinstance(node.parent, exp.From) and node.parent.parent is root):
            self._refuse("a table", None, f"{ONE_RECORD}, and no other data")
        elif isinstance(node, exp.Window):
            self._refuse("a window function", self._word("over"), ONE_RECORD)
        elif isinstance(node, (exp.Placeholder, exp.Parameter, exp.SessionParameter)):
            self._refuse("a parameter", None, "parameters have no values")
        elif isinstance(node, exp.Star):
            self._look_at_star(node)
        elif isinstance(node, exp.Column):
            self._look_at_column(node)

    def _look_at_star(self, node: exp.Expr) -> None:
        holder = node.parent
        while isinstance(holder, (exp.Column, exp.Alias)):
            holder = holder.parent
        if holder is None or isinstance(holder, exp.Select):
            advice = "list the columns"
            self._add(Severity.ERROR, "* selects all columns, also some that cannot be set", advice, "*")
        elif not isinstance(node.parent, exp.Column):
            self._reads |= set(SOURCE_COLUMNS)

    def _look_at_column(self, node: exp.Column) -> None:
        query = node.find_ancestor(exp.Select)
        if query is not None and query.parent is not None:
            # Part of a subquery, which is rejected as a whole.
            return
        parts = [part.name for part in node.parts]
        if len(parts) > 1 and parts[0].lower() in self._tables and parts[0].lower() not in _COLUMNS:
            parts = parts[1:]
        if parts == ["*"]:
            self._reads |= set(SOURCE_COLUMNS)
            return
        name = parts[0].lower()
        if name in _COLUMNS:
            self._reads.add(_COLUMNS[name])
            if len(parts) > 1 and parts[1] != "*":
                self._fields.add((_COLUMNS[name], parts[1]))
        elif not self._is_known(name, parts, node):
            start = start_of(node)
            sentence = f"records have no column {parts[0]}"
            self._add_at(Severity.ERROR, sentence, _instead_of(parts[0], self._lateral), start, len(parts[0]))

    def _is_known(self, name: str, parts: list[str], node: exp.Column) -> bool:
        """Return True if a name that is not a column of the records has another meaning."""
        lateral = frozenset().union(*self._lateral.values()) if self._lateral else frozenset()
        if name in lateral or (len(parts) > 1 and parts[1].lower() in self._lateral.get(name, frozenset())):
            return True
        if len(parts) == 1 and name in WITHOUT_PARENTHESES:
            return True
        if len(parts) == 1 and name in _UNITS and isinstance(node.parent, exp.Func):
            return True
        # The path of a function, `company.masking.mask(key)`.
        return any(call.name.startswith(f"{name}.") for call in self._calls)

    def _look_at_words(self) -> None:
        """Reject queries by their words: what sqlglot has ignored is in no tree."""
        for index, word in enumerate(self._words):
            before = self._words[index - 1].text if index else ""
            opens = word.lower in _QUERY_WORDS or (word.lower == "from" and before == "(")
            if opens and not word.is_string and before != "." and self._text[word.start] != "`":
                self._refuse("a subquery", word, f"{ONE_RECORD}, and no other data")

    def _look_at_calls(self) -> None:
        for call in self._calls:
            if call.name in AGGREGATES:
                self._refuse_call(call, f"{call.name} aggregates several records", ONE_RECORD)
            elif call.name in TIME_WINDOWS:
                self._refuse_call(call, f"{call.name} groups records by time", ONE_RECORD)
            elif call.name in WINDOW_FUNCTIONS:
                self._refuse_call(call, f"{call.name} accesses other records", ONE_RECORD)
            elif call.name in GENERATORS:
                self._look_at_generator(call)
            elif call.name in REFUSED:
                self._refuse_call(call, f"{call.name} is not allowed here: {REFUSED[call.name]}", _NOTHING_ELSE)
            elif len(call.arguments) > WITH_FILES_IN_OPTIONS.get(call.name, len(call.arguments)):
                sentence = f"{call.name} cannot have options here: they can name files"
                self._refuse_call(call, sentence, _NOTHING_ELSE)
            elif call.name not in KNOWN_FUNCTIONS:
                self._unknown_function(call)

    def _look_at_names(self) -> None:
        for index, word in enumerate(self._words):
            if word.is_name and word.lower in ONLY_WITH_PARENTHESES and self._stands_alone(index):
                advice = f"write {word.lower}()" if word.lower in KNOWN_FUNCTIONS else "Spark has no such function"
                sentence = f"records have no column {word.text}"
                self._add_at(Severity.ERROR, sentence, advice, word.start, len(word.text))

    def _stands_alone(self, index: int) -> bool:
        """Return True if a word is not a field, a function with parentheses, an alias or in backquotes."""
        before = self._words[index - 1].lower if index else ""
        after = self._words[index + 1].text if index + 1 < len(self._words) else ""
        quoted = self._text[self._words[index].start] == "`"
        return before not in (".", "as") and after not in ("(", ".", "->") and not quoted

    def _look_at_generator(self, call: Call) -> None:
        advice = "write a SELECT with it into the file of sql.file"
        self._refuse_call(call, f"{call.name} returns several records for one, which {self._what} cannot", advice)

    def _unknown_function(self, call: Call) -> None:
        guess = next(iter(difflib.get_close_matches(call.name, sorted(KNOWN_FUNCTIONS), 1, 0.75)), None)
        advice = f"did you mean {guess}?" if guess else "implement it as a Python function (`function`)"
        sentence = f"Spark 4.2 has no function {call.name}"
        self._add_at(Severity.ERROR, sentence, advice, call.start, call.end - call.start)

    def _named_columns(self) -> Iterator[str]:
        for index, word in enumerate(self._words):
            behind_dot = index and self._words[index - 1].text == "."
            if word.is_name and word.lower in _COLUMNS and not behind_dot:
                yield _COLUMNS[word.lower]

    def _non_determinism(self) -> Iterator[NonDeterminism]:
        for call in self._calls:
            if (influence := _influence(call)) is not None:
                yield NonDeterminism(f"{call.name}()", influence)
        for index, word in enumerate(self._words):
            if word.is_name and word.lower in WITHOUT_PARENTHESES and self._stands_alone(index):
                yield NonDeterminism(f"{word.lower}()", INFLUENCES[word.lower])
            if word.is_string and self._is_special_time(index):
                yield NonDeterminism(self._text[word.start : word.end], Influence.CLOCK)

    def _is_special_time(self, index: int) -> bool:
        """Return True if a string is read as a special time, such as now."""
        text = self._words[index].lower.split()
        if not text or text[0] not in SPECIAL_TIMES:
            return False
        near = [each.lower for each in self._words[max(0, index - 3) : index + 4]]
        return any(
            word in ("date", "cast", "try_cast", "to_date") or word.startswith(("timestamp", "to_timestamp"))
            for word in near
        )

    def _word(self, *texts: str, skip: bool = False) -> Word | None:
        """Return the first word that is one of the texts, or the second one."""
        found = [word for word in self._words if word.lower in texts and not word.is_string]
        return next(iter(found[1 if skip else 0 :]), None)

    def _refuse(self, what: str, word: Word | None, why: str) -> None:
        start = word.start if word else None
        self._add_at(Severity.ERROR, f"{what} is not allowed here", why, start, len(word.text) if word else 1)

    def _refuse_call(self, call: Call, sentence: str, advice: str) -> None:
        self._add_at(Severity.ERROR, sentence, advice, call.start, call.end - call.start)

    def _add(self, severity: Severity, sentence: str, advice: str, word: str) -> None:
        found = self._word(word)
        self._add_at(severity, sentence, advice, found.start if found else None, len(word))

    def _add_at(self, severity: Severity, sentence: str, advice: str, start: int | None, length: int) -> None:
        place = None if start is None else place_at(self._text, start, start + length)
        self._findings.append(Finding(severity, sentence, advice, place))


def _influence(call: Call) -> Influence | None:
    """Return what the result of a call depends on besides its arguments."""
    if call.name in INFLUENCES:
        return INFLUENCES[call.name]
    if call.name not in KNOWN_FUNCTIONS:
        return Influence.UNKNOWN
    if call.name == "unix_timestamp" and not call.arguments:
        return Influence.CLOCK
    # Without an initialization vector every call uses a random one, except ECB, which has none.
    if call.name in ("aes_encrypt", "try_aes_encrypt") and len(call.arguments) < 5:
        ecb = len(call.arguments) > 2 and call.arguments[2].lower.strip("'\"") == "ecb"
        return None if ecb else Influence.RANDOM
    return None


def start_of(node: exp.Expr) -> int | None:
    """Return the offset of a node in the text, if sqlglot has it."""
    starts = [start for each in node.walk() if isinstance(start := each.meta.get("start"), int)]
    return min(starts) if starts else None


def _instead_of(name: str, lateral: dict[str, frozenset[str]]) -> str:
    known = [*SOURCE_COLUMNS, *sorted(frozenset().union(*lateral.values()) if lateral else ())]
    guess = next(iter(difflib.get_close_matches(name.lower(), [each.lower() for each in known], 1, 0.75)), None)
    if guess is not None:
        return f"did you mean {_COLUMNS.get(guess, guess)}?"
    return f"write value.{name} for a field of the value; columns are {', '.join(known)}"
