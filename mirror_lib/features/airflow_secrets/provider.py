"""The provider of Airflow's connections and variables, with any secrets backend."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from mirror_lib.config.secrets.lookup_context import Lookups, surroundings
from mirror_lib.config.secrets.providers import NotLookedUpError
from mirror_lib.features.airflow_secrets.environment import environment_value
from mirror_lib.features.airflow_secrets.values import Reference

_CONNECTION_SETTINGS = re.compile(r"(?:^|\.)(?:bootstrap\.servers|security\.protocol|(?:sasl|ssl)\.[a-z.]+)$")
_NOT_OF_AIRFLOW = (
    "values from Airflow are allowed only in connection settings of a cluster (bootstrap.servers, "
    "security.protocol, sasl.*, ssl.*), because DAGs and the page are built without them; use another provider here"
)


class AirflowSecretProvider:
    """`${airflow:connection/ID:password}` and `${airflow:variable:NAME}`.

    Only code that connects to a cluster needs such a value. So DAGs are made and the page is shown without it, and it
    is allowed only in settings of connections to clusters.
    """

    def __init__(self, parameters: Mapping[str, str]) -> None:
        del parameters

    def get(self, path: str, key: str) -> str | None:
        """See `ConfigProvider`; raises `TransientError` if Airflow does not respond to a task."""
        reference = Reference.parse(path, key)
        where = surroundings()
        if where.task is not None:
            from mirror_lib.features.airflow_secrets.airflow.lookups import task_value

            return task_value(reference, where.task)
        if where.lookups is Lookups.NONE:
            raise NotLookedUpError(f"{reference} can be resolved only in Airflow tasks")
        return environment_value(reference, os.environ, is_needed=where.lookups is Lookups.NEEDED)

    def refusal(self, key: str) -> str | None:
        """See `LimitsSettings`; allowed are `bootstrap.servers`, `security.protocol`, `sasl.*`, `ssl.*`."""
        return None if _CONNECTION_SETTINGS.search(key) else _NOT_OF_AIRFLOW
