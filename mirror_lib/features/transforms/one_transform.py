"""The settings of one transform: its typed value and its problems."""

from __future__ import annotations

import difflib
import errno
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Literal

from mirror_lib.config.settings.keys_of_transforms import PREFIX, REGISTRY
from mirror_lib.features.transforms.key_problems import problem
from mirror_lib.features.transforms.model import (
    TARGET_COLUMNS,
    ColumnExpressions,
    DataFormat,
    DecodeSettings,
    Decoding,
    Influence,
    SelectStatement,
    Transform,
)
from mirror_lib.features.transforms.python_functions import NoFunction, PythonFunction, look_at_function
from mirror_lib.features.transforms.sql.expressions import (
    CheckedSql,
    check_column,
    check_filter,
    check_schema,
    check_select,
)
from mirror_lib.features.transforms.sql.text import Finding
from mirror_lib.operator_limits import read_named
from mirror_lib.outside_limits import TRANSFORM_BYTES
from mirror_lib.printable import Lines, printable
from mirror_lib.problems import Problem, Severity
from mirror_lib.topology.java_regex import compile_list
from mirror_lib.topology.java_types import ValueType, parse_list, parse_value

Side = Literal["key", "value"]
_SIDES: tuple[Side, Side] = ("key", "value")
_DO = ("filter", *TARGET_COLUMNS, "sql.file", "function")


def parse_transform(
    name: str,
    settings: Mapping[str, str],
    hidden: Collection[str] = (),
    *,
    has_registry: bool = True,
    folder: Path = Path(),
) -> tuple[Transform | None, tuple[Problem, ...]]:
    """Return one transform.

    Args:
        name: as in `mirror.transforms`.
        settings: its settings by the part after `mirror.transform.<name>.`; all are known ones.
        hidden: those whose values must not be shown.
        has_registry: True if the source has a schema registry.
        folder: base of a relative `sql.file`.

    Returns:
        The transform, None if it has errors, and all its problems.
    """
    parse = _Parse(name, settings, hidden, has_registry=has_registry, folder=folder)
    transform = parse.run()
    failed = any(each.severity is Severity.ERROR for each in parse.problems)
    return None if failed else transform, tuple(parse.problems)


class _Parse:
    """One pass over the settings of one transform."""

    def __init__(
        self, name: str, settings: Mapping[str, str], hidden: Collection[str], *, has_registry: bool, folder: Path
    ) -> None:
        self.problems: list[Problem] = []
        self._name = name
        self._settings = settings
        self._hidden = hidden
        self._has_registry = has_registry
        self._folder = folder
        #: Checked SQL, by its setting.
        self._checked: dict[str, CheckedSql] = {}
        #: Fields of the JSON documents, if known.
        self._fields: dict[str, tuple[str, ...]] = {}

    def run(self) -> Transform:
        self._check_combination()
        topics = self._topics()
        decode = DecodeSettings(self._parse_decoding("key"), self._parse_decoding("value"))
        condition = self._sql("filter")
        columns = ColumnExpressions(**{column: self._sql(column) for column in TARGET_COLUMNS})
        select = self._select()
        function = self._function()
        stated = self._stated_determinism()
        self._check_fields(decode)
        self._check_stated(stated)
        checked = self._checked.values()
        reasons = (each for sql in checked for each in sql.non_determinism)
        return Transform(
            name=self._name,
            topics=topics,
            decode=decode,
            filter=condition,
            columns=columns,
            select=select,
            function=None if function is None else function.reference,
            stated_deterministic=stated,
            non_determinism=tuple(dict.fromkeys((*reasons, *(function.hints if function else ())))),
            reads=None if function is not None else frozenset().union(*(sql.reads for sql in checked)),
            one_to_many=any(sql.one_to_many for sql in checked),
        )

    def _check_combination(self) -> None:
        parts = [key for key in _DO if key in self._settings and key not in ("sql.file", "function")]
        whole = [key for key in ("sql.file", "function") if key in self._settings]
        if not parts and not whole:
            first = next(iter(self._settings), "filter")
            self._error(first, f"the transform {self._name} does nothing", f"set one of {', '.join(_DO)}")
        if whole and parts:
            others = ", ".join(parts)
            self._error(whole[0], f"it cannot be combined with {others}", f"remove it, or {others}")
        if len(whole) > 1:
            self._error(whole[1], f"it cannot be combined with {whole[0]}", "remove one of the two")

    def _topics(self) -> tuple[str, ...] | None:
        if "topics" not in self._settings:
            return None
        topics = tuple(topic for topic in parse_list(self._settings["topics"]) if topic)
        if not topics:
            self._warn("topics", "it is empty, so the transform matches no topic", "remove it to match all topics")
        try:
            compile_list(topics)
        except ValueError as error:
            detail = "" if "topics" in self._hidden else f"; {error}"
            self._error("topics", f"it must be a list of names or Java regexes{detail}", "correct the regex")
            return ()
        return topics

    def _parse_decoding(self, side: Side) -> Decoding:
        key = f"decode.{side}"
        text = self._settings.get(key, DataFormat.NONE).strip().lower()
        if text not in list(DataFormat):
            guess = difflib.get_close_matches(text, list(DataFormat), 1, 0.5)
            advice = f"did you mean {guess[0]}?" if guess else "none keeps it binary"
            self._error(key, f"it must be one of {', '.join(DataFormat)}", advice)
            return Decoding()
        chosen = DataFormat(text)
        if chosen.needs_registry and not self._has_registry:
            url = f"{PREFIX}{REGISTRY}.source.url"
            self._error(key, f"{chosen} needs the source's schema registry", f"set {url}")
        return Decoding(chosen, self._schema(side, chosen))

    def _schema(self, side: Side, chosen: DataFormat) -> str | None:
        key = f"schema.{side}"
        schema = self._settings.get(key)
        if chosen is not DataFormat.JSON:
            if schema is not None:
                self._warn(key, f"it has no effect, because decode.{side} is {chosen}", f"set decode.{side}=json")
            return None
        if schema is None:
            advice = f"set {self._key(key)}, such as `country STRING, card STRING`"
            self._error(f"decode.{side}", "JSON cannot be read without a schema", advice)
            return None
        checked = check_schema(schema)
        for finding in checked.findings:
            self._add_finding(key, finding)
        if checked.fields is not None:
            self._fields[side] = checked.fields
        return schema.strip()

    def _sql(self, key: str) -> str | None:
        if key not in self._settings:
            return None
        text = self._settings[key].strip()
        checked = check_filter(text) if key == "filter" else check_column(text)
        self._note(key, checked)
        return text

    def _select(self) -> SelectStatement | None:
        if "sql.file" not in self._settings:
            return None
        file = self._settings["sql.file"].strip()
        text = self._read(file)
        if text is None:
            return None
        checked = check_select(text)
        self._note("sql.file", checked, file)
        return SelectStatement(file, text, checked.sets)

    def _read(self, file: str) -> str | None:
        advice = "use a readable file of UTF-8 text"
        if not file:
            self._error("sql.file", "it is empty", advice)
            return None
        path = self._folder / file
        try:
            if path.exists() and not path.is_file():
                self._error("sql.file", f"{file} is not a regular file", advice)
                return None
            data = read_named(path, TRANSFORM_BYTES)
        except (OSError, ValueError) as error:
            if isinstance(error, OSError) and error.errno == errno.EFBIG:
                self._error("sql.file", f"{file} is larger than 1 MiB", advice)
                return None
            detail = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._error("sql.file", f"{file} cannot be read: {detail}", advice)
            return None
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self._error("sql.file", f"{file} is not UTF-8 text: byte {error.start} cannot be read", advice)
            return None

    def _function(self) -> PythonFunction | None:
        if "function" not in self._settings:
            return None
        found = look_at_function(self._settings["function"])
        if isinstance(found, NoFunction):
            self._error("function", found.sentence, found.advice)
            return None
        return found

    def _stated_determinism(self) -> bool | None:
        if "deterministic" not in self._settings:
            return None
        try:
            return bool(parse_value(ValueType.BOOLEAN, self._settings["deterministic"]))
        except ValueError:
            self._error("deterministic", "it must be true or false", "remove it if the answer is unknown")
            return None

    def _check_fields(self, decode: DecodeSettings) -> None:
        """Check fields inside of keys and values, which must have been decoded."""
        formats = {"key": decode.key.format, "value": decode.value.format}
        for setting, sql in self._checked.items():
            for column, field in sorted(sql.fields):
                if column in formats:
                    self._check_field(setting, column, field, formats[column])

    def _check_field(self, setting: str, column: str, field: str, chosen: DataFormat) -> None:
        if not chosen.has_fields:
            what = "text" if chosen is DataFormat.STRING else "binary"
            advice = f"set {self._key(f'decode.{column}')} to json, avro or protobuf"
            self._error(setting, f"{column}.{field} is a field, but the {column} is read as {what}", advice)
            return
        known = self._fields.get(column)
        if known is None or field.lower() in {each.lower() for each in known}:
            return
        guess = difflib.get_close_matches(field, known, 1, 0.6)
        advice = f"did you mean {column}.{guess[0]}?" if guess else f"its fields are {', '.join(known) or 'none'}"
        self._error(setting, f"schema.{column} has no field {field}", advice)

    def _check_stated(self, stated: bool | None) -> None:
        if stated is not True:
            return
        for setting, sql in self._checked.items():
            for each in sql.non_determinism:
                if each.influence is not Influence.UNKNOWN:
                    advice = f"remove {each.what} from {self._key(setting)}, or this setting"
                    self._warn("deterministic", f"it is ignored: {each}", advice)

    def _note(self, key: str, checked: CheckedSql, file: str | None = None) -> None:
        self._checked[key] = checked
        for finding in checked.findings:
            self._add_finding(key, finding, file)

    def _add_finding(self, key: str, finding: Finding, file: str | None = None) -> None:
        where = ", ".join(part for part in (file, str(finding.place) if finding.place else None) if part)
        if key in self._hidden:
            sentence = "the text is invalid; it is not shown, because it may contain a value of a config provider"
            advice = "try it with other text instead of the provider's value"
        else:
            sentence = finding.sentence
            advice = Lines(f"{printable(finding.advice)}\n{finding.place.excerpt}") if finding.place else finding.advice
        full = f"{where}: {sentence}" if where else sentence
        self.problems.append(problem(finding.severity, self._key(key), full, advice))

    def _key(self, rest: str) -> str:
        return f"{PREFIX}{self._name}.{rest}"

    def _error(self, rest: str, sentence: str, advice: str) -> None:
        self.problems.append(problem(Severity.ERROR, self._key(rest), sentence, advice))

    def _warn(self, rest: str, sentence: str, advice: str) -> None:
        self.problems.append(problem(Severity.WARNING, self._key(rest), sentence, advice))
