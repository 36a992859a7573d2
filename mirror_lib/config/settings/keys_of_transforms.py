"""The keys of transforms, which the feature `transforms` reads: the project's own with their meaning, and Connect's."""

from __future__ import annotations

from collections.abc import Mapping

OWN_TRANSFORMS = "mirror.transforms"
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
    """Return True for the key of a flow, known or not, that belongs to the project's own transforms."""
    return name == OWN_TRANSFORMS or name.startswith((PREFIX, f"{OWN_TRANSFORMS}."))


CONNECT_TRANSFORMS, PREDICATES = "transforms", "predicates"
CONVERTERS = ("key.converter", "value.converter", "header.converter")
#: Settings of transforms that MM2 reads only in a flow: no ConfigDef has these names (`connectorBaseConfig`).
FLOW_PREFIXES = (f"{CONNECT_TRANSFORMS}.", f"{PREDICATES}.", *(f"{converter}." for converter in CONVERTERS))


def is_connect_key(name: str) -> bool:
    """Return True if a key of a flow, without its prefix, belongs to Connect's transforms or converters."""
    return name in (CONNECT_TRANSFORMS, PREDICATES, *CONVERTERS) or name.startswith(FLOW_PREFIXES)
