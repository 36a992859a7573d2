"""A setting: name, type, default, where it is allowed, and its effect here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from mirror_lib.topology.java_types import Value, ValueType, parse_value

BOOLEAN, SHORT, INT, LONG = ValueType.BOOLEAN, ValueType.SHORT, ValueType.INT, ValueType.LONG
STRING, LIST, CLASS, DOUBLE = ValueType.STRING, ValueType.LIST, ValueType.CLASS, ValueType.DOUBLE


class Scope(Enum):
    """Where a key is allowed in the file."""

    #: Only as `name`.
    TOP = "top level"
    #: As `name` for all flows or as `A->B.name` for one.
    FLOW = "top level, flow"
    #: Only as `A->B.name`; MM2 drops it silently at the top level.
    FLOW_ONLY = "flow"
    #: As `B.name` for the flows whose target is B.
    CLUSTER = "cluster"
    #: As `B.name`, or as `name`, which then has priority (MM2's worker rules).
    WORKER = "top level, cluster"


@dataclass(frozen=True, slots=True)
class Definition:
    """One setting. `default` is the text of the default value; None means that there is none."""

    name: str
    type: ValueType
    default: str | None
    scope: Scope
    since: str
    meaning: str
    #: Set if this project does not apply the setting: the sentence that says what happens instead.
    instead: str = ""
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    #: True if Kafka accepts the choices in capitals too (`ConfigDef.CaseInsensitiveValidString`).
    any_case: bool = False
    #: From the text to the value here, of the project's own settings.
    read: Callable[[str], Any] | None = None
    #: `module:function` that raises `ValueError` for another text; of a feature.
    check: str = ""

    @property
    def field(self) -> str:
        """The name of the attribute that holds the value in `FlowConfig`."""
        return self.name.replace(".", "_").replace("-", "_")

    def parse(self, text: str) -> Value:
        """Return the typed value.

        Raises:
            ValueError: wrong type or outside the range; the message completes "must be".
        """
        value = parse_value(self.type, text)
        if self.any_case and isinstance(value, str):
            value = value.lower()
        if self.choices and value not in self.choices:
            raise ValueError("one of " + ", ".join(self.choices))
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            _check_range(value, self.minimum, self.maximum)
        return value


def _check_range(value: float, minimum: float | None, maximum: float | None) -> None:
    if maximum is not None and not (minimum or 0) <= value <= maximum:
        raise ValueError(f"from {minimum or 0} to {maximum}")
    if minimum is not None and value < minimum:
        raise ValueError(f"at least {minimum}")
