"""What goes wrong between the page and Airflow."""

from __future__ import annotations

from mirror_lib.errors import MirrorError


class DagUnknownError(MirrorError):
    """Airflow has not parsed a flow's DAG."""

    reason = "dag-unknown"


class DagRefusedError(MirrorError):
    """Airflow does not start a run as asked."""

    reason = "dag-refused"
