"""What the page needs of the program that it is a part of: who looks at it, what they may do, and DAGs to act on.

`airflow_access` has the real thing; tests put their own in its place.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from fastapi import Request


@dataclass(frozen=True, slots=True)
class DagState:
    """What Airflow knows of a DAG that it has parsed."""

    paused: bool


@dataclass(frozen=True, slots=True)
class RunAct:
    """What somebody did to a DAG run that may have ended what it was at, by Airflow's audit log."""

    dag_run: str
    at: datetime
    by: str
    #: Such as `marked it as failed`.
    what: str


class Visitor(Protocol):
    """A person, or a program with a person's token."""

    @property
    def name(self) -> str:
        """For the audit."""

    def may_open(self) -> bool:
        """Whether the page may be seen at all."""

    def readable(self, dag_ids: Collection[str]) -> frozenset[str]:
        """Those of the DAGs that may be read."""

    def may_pause(self, dag_id: str) -> bool:
        """Whether the DAG may be changed."""

    def may_trigger(self, dag_id: str) -> bool:
        """Whether runs of the DAG may be started."""

    def may_read_audit(self, dag_id: str) -> bool:
        """Whether what others did with the DAG may be read."""


class Control(Protocol):
    """Airflow, as far as the page has to do with it."""

    async def visitor(self, request: Request) -> Visitor:
        """Who asks.

        Raises:
            HTTPException: 401 when nobody is logged in, 403 when the credentials are refused.
        """

    def dag_states(self, dag_ids: Collection[str]) -> Mapping[str, DagState]:
        """The state of each of the DAGs that Airflow knows."""

    def run_acts(self, dag_id: str, dag_runs: Collection[str], task_id: str) -> tuple[RunAct, ...]:
        """What people did to DAG runs, or to this task of them, oldest first: marked, cleared, deleted."""

    def pause(self, dag_id: str, paused: bool) -> None:
        """Pause a DAG, or let its runs begin.

        Raises:
            DagUnknownError: Airflow does not know it.
        """

    def trigger(self, dag_id: str, conf: Mapping[str, Any], *, by: str) -> str:
        """Start a run by hand; returns its id.

        Raises:
            DagUnknownError: Airflow does not know the DAG.
            DagRefusedError: Airflow does not start it so.
        """

    def own_addresses(self) -> frozenset[str]:
        """`host:port` under which people reach Airflow, as configured."""

    def login_address(self, back_to: str) -> str:
        """Where people log in; it leads back afterwards."""
