"""Refuses what only a Java process can do, where a client is to be made."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.config.java_security import java_only_problem
from mirror_lib.errors import ConfigurationError, Where


def refuse_java_only(properties: Mapping[str, str], beginning: str, where: Where, *, prefix: str = "") -> None:
    """Check the properties whose names have this beginning; Java does not look at the others either.

    Args:
        properties: of a client.
        beginning: such as `ssl.`.
        where: for the error.
        prefix: said before the name.

    Raises:
        ConfigurationError: one of them cannot be followed here.
    """
    for name in sorted(properties):
        problem = java_only_problem(name, properties[name]) if name.startswith(beginning) else None
        if problem is not None:
            raise ConfigurationError(f"{prefix}{name}: {problem.what}.", where=where, action=problem.action)
