"""The keys of `mirror.transforms` and `mirror.transform.*`, their meaning, and problems of a key."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.problems import Problem, Severity

TRANSFORMS = "mirror.transforms"
PREFIX = "mirror.transform."

#: Settings of one transform, after `mirror.transform.<name>.`, with their meaning.
SUB_KEYS: Mapping[str, str] = {
    "topics": "Names or Java regexes of the source topics whose records it takes. Default: all topics of the flow.",
    "filter": "Spark SQL: records for which it is not true are dropped.",
    "key": "Spark SQL: the key that is written.",
    "value": "Spark SQL: the value that is written.",
    "headers": "Spark SQL: the headers that are written.",
    "timestamp": "Spark SQL: the timestamp that is written.",
    "topic": "Spark SQL: the target topic.",
    "partition": "Spark SQL: the target partition.",
    "sql.file": "A file with one `SELECT ... FROM records [WHERE ...]`, instead of a filter and columns. A relative "
    "path begins at the folder of the properties file.",
    "function": "A Python function, instead of a filter and columns: `package.module.function` takes and returns a "
    "DataFrame of PySpark, `package.module:function` a record batch of Arrow.",
    "decode.key": "How keys are read: `json`, `avro`, `protobuf`, `string`, or `none` (binary, the default).",
    "decode.value": "How values are read, as `decode.key`.",
    "schema.key": "Spark DDL of keys that are JSON.",
    "schema.value": "Spark DDL of values that are JSON, such as `country STRING, card STRING`.",
    "deterministic": "Whether the same record always gives the same result, where that cannot be seen.",
}
#: A reserved name: its settings are those of the schema registries.
REGISTRY = "registry"
REGISTRY_KEYS: Mapping[str, str] = {
    f"{side}.{name}": meaning.format(side=side)
    for side in ("source", "target")
    for name, meaning in (
        ("url", "Addresses of the {side}'s schema registry, tried in this order."),
        ("user", "The user of its basic authentication."),
        ("password", "The password of its basic authentication."),
    )
}


def is_transform_key(name: str) -> bool:
    """Return True if `parse_transforms` checks a key of a flow, known or not."""
    return name == TRANSFORMS or name.startswith((PREFIX, f"{TRANSFORMS}."))


def problem(severity: Severity, key: str, sentence: str, advice: str) -> Problem:
    """Return a problem of one key."""
    return Problem(severity=severity, message=f"{key}: {sentence}", key=key, suggestion=advice)
