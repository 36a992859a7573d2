"""`key.converter`, `value.converter` and `header.converter`, and whether the transforms can work with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.model import ConverterKind, ConverterSettings, SettingProblem, Stage
from mirror_lib.features.transforms.smt.options import Options
from mirror_lib.features.transforms.smt.record import Side

_PACKAGES = {
    ConverterKind.BYTES: "org.apache.kafka.connect.converters",
    ConverterKind.STRING: "org.apache.kafka.connect.storage",
    ConverterKind.JSON: "org.apache.kafka.connect.json",
    ConverterKind.SIMPLE_HEADER: "org.apache.kafka.connect.storage",
}
#: Connect also accepts its classes by their short names.
_KINDS = {name: kind for kind, package in _PACKAGES.items() for name in (f"{package}.{kind.value}", kind.value)}
_JSON = f"{_PACKAGES[ConverterKind.JSON]}.{ConverterKind.JSON.value}"
_ENCODINGS = ("utf8", "utf-8")

Converters = tuple[ConverterSettings, ConverterSettings, ConverterSettings]


def parse_converters(
    settings: Mapping[str, str], stages: Sequence[Stage]
) -> tuple[Converters, tuple[SettingProblem, ...]]:
    """Return the converters of keys, values and headers, and all their problems with these transforms."""
    problems: list[SettingProblem] = []
    key, value, header = (_parse(settings, f"{what}.converter", problems) for what in ("key", "value", "header"))
    if not problems:
        problems += _side_problems(Side.KEY, key, stages)
        problems += _side_problems(Side.VALUE, value, stages)
        problems += _header_problems(header, stages)
    return (key, value, header), tuple(problems)


def _parse(settings: Mapping[str, str], key: str, problems: list[SettingProblem]) -> ConverterSettings:
    name = settings.get(key, "").strip()
    kind = _KINDS.get(name) if name else ConverterKind.BYTES
    is_header = key == "header.converter"
    if kind is None or (kind is ConverterKind.SIMPLE_HEADER and not is_header):
        known = ", ".join(kind.value for kind in ConverterKind if is_header or kind is not ConverterKind.SIMPLE_HEADER)
        problems.append(SettingProblem(key, f"{name} is not supported here", f"use one of {known}"))
        return ConverterSettings(key)
    options = Options(f"{key}.", settings, owner=kind.value)
    if kind is ConverterKind.STRING and (options.text("converter.encoding") or "utf8").lower() not in _ENCODINGS:
        options.refuse("converter.encoding", "must be UTF8: other encodings are not supported here")
    options.text("converter.type")
    made = ConverterSettings(key, kind) if kind is not ConverterKind.JSON else _json(key, options)
    options.note_unknown()
    problems += options.problems
    return made


def _json(key: str, options: Options) -> ConverterSettings:
    # The size of Java's schema cache does not affect records, and `schema.content` is for sink connectors.
    options.text("schemas.cache.size")
    options.text("schema.content")
    numeric = options.choice("decimal.format", ("BASE64", "NUMERIC"), default="BASE64", any_case=True) == "NUMERIC"
    return ConverterSettings(
        key,
        ConverterKind.JSON,
        options.flag("schemas.enable", default=True),
        numeric,
        options.flag("replace.null.with.default", default=True),
    )


def _side_problems(side: Side, converter: ConverterSettings, stages: Sequence[Stage]) -> list[SettingProblem]:
    found: list[SettingProblem] = []
    # True if an earlier SMT has made the side a map or a struct.
    made_fields = False
    works = [each for each in stages if side in each.transform.sides() | each.transform.changed_sides()]
    for stage in works:
        transform, who = stage.transform, f"{stage.prefix} ({stage.transform.class_name})"
        reads = transform.reads_fields() and side in transform.sides() and not made_fields
        if converter.kind is ConverterKind.BYTES:
            message = f"is ByteArrayConverter (the default): {who} sees every {side} as bytes"
            found.append(SettingProblem(converter.configured, message, f"set {converter.configured} to {_JSON}"))
        elif reads and converter.kind is not ConverterKind.JSON:
            message = f"is {converter.kind.value}: {who} needs a {side} with fields"
            found.append(SettingProblem(converter.configured, message, f"set {converter.configured} to {_JSON}"))
        is_made = isinstance(transform, model.HoistField | model.ValueToKey) and side in transform.changed_sides()
        made_fields = made_fields or is_made
    if works and not found:
        message = (
            f"is read with {converter.kind.value} before {works[0].prefix}, which MM2 does not do: "
            f"its transforms see the {side} as bytes"
        )
        found.append(SettingProblem(converter.configured, message, warning=True))
    elif converter.kind is not ConverterKind.BYTES and not works:
        message = (
            f"has no effect: no transform uses the {side}, so its bytes are unchanged; MM2 would write them as "
            f"{converter.kind.value} writes bytes"
        )
        found.append(SettingProblem(converter.configured, message, warning=True))
    return found


def _header_problems(converter: ConverterSettings, stages: Sequence[Stage]) -> list[SettingProblem]:
    makers = [each for each in stages if isinstance(each.transform, model.InsertHeader | model.HeaderFrom)]
    for stage in makers:
        value = stage.transform.value if isinstance(stage.transform, model.InsertHeader) else ""
        if converter.kind is ConverterKind.BYTES and value is not None:
            who = f"{stage.prefix} ({stage.transform.class_name})"
            message = f"is ByteArrayConverter (the default), which cannot write the header of {who}"
            simple = f"{_PACKAGES[ConverterKind.SIMPLE_HEADER]}.{ConverterKind.SIMPLE_HEADER.value}"
            return [SettingProblem(converter.configured, message, f"set {converter.configured} to {simple}")]
    if converter.kind is ConverterKind.STRING:
        message = (
            "is StringConverter: a record that already has a header fails, because Java writes an object address "
            "for bytes"
        )
        return [SettingProblem(converter.configured, message, "use SimpleHeaderConverter", warning=True)]
    if converter.kind is not ConverterKind.BYTES:
        message = f"is {converter.kind.value}: headers of the source are written as base64, as in MM2"
        return [SettingProblem(converter.configured, message, warning=True)]
    return []
