"""The options of each SMT and each predicate, as in the `ConfigDef` of Connect's class."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from mirror_lib.features.transforms.smt import model
from mirror_lib.features.transforms.smt.field_path import parse_path
from mirror_lib.features.transforms.smt.options import Options
from mirror_lib.features.transforms.smt.record import Side
from mirror_lib.features.transforms.smt.values.data import Schema, SchemaType, Value
from mirror_lib.features.transforms.smt.values.date_format import DateFormat
from mirror_lib.features.transforms.smt.values.java_strings import connect_text
from mirror_lib.features.transforms.smt.values.literals import parse_literal
from mirror_lib.topology.java_regex import compile_java, compile_replacement

_NULLS = "replace.null.with.default"
_NO_FORMAT = DateFormat("", ())
_CAST_TYPES = {
    kind.name: kind
    for kind in SchemaType
    if kind not in (SchemaType.BYTES, SchemaType.ARRAY, SchemaType.MAP, SchemaType.STRUCT)
}


def _regex_router(options: Options) -> model.RegexRouter:
    regex, replacement = options.require("regex"), options.require("replacement", may_be_empty=True)
    pattern = options.parse("regex", regex, compile_java, None)
    if pattern is not None:
        options.parse("replacement", replacement, lambda text: compile_replacement(text, pattern), None)
    return model.RegexRouter(regex, replacement)


def _timestamp_router(options: Options) -> model.TimestampRouter:
    topic_format = options.text("topic.format")
    pattern = options.text("timestamp.format")
    written = options.parse(
        "timestamp.format", "yyyyMMdd" if pattern is None else pattern, DateFormat.compile, _NO_FORMAT
    )
    return model.TimestampRouter("${topic}-${timestamp}" if topic_format is None else topic_format, written)


def _filter(_options: Options) -> model.Filter:
    return model.Filter()


def _insert_header(options: Options) -> model.InsertHeader:
    literal = options.require("value.literal", may_be_empty=True)
    nothing: tuple[Schema | None, Value] = (None, None)
    schema, value = options.parse("value.literal", literal, parse_literal, nothing)
    if value is not None and connect_text(value) != literal:
        options.warn("value.literal", f"is read as {connect_text(value)}, because Connect parses {literal!r} so")
    return model.InsertHeader(options.require("header", may_be_empty=True), schema, value)


def _drop_headers(options: Options) -> model.DropHeaders:
    return model.DropHeaders(frozenset(options.names("headers")))


def _inserted_field(options: Options, name: str) -> model.InsertedField | None:
    text = options.text(name)
    if text is None:
        return None
    field = model.InsertedField(text[:-1] if text.endswith(("?", "!")) else text, optional=not text.endswith("!"))
    if not field.name:
        options.refuse(name, "has no field")
    return field


def _insert_field(side: Side, options: Options) -> model.InsertField:
    made = model.InsertField(
        side,
        _inserted_field(options, "topic.field"),
        _inserted_field(options, "partition.field"),
        _inserted_field(options, "timestamp.field"),
        _inserted_field(options, "static.field"),
        options.text("static.value"),
        options.flag(_NULLS, default=True),
    )
    if options.text("offset.field") is not None:
        options.refuse("offset.field", "is for sink connectors only: in MM2 every record fails", "remove it")
    elif made.topic is made.partition is made.timestamp is made.static is None:
        options.refuse("topic.field", "is missing, as are all other fields to insert", "set a field")
    if made.static is not None and made.static_value is None:
        options.refuse("static.value", "is missing, but static.field needs it", "set it")
    return made


def _mask_field(side: Side, options: Options) -> model.MaskField:
    fields, replacement = options.names("fields"), options.non_empty("replacement")
    return model.MaskField(side, fields, replacement, options.flag(_NULLS, default=True))


def _replace_field(side: Side, options: Options) -> model.ReplaceField:
    exclude, include = _renamed_list(options, "exclude", "blacklist"), _renamed_list(options, "include", "whitelist")
    renames: dict[str, str] = {}
    for member in options.names("renames", required=False):
        parts = _java_split(member)
        if len(parts) == 2:
            renames[parts[0]] = parts[1]
        elif member:
            options.refuse("renames", f"must be pairs such as old:new; {member!r} is not")
    return model.ReplaceField(side, frozenset(exclude), frozenset(include), renames, options.flag(_NULLS, default=True))


def _renamed_list(options: Options, name: str, old: str) -> tuple[str, ...]:
    """Return a list that had another name before Kafka 4.0; the new name has priority."""
    if options.has(old):
        options.warn(old, f"is the old name of {name}, which Kafka 4 does not support", f"write {name}")
    former = options.names(old, required=False)
    return options.names(name, required=False) if options.has(name) else former


def _extract_field(side: Side, options: Options) -> model.ExtractField:
    field = options.require("field")
    version = options.choice("field.syntax.version", ("V1", "V2"), default="V1", any_case=True)
    path: tuple[str, ...] = (field,)
    if version == "V2":
        path = options.parse("field", field, parse_path, path)
    return model.ExtractField(side, field, path, options.flag(_NULLS, default=True))


def _hoist_field(side: Side, options: Options) -> model.HoistField:
    return model.HoistField(side, options.require("field"))


def _flatten(side: Side, options: Options) -> model.Flatten:
    delimiter = options.text("delimiter")
    return model.Flatten(side, "." if delimiter is None else delimiter)


def _value_to_key(options: Options) -> model.ValueToKey:
    return model.ValueToKey(options.names("fields"), options.flag(_NULLS, default=True))


def _header_from(side: Side, options: Options) -> model.HeaderFrom:
    fields, headers = options.names("fields"), options.names("headers")
    if len(fields) != len(headers):
        options.refuse(
            "headers", f"has {len(headers)} names, but fields has {len(fields)}", "set one name for each field"
        )
    move = options.choice("operation", ("move", "copy")) == "move"
    pairs = tuple(zip(fields, headers, strict=False))
    return model.HeaderFrom(side, pairs, move, options.flag(_NULLS, default=True))


def _cast(side: Side, options: Options) -> model.Cast:
    fields: dict[str, SchemaType] = {}
    whole: list[SchemaType] = []
    members = options.names("spec")
    for member in members:
        *names, type_name = _java_split(member) or [""]
        kind = _CAST_TYPES.get(type_name.strip().upper())
        if len(names) > 1 or kind is None:
            options.refuse("spec", f"must be pairs such as field:int32 or one type; {member!r} is neither")
        elif names:
            fields[names[0].strip()] = kind
        else:
            whole.append(kind)
    if whole and len(members) > 1:
        options.refuse("spec", "must contain only one type for the whole")
    return model.Cast(side, fields, whole[0] if whole else None, options.flag(_NULLS, default=True))


def _timestamp_converter(side: Side, options: Options) -> model.TimestampConverter:
    target = model.TimestampType(options.choice("target.type", model.TimestampType))
    precision = options.choice("unix.precision", model.UnixPrecision, default=model.UnixPrecision.MILLISECONDS)
    pattern = options.text("format") or ""
    written = options.parse("format", pattern, DateFormat.compile, _NO_FORMAT) if pattern else None
    if written is None and target is model.TimestampType.STRING:
        options.refuse("format", "is missing, but target.type=string needs it", "set a pattern of SimpleDateFormat")
    elif written is not None and target is not model.TimestampType.STRING and (why := written.why_not_parsed()):
        options.refuse("format", f"cannot be used to parse strings: {why}")
    return model.TimestampConverter(
        side,
        target,
        options.text("field") or None,
        written,
        model.UnixPrecision(precision),
        options.flag(_NULLS, default=True),
    )


def _topic_name_matches(options: Options) -> model.TopicNameMatches:
    pattern = options.require("pattern")
    options.parse("pattern", pattern, compile_java, None)
    return model.TopicNameMatches(pattern)


def _has_header_key(options: Options) -> model.HasHeaderKey:
    return model.HasHeaderKey(options.require("name"))


def _record_is_tombstone(_options: Options) -> model.RecordIsTombstone:
    return model.RecordIsTombstone()


def _java_split(text: str) -> list[str]:
    """Split like `String.split(":")`, which drops empty pieces at the end."""
    parts = text.split(":")
    while parts and not parts[-1]:
        parts.pop()
    return parts


#: SMTs without a side, by the short names of their classes.
WHOLE: Mapping[str, Callable[[Options], model.Transform]] = {
    "DropHeaders": _drop_headers,
    "Filter": _filter,
    "InsertHeader": _insert_header,
    "RegexRouter": _regex_router,
    "TimestampRouter": _timestamp_router,
    "ValueToKey": _value_to_key,
}
#: SMTs whose classes end with `$Key` or `$Value`, by the part before that.
SIDED: Mapping[str, Callable[[Side, Options], model.Transform]] = {
    "Cast": _cast,
    "ExtractField": _extract_field,
    "Flatten": _flatten,
    "HeaderFrom": _header_from,
    "HoistField": _hoist_field,
    "InsertField": _insert_field,
    "MaskField": _mask_field,
    "ReplaceField": _replace_field,
    "TimestampConverter": _timestamp_converter,
}
PREDICATES: Mapping[str, Callable[[Options], model.Predicate]] = {
    "HasHeaderKey": _has_header_key,
    "RecordIsTombstone": _record_is_tombstone,
    "TopicNameMatches": _topic_name_matches,
}
