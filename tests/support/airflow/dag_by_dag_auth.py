"""Airflow's own auth manager with permissions DAG by DAG, which its roles do not have: for tests in a real Airflow."""

from __future__ import annotations

import os
from typing import Any

from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

#: `user=dag,dag;user=dag`: the DAGs that are not there for somebody, whatever their role.
DENIED_VARIABLE = "TEST_DENIED_DAGS"


class DagByDagAuthManager(SimpleAuthManager):  # type: ignore[misc]
    """Decides about each DAG by itself, as FAB's does by its permissions on single DAGs."""

    def is_authorized_dag(self, *, user: Any, details: Any = None, **more: Any) -> bool:
        """By the role, but for DAGs that are denied."""
        denied = dict(part.split("=") for part in os.environ.get(DENIED_VARIABLE, "").split(";") if part)
        if details is not None and details.id in denied.get(user.get_name(), "").split(","):
            return False
        return bool(super().is_authorized_dag(user=user, details=details, **more))
