"""The project's own settings, all beginning `mirror.`: made from the fields of the models that hold their values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from functools import cache
from typing import Any, get_origin, get_type_hints

from mirror_lib.config.copy_settings import CopySettings
from mirror_lib.config.frozen import Frozen
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.own_key import OWN, OwnKey
from mirror_lib.config.settings.definition import BOOLEAN, DOUBLE, INT, LIST, STRING, Definition, Scope
from mirror_lib.config.settings.rate_keys import CLUSTER_KEYS
from mirror_lib.topology.java_types import ValueType
from mirror_lib.type_hints import kind_of

PREFIX = "mirror."
LEDGER_URL = "mirror.ledger.url"
SINCE = "own"

_TYPES: Mapping[Any, ValueType] = {bool: BOOLEAN, int: INT, float: DOUBLE, str: STRING, tuple: LIST}
#: The text of an effective setting, None when it has neither a value nor a default.
Lookup = Callable[[str], str | None]


@dataclass(frozen=True, slots=True)
class _OwnField:
    """A field that is a setting, or that holds a model with such fields."""

    name: str
    kind: Any
    definition: Definition | None = None
    #: True if its value is made elsewhere.
    elsewhere: bool = False

    def value(self, text: str) -> Any:
        """Return the value of a text.

        Raises:
            ValueError: the text is not valid; the message completes "must be".
        """
        assert self.definition is not None
        if self.definition.read is not None:
            return self.definition.read(text)
        parsed = self.definition.parse(text)
        return self.kind(parsed) if issubclass(self.kind, StrEnum) else parsed


@cache
def _own_fields(model: Any) -> tuple[_OwnField, ...]:
    kinds = get_type_hints(model)
    if issubclass(model, Frozen):
        declared = {name: (each.default, _own_key(each.json_schema_extra)) for name, each in model.model_fields.items()}
    else:
        declared = {each.name: (each.default, each.metadata.get(OWN)) for each in fields(model)}
    found = []
    for name, (default, key) in declared.items():
        kind, _ = kind_of(kinds[name])
        if key is not None:
            found.append(_OwnField(name, kind, _definition(name, kind, default, key), key.elsewhere))
        elif isinstance(kind, type) and (kind is CopySettings or issubclass(kind, Frozen)) and _own_fields(kind):
            found.append(_OwnField(name, kind))
    return tuple(found)


def _own_key(extra: Any) -> OwnKey | None:
    return extra[OWN] if isinstance(extra, Mapping) else None


def _definition(name: str, kind: Any, default: Any, key: OwnKey) -> Definition:
    is_choice = isinstance(kind, type) and issubclass(kind, StrEnum)
    return Definition(
        key.name or PREFIX + name.replace("_", "."),
        ValueType(key.type) if key.type else STRING if is_choice else _TYPES.get(get_origin(kind) or kind, STRING),
        _text(default) if key.text is None else key.text,
        Scope.FLOW,
        SINCE,
        key.meaning,
        minimum=key.minimum,
        maximum=key.maximum,
        choices=tuple(kind) if is_choice else (),
        read=key.read,
    )


def _text(default: Any) -> str | None:
    """A default as the file would have it."""
    match default:
        case None:
            return None
        case bool():
            return str(default).lower()
        case int() | float():
            return f"{default:.15g}"
        case tuple() | Mapping():
            return ", ".join(default)
    return str(default)


def _definitions(model: type) -> Iterator[Definition]:
    for each in _own_fields(model):
        if each.definition is not None:
            yield each.definition
        else:
            yield from _definitions(each.kind)


def own_values(lookup: Lookup, model: type = FlowConfig) -> dict[str, Any]:
    """Return the values of the fields of a model that are settings, or hold models with settings.

    Raises:
        ValueError: a value is not valid.
    """
    values: dict[str, Any] = {}
    for each in _own_fields(model):
        if each.definition is None:
            values[each.name] = each.kind(**own_values(lookup, each.kind))
        elif not each.elsewhere and (text := lookup(each.definition.name)) is not None:
            values[each.name] = each.value(text)
    return values


FLOW_KEYS: tuple[Definition, ...] = tuple(_definitions(FlowConfig))

TOP_KEYS = (
    Definition(
        LEDGER_URL,
        STRING,
        None,
        Scope.TOP,
        SINCE,
        "SQL database of the run ledger as an SQLAlchemy URL of SQLite or PostgreSQL; default: a SQLite file in the "
        "state folder.",
    ),
)

OWN_BY_NAME = {definition.name: definition for definition in (*FLOW_KEYS, *TOP_KEYS, *CLUSTER_KEYS)}

#: The field of `CopySettings` that is set from the data producer, not from a `mirror.*` key.
REQUEST_MAX_BYTES = "request_max_bytes"
