"""Names of `${airflow:...}`, and the fields of a connection."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from mirror_lib.config.secrets.providers import ProviderError

#: Fields of a connection, in addition to its extras.
FIELDS: Final = ("login", "password", "host", "port", "schema")
_EXTRA = "extra."
_CONNECTION, _VARIABLE = "connection/", "variable"
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
        known = key in FIELDS or (key.startswith(_EXTRA) and key != _EXTRA)
        if path.startswith(_CONNECTION) and name and known:
            return cls(name, key)
        raise ProviderError(f"{path}:{key} is not a valid reference to Airflow; write {_FORMS}")

    def __str__(self) -> str:
        return f"{_VARIABLE}:{self.name}" if self.field is None else f"{_CONNECTION}{self.name}:{self.field}"


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
