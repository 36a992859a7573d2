"""The keys of `mirror.transforms` and `mirror.transform.*`, their meaning, and problems of a key."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.problems import Problem, Severity

TRANSFORMS = "mirror.transforms"
PREFIX = "mirror.transform."

#: Settings of one transform, after `mirror.transform.<name>.`, with their meaning.
SUB_KEYS: Mapping[str, str] = {
    "topics": "Names or Java regexes of source topics. Default: all topics of the flow.",
    "filter": "Spark SQL condition: only records that match it are kept.",
    "key": "Spark SQL expression of the key.",
    "value": "Spark SQL expression of the value.",
    "headers": "Spark SQL expression of the headers.",
    "timestamp": "Spark SQL expression of the timestamp.",
    "topic": "Spark SQL expression of the target topic.",
    "partition": "Spark SQL expression of the target partition.",
    "sql.file": "File with one `SELECT ... FROM records [WHERE ...]`, instead of a filter and columns. A relative path "
    "is resolved from the folder of the properties file.",
    "function": "Python function, instead of a filter and columns: `package.module.function` takes and returns a "
    "DataFrame of PySpark, `package.module:function` a record batch of Arrow.",
    "decode.key": "Format of keys: `json`, `avro`, `protobuf`, `string`, or `none` (binary, the default).",
    "decode.value": "Format of values, as `decode.key`.",
    "schema.key": "Spark DDL of JSON keys.",
    "schema.value": "Spark DDL of JSON values, such as `country STRING, card STRING`.",
    "deterministic": "If true, the same record always has the same result; for transforms of which this is unknown.",
}
#: A reserved name: its settings are those of the schema registries.
REGISTRY = "registry"
REGISTRY_KEYS: Mapping[str, str] = {
    f"{side}.{name}": meaning.format(side=side)
    for side in ("source", "target")
    for name, meaning in (
        ("url", "Addresses of the {side}'s schema registry, tried in this order."),
        ("user", "User for its basic authentication."),
        ("password", "Password for its basic authentication."),
    )
}


def is_transform_key(name: str) -> bool:
    """Return True if `parse_transforms` checks a key of a flow, known or not."""
    return name == TRANSFORMS or name.startswith((PREFIX, f"{TRANSFORMS}."))


def problem(severity: Severity, key: str, sentence: str, advice: str) -> Problem:
    """Return a problem of one key."""
    return Problem(severity=severity, message=f"{key}: {sentence}", key=key, suggestion=advice)
