"""The provider of Airflow's connections and variables, with any secrets backend."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mirror_lib.config.secrets.airflow_values import Reference
from mirror_lib.config.secrets.errors import NotLookedUpError
from mirror_lib.config.secrets.lookup_context import surroundings

#: The name for `config.providers.<name>.class`. Java's MM2 does not have it.
CLASS_NAME = "mirror_lib.AirflowSecretProvider"
_CONNECTION_SETTINGS = re.compile(r"(?:^|\.)(?:bootstrap\.servers|security\.protocol|(?:sasl|ssl)\.[a-z.]+)$")


class AirflowSecretProvider:
    """`${airflow:connection/ID:password}` and `${airflow:variable:NAME}`.

    Only code that connects to a cluster needs such a value. So DAGs are made and the page is shown without it, and it
    is allowed only in settings of connections to clusters.
    """

    def __init__(self, parameters: Mapping[str, str]) -> None:
        del parameters

    def get(self, path: str, key: str) -> str | None:
        """See `ConfigProvider`; raises `NotLookedUpError` if the value is not needed."""
        reference = Reference.parse(path, key)
        lookups = surroundings().lookups
        if lookups is None:
            raise NotLookedUpError(f"{reference} can be resolved only in Airflow tasks")
        return lookups.value(reference)

    @staticmethod
    def may_stand_in(key: str) -> bool:
        """Return True if a setting may have such values: `bootstrap.servers`, `security.protocol`, `sasl.*`,
        `ssl.*`.
        """
        return _CONNECTION_SETTINGS.search(key) is not None
