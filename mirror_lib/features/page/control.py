"""The interface of the page to its host program: visitors, their permissions, and DAGs to act on.

`airflow_access` implements it; tests have their own implementation.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from fastapi import Request


@dataclass(frozen=True, slots=True)
class DagState:
    """The state of a DAG that Airflow has parsed."""

    paused: bool


@dataclass(frozen=True, slots=True)
class RunAct:
    """A manual action on a DAG run that may have ended its work, from Airflow's audit log."""

    dag_run: str
    at: datetime
    by: str
    #: Such as `marked it as failed`.
    what: str


class Visitor(Protocol):
    """A user, or a program with a user's token."""

    @property
    def name(self) -> str:
        """For the audit log."""

    def may_open(self) -> bool:
        """Return True if the page may be opened."""

    def readable(self, dag_ids: Collection[str]) -> frozenset[str]:
        """Return the DAGs that may be read."""

    def may_pause(self, dag_id: str) -> bool:
        """Return True if the DAG may be changed."""

    def may_trigger(self, dag_id: str) -> bool:
        """Return True if runs of the DAG may be started."""

    def may_read_audit(self, dag_id: str) -> bool:
        """Return True if the audit log of the DAG may be read."""


class Control(Protocol):
    """The functions of Airflow that the page uses."""

    async def visitor(self, request: Request) -> Visitor:
        """Return the visitor.

        Raises:
            HTTPException: 401 without a login, 403 if the credentials are rejected.
        """

    def dag_states(self, dag_ids: Collection[str]) -> Mapping[str, DagState]:
        """Return the state of each of the DAGs that Airflow has parsed."""

    def run_acts(self, dag_id: str, dag_runs: Collection[str], task_id: str) -> tuple[RunAct, ...]:
        """Return manual actions on DAG runs, or on this task of them, oldest first: marked, cleared, deleted."""

    def pause(self, dag_id: str, paused: bool) -> None:
        """Pause or unpause a DAG.

        Raises:
            DagUnknownError: Airflow has no such DAG.
        """

    def trigger(self, dag_id: str, conf: Mapping[str, Any], *, by: str) -> str:
        """Start a run by hand; return its id.

        Raises:
            DagUnknownError: Airflow has no such DAG.
            DagRefusedError: Airflow rejects the request.
        """

    def own_addresses(self) -> frozenset[str]:
        """Return `host:port` under which browsers reach Airflow, as configured."""

    def login_address(self, back_to: str) -> str:
        """Return the address of the login, which redirects back afterwards."""
