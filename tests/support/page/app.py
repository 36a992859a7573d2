"""The page without Airflow: people, permissions and DAGs are plain values that a test sets and looks at."""

from __future__ import annotations

import copy
import socket
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI, HTTPException, Request
from starlette.datastructures import State

from mirror_lib.features.page.app import create_app
from mirror_lib.features.page.context import Page
from mirror_lib.features.page.control import DagState, RunAct, Visitor
from mirror_lib.features.page.errors import DagUnknownError
from mirror_lib.features.page.flows import FlowSource
from mirror_lib.features.page.limits import RateLimits

_PROJECT = Path(__file__).parents[3]
#: What actions need besides a login.
ACTION = {"X-Replication-Action": "1", "Content-Type": "application/json"}


@dataclass
class Person:
    """Somebody who asks; None stands for every DAG."""

    name: str = "marta"
    reads: frozenset[str] | None = None
    changes: frozenset[str] | None = None
    opens: bool = True
    audits: bool = True

    def may_open(self) -> bool:
        return self.opens

    def readable(self, dag_ids: Collection[str]) -> frozenset[str]:
        return frozenset(dag_ids) if self.reads is None else self.reads & frozenset(dag_ids)

    def may_pause(self, dag_id: str) -> bool:
        return self.changes is None or dag_id in self.changes

    def may_trigger(self, dag_id: str) -> bool:
        return self.may_pause(dag_id)

    def may_read_audit(self, dag_id: str) -> bool:
        return self.audits


@dataclass
class Airflow:
    """Airflow as a test wants it."""

    person: Person | None = field(default_factory=Person)
    #: None: every DAG is known and not paused.
    dags: dict[str, bool] | None = None
    triggered: list[tuple[str, dict[str, Any], str]] = field(default_factory=list)
    acts: tuple[RunAct, ...] = ()

    async def visitor(self, request: Request) -> Visitor:
        if self.person is None:
            raise HTTPException(401, "Not authenticated")
        return self.person

    def dag_states(self, dag_ids: Collection[str]) -> Mapping[str, DagState]:
        if self.dags is None:
            return {dag_id: DagState(paused=False) for dag_id in dag_ids}
        return {dag_id: DagState(paused=self.dags[dag_id]) for dag_id in dag_ids if dag_id in self.dags}

    def run_acts(self, dag_id: str, dag_runs: Collection[str], task_id: str) -> tuple[RunAct, ...]:
        return tuple(act for act in self.acts if act.dag_run in dag_runs)

    def pause(self, dag_id: str, paused: bool) -> None:
        if self.dags is None:
            self.dags = {}
        self.dags[dag_id] = paused

    def trigger(self, dag_id: str, conf: Mapping[str, Any], *, by: str) -> str:
        if self.dags is not None and dag_id not in self.dags:
            raise DagUnknownError(f"Airflow has no DAG {dag_id}.")
        self.triggered.append((dag_id, dict(conf), by))
        return f"manual__{len(self.triggered)}"

    def own_addresses(self) -> frozenset[str]:
        return frozenset({"airflow.example"})

    def login_address(self, back_to: str) -> str:
        return f"/auth/login?next={back_to}"


def page_app(config: Path | None, airflow: Airflow, **environment: str) -> FastAPI:
    """The page of one configuration file."""
    named = {} if config is None else {"MIRROR_CONFIG": str(config)}
    flows = FlowSource({**named, **environment}, _PROJECT)
    # FastAPI analyses the routes for as long as a hundred requests take. They know the page by the app's state only.
    app = copy.copy(_analysed())
    app.state = State({"page": Page(flows=flows, control=airflow, limits=RateLimits(flows.environment))})
    return app


@cache
def _analysed() -> FastAPI:
    """An app that is never asked, so that each copy makes its own stack of middleware."""
    return create_app(FlowSource({}, _PROJECT), Airflow())


@contextmanager
def served_page(app: FastAPI) -> Iterator[str]:
    """Serve the page on a free port; gives its address."""
    outer = FastAPI()
    outer.mount("/replication", app)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(outer, log_level="warning", lifespan="off"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started:
                time.sleep(0.02)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}/replication/"
        finally:
            server.should_exit = True
            thread.join()


@dataclass
class Site:
    """The served page, and the Airflow that it talks to."""

    url: str
    airflow: Airflow
