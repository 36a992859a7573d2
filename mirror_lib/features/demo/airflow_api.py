"""A small client of Airflow's REST API (v2): trigger a flow's DAG and follow it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import quote

from mirror_lib.errors import MirrorError
from mirror_lib.features.http_client import HttpError, HttpLimits, HttpRequest, send

_LIMITS = HttpLimits(deadline_seconds=60.0, largest_bytes=64 * 1024 * 1024)
_SHOWN_REASON = 500
_FINISHED = frozenset({"success", "failed"})


class AirflowApiError(MirrorError):
    """Airflow rejected a request, or did not respond."""

    reason = "airflow-api"
    retriable = True


@dataclass(frozen=True, slots=True)
class DagRunStatus:
    """A DAG run and its tasks at one moment."""

    run_id: str
    state: str
    #: Task id -> state, None if Airflow has not scheduled the task yet.
    tasks: Mapping[str, str | None] = field(default_factory=dict)
    #: Task id -> number of tries.
    tries: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """True if the run has ended, with any result."""
        return self.state in _FINISHED

    @property
    def failed_tasks(self) -> tuple[str, ...]:
        """Tasks that failed themselves, in the order of the API."""
        return tuple(task for task, state in self.tasks.items() if state == "failed")


@dataclass(frozen=True, slots=True)
class TaskTimes:
    """When a task instance started and ended; None for what has not happened."""

    started: datetime | None
    ended: datetime | None


class AirflowApi:
    """Requests to one Airflow.

    Args:
        url: of its API server.
        token: of a login; the demo's Airflow needs none (`simple_auth_manager_all_admins`).

    Raises:
        AirflowApiError: from every method, if Airflow responds with an error or not at all.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        self.url = url.rstrip("/")
        self._headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def health(self) -> dict[str, str]:
        """Return component -> status, `healthy` if it heartbeats; available as soon as the API server is up."""
        response = self._request("GET", "/api/v2/monitor/health")
        return {name: part.get("status") or "unknown" for name, part in response.items() if part}

    def has_dag(self, dag_id: str) -> bool:
        """Return True if the DAG has been parsed and stored."""
        # As a pattern, `_` stands for any character, and upper case for lower case too.
        found = self._request("GET", f"/api/v2/dags?dag_id_pattern={quote(dag_id)}")["dags"]
        return any(dag["dag_id"] == dag_id for dag in found)

    def import_errors(self) -> dict[str, str]:
        """Return DAG file -> why it could not be parsed."""
        errors = self._request("GET", "/api/v2/importErrors")["import_errors"]
        return {error["filename"]: error["stack_trace"] for error in errors}

    def unpause(self, dag_id: str) -> None:
        """Unpause the DAG."""
        self._request("PATCH", f"/api/v2/dags/{quote(dag_id)}", {"is_paused": False})

    def pause(self, dag_id: str) -> None:
        """Pause the DAG: no run of it starts, and no further task of a current run."""
        self._request("PATCH", f"/api/v2/dags/{quote(dag_id)}", {"is_paused": True})

    def tags(self, dag_id: str) -> set[str]:
        """Return the tags of a DAG."""
        return {tag["name"] for tag in self._request("GET", f"/api/v2/dags/{quote(dag_id)}")["tags"]}

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> str:
        """Start a run by hand with values for the trigger form; return its id."""
        response = self._request(
            "POST", f"/api/v2/dags/{quote(dag_id)}/dagRuns", {"logical_date": None, "conf": dict(conf)}
        )
        return str(response["dag_run_id"])

    def run_status(self, dag_id: str, run_id: str) -> DagRunStatus:
        """Return the state of a run and of each of its tasks."""
        run = _run_path(dag_id, run_id)
        state = self._request("GET", run)["state"]
        tasks = self._request("GET", f"{run}/taskInstances")["task_instances"]
        return DagRunStatus(
            run_id,
            state,
            tasks={task["task_id"]: task["state"] for task in tasks},
            tries={task["task_id"]: task.get("try_number") or 0 for task in tasks},
        )

    def queued_at(self, dag_id: str, run_id: str) -> datetime:
        """Return when a run was created."""
        run = self._request("GET", _run_path(dag_id, run_id))
        return datetime.fromisoformat(run["queued_at"])

    def task_times(self, dag_id: str, run_id: str) -> dict[str, TaskTimes]:
        """Return task id -> times of a run's task instances."""
        run = _run_path(dag_id, run_id)
        return {
            task["task_id"]: TaskTimes(*(_time(task[name]) for name in ("start_date", "end_date")))
            for task in self._request("GET", f"{run}/taskInstances")["task_instances"]
        }

    def mark_run(self, dag_id: str, run_id: str, state: str) -> None:
        """Mark a run as `success` or `failed`, which ends its tasks."""
        self._request("PATCH", _run_path(dag_id, run_id), {"state": state})

    def clear_run(self, dag_id: str, run_id: str) -> None:
        """Clear all tasks of a run."""
        body = {"dry_run": False, "only_failed": False}
        self._request("POST", f"{_run_path(dag_id, run_id)}/clear", body)

    def delete_run(self, dag_id: str, run_id: str) -> None:
        """Delete a run that is not running; Airflow rejects others."""
        self._request("DELETE", _run_path(dag_id, run_id))

    def has_ended(self, dag_id: str, run_id: str) -> bool:
        """Return True if a run has ended; this costs Airflow less than the states of its tasks."""
        run = _run_path(dag_id, run_id)
        return self._request("GET", run)["state"] in _FINISHED

    def runs(self, dag_id: str) -> dict[str, str]:
        """Return run id -> state of a DAG's runs."""
        found = self._request("GET", f"/api/v2/dags/{quote(dag_id)}/dagRuns")["dag_runs"]
        return {run["dag_run_id"]: run["state"] for run in found}

    def return_value(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """Return the return value of a task."""
        run = _run_path(dag_id, run_id)
        return self._request("GET", f"{run}/taskInstances/{quote(task_id)}/xcomEntries/return_value")["value"]

    def questions(self, dag_id: str, run_id: str) -> dict[str, str]:
        """Return task id -> question, for the tasks of a run that wait for an operator."""
        path = f"{_run_path(dag_id, run_id)}/hitlDetails?response_received=false"
        found = self._request("GET", path)["hitl_details"]
        return {each["task_instance"]["task_id"]: f"{each['subject']}\n{each['body']}" for each in found}

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Answer a task's question."""
        task = f"{_run_path(dag_id, run_id)}/taskInstances/{quote(task_id)}/-1"
        self._request("PATCH", f"{task}/hitlDetails", {"chosen_options": [option], "params_input": {}})

    def clear(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Clear a task of a run, and all downstream tasks."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [task_id],
            "include_downstream": True,
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self._request("POST", f"/api/v2/dags/{quote(dag_id)}/clearTaskInstances", body)

    def add_connection(self, conn_id: str, conn_type: str, host: str, port: int | None = None) -> None:
        """Create a connection."""
        body = {"connection_id": conn_id, "conn_type": conn_type, "host": host, "port": port}
        self._request("POST", "/api/v2/connections", body)

    def add_pool(self, name: str, slots: int) -> None:
        """Create a pool."""
        self._request("POST", "/api/v2/pools", {"name": name, "slots": slots})

    def plugins(self) -> set[str]:
        """Return the names of the loaded plugins."""
        return {plugin["name"] for plugin in self._request("GET", "/api/v2/plugins")["plugins"]}

    def run_page(self, dag_id: str, run_id: str) -> str:
        """Return the address of a run's page."""
        return f"{self.url}/dags/{quote(dag_id)}/runs/{quote(run_id)}"

    def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = HttpRequest(method, self.url + path, self._headers, data)
        try:
            # Requests to this machine itself must not use a proxy.
            response = send(request, _LIMITS, use_proxies=False)
            if not response.is_success:
                raise AirflowApiError(
                    f"Airflow answered {method} {path} with {response.status}: {self._shown_reason(response.content)}"
                )
            content: dict[str, Any] = response.json() if response.content else {}
        except (HttpError, ValueError) as error:
            raise AirflowApiError(f"Airflow at {self.url} did not answer {method} {path}: {error}.") from None
        return content

    def _shown_reason(self, content: bytes) -> str:
        text = content.decode(errors="replace")
        token = self._headers.get("Authorization", "").removeprefix("Bearer ")
        return (text.replace(token, "***") if token else text)[:_SHOWN_REASON]


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{quote(dag_id)}/dagRuns/{quote(run_id)}"


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
