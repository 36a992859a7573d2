"""Names of `${airflow:...}`, and their lookup outside Airflow: in Airflow's own environment variables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from mirror_lib.config.secrets.errors import NotLookedUpError, ProviderError

#: Passes values from a task of Airflow to the Spark driver that it starts: a JSON object, see `handed_over`.
HANDED_OVER: Final = "MIRROR_AIRFLOW_VALUES"
_FIELDS = ("login", "password", "host", "port", "schema")
_EXTRA = "extra."
_CONNECTION, _VARIABLE = "connection/", "variable"
#: In the query of a connection's URI: all extras as one JSON text (Airflow's `Connection.EXTRA_KEY`).
_ALL_EXTRAS = "__extra__"
_FORMS = "${name:connection/ID:password} (or login, host, port, schema, extra.KEY) or ${name:variable:NAME}"


@dataclass(frozen=True, slots=True)
class Reference:
    """One value of Airflow: `field` of a connection, or a variable, which has no field."""

    name: str
    field: str | None

    @classmethod
    def parse(cls, path: str, key: str) -> Reference:
        """Parse the two parts after the provider's name.

        Raises:
            ProviderError: it is neither of the two forms.
        """
        if path == _VARIABLE and key:
            return cls(key, None)
        name = path.removeprefix(_CONNECTION)
        known = key in _FIELDS or (key.startswith(_EXTRA) and key != _EXTRA)
        if path.startswith(_CONNECTION) and name and known:
            return cls(name, key)
        raise ProviderError(f"{path}:{key} is not a valid reference to Airflow; write {_FORMS}")

    def __str__(self) -> str:
        return f"{_VARIABLE}:{self.name}" if self.field is None else f"{_CONNECTION}{self.name}:{self.field}"


class AirflowLookups(Protocol):
    """A lookup of values of Airflow."""

    def value(self, reference: Reference) -> str:
        """Return the value.

        Raises:
            ProviderError: there is none.
            NotLookedUpError: there may be one, and it is not needed here.
        """


@dataclass(frozen=True, slots=True)
class ConnectionValues:
    """The fields of an Airflow connection that a Kafka client can use."""

    login: str | None = None
    password: str | None = field(default=None, repr=False)
    host: str | None = None
    port: int | str | None = None
    schema: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def value(self, reference: Reference) -> str:
        """Return the field that a reference names.

        Raises:
            ProviderError: the connection does not have it.
        """
        name = reference.field or ""
        found = self.extra.get(name.removeprefix(_EXTRA)) if name.startswith(_EXTRA) else getattr(self, name, None)
        if found is None or found == "":
            raise ProviderError(f"the Airflow connection {reference.name} has no {name}")
        return found if isinstance(found, str) else json.dumps(found)


class EnvironmentLookups:
    """Lookups outside Airflow: values passed by a task, else `AIRFLOW_CONN_<ID>` and `AIRFLOW_VAR_<NAME>`."""

    def __init__(self, environment: Mapping[str, str], *, needed: bool = True) -> None:
        """Use an environment.

        Args:
            environment: the process environment.
            needed: True if a missing value is an error.
        """
        self._environment = environment
        self._needed = needed

    def value(self, reference: Reference) -> str:
        """See `AirflowLookups`."""
        known = handed_over(self._environment)
        if (found := known.get(str(reference))) is not None:
            return found
        kind = "AIRFLOW_VAR_" if reference.field is None else "AIRFLOW_CONN_"
        variable = f"{kind}{reference.name.upper()}"
        text = self._environment.get(variable)
        if text is None:
            if not self._needed:
                raise NotLookedUpError(f"{reference} can be resolved only in Airflow tasks")
            raise ProviderError(
                f"only an Airflow task can resolve {reference}; elsewhere set {variable}, as Airflow defines it"
            )
        return text if reference.field is None else connection_values(text, variable).value(reference)


def handed_over(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return values by their references, as `hand_over` wrote them; empty if there are none.

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


def hand_over(values: Mapping[Reference, str]) -> dict[str, str]:
    """Return the environment variable that passes values to a child process; empty without values."""
    return {HANDED_OVER: json.dumps({str(reference): value for reference, value in values.items()})} if values else {}


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
    return ConnectionValues(**{name: found.get(name) for name in _FIELDS}, extra=extra)


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
