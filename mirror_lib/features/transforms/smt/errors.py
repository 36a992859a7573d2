"""Errors of transforms and converters for a record."""

from __future__ import annotations

from typing import Any

from mirror_lib.errors import NOWHERE, ReplicationError, Where


class SmtError(ReplicationError):
    """A transform or a converter failed on a record, as it would in Connect. The caller adds where the record is."""

    reason = "transform"

    def __init__(self, configured: str, class_name: str, problem: str, *, where: Where = NOWHERE) -> None:
        """Create the error from the parts of its message.

        Args:
            configured: the key of the settings that names the class, such as `transforms.mask` or `value.converter`.
            class_name: the Java class by its short name, such as `MaskField$Value`.
            problem: one clause with the problem of the record.
            where: the record's coordinates, as far as they are known.
        """
        self.configured = configured
        self.class_name = class_name
        self.problem = problem
        super().__init__(
            f"{configured} ({class_name}) cannot transform the record: {problem}.",
            where=where,
            action=f"Change {configured}, or exclude such records with a predicate.",
        )

    def at(self, where: Where) -> SmtError:
        """Return the same error with the coordinates of the record."""
        return SmtError(self.configured, self.class_name, self.problem, where=where)

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (self.configured, self.class_name, self.problem, self.where)

    def attributes(self) -> dict[str, Any]:
        return super().attributes() | {"configured": self.configured, "class": self.class_name, "problem": self.problem}


def _rebuild(configured: str, class_name: str, problem: str, where: Where) -> SmtError:
    return SmtError(configured, class_name, problem, where=where)
