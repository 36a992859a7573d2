"""Properties that only Java supports."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.config.security.java_only import java_only_problem
from mirror_lib.errors import ConfigurationError, Where


def refuse_java_only(properties: Mapping[str, str], beginning: str, where: Where, *, prefix: str = "") -> None:
    """Check the properties whose names have this beginning; like Java, ignore others.

    Args:
        properties: of a client.
        beginning: such as `ssl.`.
        where: for the error.
        prefix: text before the name in the error.

    Raises:
        ConfigurationError: one of them is not supported.
    """
    for name in sorted(properties):
        problem = java_only_problem(name, properties[name]) if name.startswith(beginning) else None
        if problem is not None:
            raise ConfigurationError(f"{prefix}{name}: {problem.what}.", where=where, action=problem.action)
