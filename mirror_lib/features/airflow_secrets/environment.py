"""Lookups outside Airflow's tasks: values passed by a task, else Airflow's own environment variables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from mirror_lib.config.secrets.lookup_context import HANDED_OVER
from mirror_lib.config.secrets.providers import NotLookedUpError, ProviderError
from mirror_lib.features.airflow_secrets.values import FIELDS, ConnectionValues, Reference

#: In the query of a connection's URI: all extras as one JSON text (Airflow's `Connection.EXTRA_KEY`).
_ALL_EXTRAS = "__extra__"


def environment_value(reference: Reference, environment: Mapping[str, str], *, is_needed: bool = True) -> str:
    """Return a value that a task has passed, else of `AIRFLOW_CONN_<ID>` or `AIRFLOW_VAR_<NAME>`.

    Raises:
        ProviderError: there is none, and it is needed.
        NotLookedUpError: there is none, and it is not needed here.
    """
    known = _handed_over(environment)
    if (found := known.get(str(reference))) is not None:
        return found
    kind = "AIRFLOW_VAR_" if reference.field is None else "AIRFLOW_CONN_"
    variable = f"{kind}{reference.name.upper()}"
    text = environment.get(variable)
    if text is None:
        if not is_needed:
            raise NotLookedUpError(f"{reference} can be resolved only in Airflow tasks")
        raise ProviderError(
            f"only an Airflow task can resolve {reference}; elsewhere set {variable}, as Airflow defines it"
        )
    return text if reference.field is None else connection_values(text, variable).value(reference)


def _handed_over(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the values that a task has passed, by their references; empty if there are none.

    Raises:
        ProviderError: the variable holds something else.
    """
    text = environment.get(HANDED_OVER)
    if not text:
        return {}
    try:
        found = json.loads(text)
    except json.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not all(isinstance(value, str) for value in found.values()):
        raise ProviderError(f"{HANDED_OVER} was not set by this program; unset it")
    return found


def connection_values(text: str, variable: str) -> ConnectionValues:
    """Read `AIRFLOW_CONN_<ID>`: a JSON object or a URI (Airflow's `Connection.from_json` and `from_uri`).

    Raises:
        ProviderError: it is neither; the text, which may hold a password, is not repeated.
    """
    try:
        return _from_json(text) if text.lstrip().startswith("{") else _from_uri(text)
    except (ValueError, TypeError):
        # The cause contains the text.
        raise ProviderError(f"{variable} is neither the JSON nor the URI of an Airflow connection") from None


def _from_json(text: str) -> ConnectionValues:
    found = json.loads(text)
    extra = found.get("extra") or {}
    if isinstance(extra, str):
        extra = json.loads(extra)
    if not isinstance(extra, dict):
        raise TypeError("extra must be an object")
    return ConnectionValues(**{name: found.get(name) for name in FIELDS}, extra=extra)


def _from_uri(text: str) -> ConnectionValues:
    kind, mark, rest = text.partition("://")
    if not mark or not kind:
        raise ValueError("not a valid URI")
    protocol, inner, behind = rest.partition("://")
    parts = urlsplit(f"//{behind if inner else rest}")
    extra: dict[str, Any] = dict(parse_qsl(parts.query, keep_blank_values=True))
    if _ALL_EXTRAS in extra:
        extra = json.loads(extra[_ALL_EXTRAS])
    host = unquote(parts.hostname or "")
    return ConnectionValues(
        login=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        host=f"{protocol}://{host}" if inner else host or None,
        port=parts.port,
        schema=unquote(parts.path[1:]) or None,
        extra=extra,
    )
