"""Everything that the page uses of Airflow's API server, in one module. Most of it is not part of Airflow's documented
interface.

Written for Airflow 3.3; an upgrade starts by reading this file. Only the API server imports it (`plugin`): it needs
seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from airflow.api.common.trigger_dag import trigger_dag
from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.resource_details import AccessView, DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import bearer_scheme, get_user
from airflow.configuration import conf
from airflow.exceptions import AirflowException, DagNotFound, ParamValidationError
from airflow.models.dag import DagModel
from airflow.models.log import Log
from airflow.utils.session import create_session
from airflow.utils.types import DagRunTriggeredByType
from fastapi import Request
from sqlalchemy import select

from mirror_lib.features.page.airflow_audit import RUN_EVENTS, act_of
from mirror_lib.features.page.control import DagState, RunAct
from mirror_lib.features.page.errors import DagRefusedError, DagUnknownError


@dataclass(frozen=True, slots=True)
class AirflowVisitor:
    """A user of Airflow's auth manager."""

    user: Any

    @property
    def name(self) -> str:
        """The user's name in Airflow."""
        return str(self.user.get_name())

    def may_open(self) -> bool:
        """Return True if the user may open Airflow's pages."""
        return bool(get_auth_manager().is_authorized_view(access_view=AccessView.WEBSITE, user=self.user))

    def readable(self, dag_ids: Collection[str]) -> frozenset[str]:
        """Check by team, as the auth manager requires; it may have a faster way than DAG by DAG."""
        manager = get_auth_manager()
        by_team: dict[str | None, set[str]] = {}
        for dag_id, team in _teams(dag_ids).items():
            by_team.setdefault(team, set()).add(dag_id)
        return frozenset(
            dag_id
            for team, members in by_team.items()
            for dag_id in manager.filter_authorized_dag_ids(
                dag_ids=members, user=self.user, method="GET", team_name=team
            )
        )

    def may_pause(self, dag_id: str) -> bool:
        """Check the permission of Airflow's own switch."""
        return self._may(dag_id, "PUT")

    def may_trigger(self, dag_id: str) -> bool:
        """Check the permission of Airflow's own button."""
        return self._may(dag_id, "POST", DagAccessEntity.RUN)

    def may_read_audit(self, dag_id: str) -> bool:
        """Check the permission of Airflow's own list of events."""
        return self._may(dag_id, "GET", DagAccessEntity.AUDIT_LOG)

    def _may(self, dag_id: str, method: Any, entity: Any = None) -> bool:
        details = DagDetails(id=dag_id, team_name=_teams([dag_id])[dag_id])
        return bool(
            get_auth_manager().is_authorized_dag(method=method, access_entity=entity, details=details, user=self.user)
        )


class AirflowControl:
    """The Airflow of this process."""

    async def visitor(self, request: Request) -> AirflowVisitor:
        """Authenticate by a token in the header, else by the cookie of a login."""
        return AirflowVisitor(await get_user(request, None, await bearer_scheme(request)))

    def dag_states(self, dag_ids: Collection[str]) -> Mapping[str, DagState]:
        """Read the states by one query."""
        query = select(DagModel.dag_id, DagModel.is_paused).where(
            DagModel.dag_id.in_(list(dag_ids)), ~DagModel.is_stale
        )
        with create_session() as session:
            return {dag_id: DagState(paused=bool(paused)) for dag_id, paused in session.execute(query)}

    def run_acts(self, dag_id: str, dag_runs: Collection[str], task_id: str) -> tuple[RunAct, ...]:
        """Read the events that Airflow's API writes, by the names of its functions."""
        query = (
            select(Log.run_id, Log.dttm, Log.owner, Log.event, Log.task_id, Log.extra)
            .where(Log.dag_id == dag_id, Log.run_id.in_(list(dag_runs)), Log.event.in_(RUN_EVENTS))
            .order_by(Log.dttm)
        )
        with create_session() as session:
            found = session.execute(query).all()
        acts = ((run, at, by, act_of(event, task, extra, task_id)) for run, at, by, event, task, extra in found)
        return tuple(RunAct(run, at, str(by or "unknown"), what) for run, at, by, what in acts if what is not None)

    def pause(self, dag_id: str, paused: bool) -> None:
        """Pause or unpause like Airflow's own switch."""
        with create_session() as session:
            dag = session.get(DagModel, dag_id)
            if dag is None or dag.is_stale:
                raise _unknown(dag_id)
            dag.is_paused = paused

    def trigger(self, dag_id: str, conf: Mapping[str, Any], *, by: str) -> str:
        """Trigger like Airflow's own button: the values must match the DAG's form."""
        if dag_id not in self.dag_states([dag_id]):
            raise _unknown(dag_id)
        try:
            run = trigger_dag(dag_id, triggered_by=DagRunTriggeredByType.UI, triggering_user_name=by, conf=dict(conf))
        except DagNotFound as error:
            raise _unknown(dag_id) from error
        except (AirflowException, ParamValidationError, ValueError) as error:
            raise DagRefusedError(
                f"Airflow did not start a run of {dag_id}: {error}.", action="Trigger it on the DAG's page in Airflow."
            ) from error
        if run is None:
            raise DagRefusedError(
                f"Airflow did not start a run of {dag_id}.", action="Check the log of Airflow's API server."
            )
        return str(run.run_id)

    def own_addresses(self) -> frozenset[str]:
        """Return the address in `[api] base_url`: behind a proxy, browsers may use another one than Airflow."""
        address = urlsplit(conf.get("api", "base_url", fallback="") or "").netloc.lower()
        return frozenset({address} if address else ())

    def login_address(self, back_to: str) -> str:
        """Return the auth manager's address."""
        return str(get_auth_manager().get_url_login(next_url=back_to))


def _teams(dag_ids: Collection[str]) -> dict[str, str | None]:
    if not conf.getboolean("core", "multi_team", fallback=False) or not dag_ids:
        return dict.fromkeys(dag_ids)
    found: Mapping[str, str | None] = DagModel.get_dag_id_to_team_name_mapping(list(dag_ids))
    return {dag_id: found.get(dag_id) for dag_id in dag_ids}


def _unknown(dag_id: str) -> DagUnknownError:
    return DagUnknownError(
        f"Airflow has no DAG {dag_id}.",
        action="Copy the file that creates it to the DAGs folder (`dags/`), then wait until Airflow has parsed it.",
    )
