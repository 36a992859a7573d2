"""Names that link Airflow's DAG runs and the ledger's runs. No I/O, and no Airflow."""

from __future__ import annotations

import re
from typing import Final

from mirror_lib.topology.names import FlowId

#: Characters that Airflow does not allow in DAG ids; cluster aliases may contain them.
_NOT_IN_IDS = re.compile(r"[^A-Za-z0-9_.\-]")

#: The DAG that reports broken DAG files where no DAG file can raise the error.
BROKEN_FILES_DAG: Final = "mirror_broken_files"


def dag_id_of(flow: FlowId) -> str:
    """`mirror__<source>__<target>`: stable, so that history and API clients survive upgrades."""
    return "__".join(["mirror", *(_NOT_IN_IDS.sub("_", alias) for alias in (flow.source, flow.target))])


def verify_dag_id_of(flow: FlowId) -> str:
    """`mirror_verify__<source>__<target>`, the DAG that compares a flow's target with its source."""
    return f"mirror_verify{dag_id_of(flow).removeprefix('mirror')}"


def cutover_dag_id_of(flow: FlowId) -> str:
    """`mirror_cutover__<source>__<target>`, the DAG that moves a flow's writers and readers."""
    return f"mirror_cutover{dag_id_of(flow).removeprefix('mirror')}"


def trigger_text(dag_id: str, dag_run_id: str) -> str:
    """The ledger's `trigger` for runs of one DAG run; several runs if the task was retried."""
    return f"airflow {dag_id} {dag_run_id}"
