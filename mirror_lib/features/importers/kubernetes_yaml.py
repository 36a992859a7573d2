"""Kubernetes resources in YAML from the user: every scalar is kept as the text that is written. Pure.

Aliases can make a small text a huge document, so size, nesting and expanded size are limited before anything walks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from mirror_lib.errors import ConfigurationError

#: Characters. A resource of etcd has at most 1.5 MiB; a file may contain several.
LARGEST_TEXT = 8 * 1024 * 1024
LARGEST_DEPTH = 64
#: Values after expanding all aliases.
LARGEST_DOCUMENT = 500_000

#: All scalars are texts: no type is guessed and no object is constructed, so no code can be run.
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_TEMPLATE = "{{"
#: Of Helm and Jinja.
TEMPLATE_STARTS = (_TEMPLATE, "{%")
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


def read_documents(text: str, origin: str) -> tuple[Any, ...]:
    """Return the documents of a YAML text, as dictionaries, lists and strings; empty ones are skipped.

    Scalars stay as written: Kafka is to read `-1`, `true` and `3.10`.

    Raises:
        ConfigurationError: it is not YAML, or exceeds a limit.
    """
    if len(text) > LARGEST_TEXT:
        raise ConfigurationError(
            f"{origin} is larger than {LARGEST_TEXT // 1024 // 1024} MiB.", action="Pass only the resources to import."
        )
    try:
        _check_depth(text, origin)
        documents = [each for each in yaml.load_all(text, Loader=_LOADER) if each not in (None, "")]
    except yaml.YAMLError as error:
        raise _syntax_error(error, text, origin) from None
    except (ValueError, RecursionError, TypeError) as error:
        # Surrogates without an encoding, an alias within itself, a mapping as a key.
        raise ConfigurationError(
            f"{origin} is not a Kubernetes YAML file: {type(error).__name__}.",
            action="Pass the output of kubectl get -o yaml.",
        ) from None
    _check_size(documents, origin)
    return tuple(documents)


def is_null(value: Any) -> bool:
    """Return True if a value is absent, or YAML's null."""
    return value is None or (isinstance(value, str) and value in _NULLS)


def template_error(what: str) -> ConfigurationError:
    """Return the error about a template of Helm or Jinja that was not rendered.

    Args:
        what: the file, or what its reader complains about.
    """
    return ConfigurationError(
        f"{what} contains {_TEMPLATE} or {{%, as templates do.",
        action="Render it first, for example with `helm template`, or pass the output of kubectl get -o yaml.",
    )


def _check_depth(text: str, origin: str) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > LARGEST_DEPTH:
                line = event.start_mark.line + 1
                raise ConfigurationError(
                    f"{origin}, line {line}: nested deeper than {LARGEST_DEPTH} levels.",
                    action="Pass the output of kubectl get -o yaml.",
                )
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_size(documents: list[Any], origin: str) -> None:
    for count, level in enumerate(_levels(documents)):
        if count > LARGEST_DOCUMENT or level > LARGEST_DEPTH:
            raise ConfigurationError(
                f"{origin}: its aliases expand to more than {LARGEST_DOCUMENT} values or {LARGEST_DEPTH} levels.",
                action="Replace the YAML aliases by their values.",
            )


def _levels(value: Any) -> Iterator[int]:
    """Yield the level of each value, one after the other."""
    waiting: list[tuple[int, Any]] = [(0, value)]
    while waiting:
        level, each = waiting.pop()
        yield level
        inner = each.values() if isinstance(each, dict) else each if isinstance(each, list) else ()
        waiting += [(level + 1, member) for member in inner]


def _syntax_error(error: yaml.YAMLError, text: str, origin: str) -> ConfigurationError:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    where = "" if mark is None else f", line {mark.line + 1}, column {mark.column + 1}"
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "it cannot be read"
    if _TEMPLATE in text:
        return template_error(f"{origin}{where}: {problem}; it")
    return ConfigurationError(
        f"{origin}{where}: {problem}: malformed YAML.", action="Correct it, or pass the output of kubectl get -o yaml."
    )
