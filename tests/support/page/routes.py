"""What can be asked of the page: read from the app itself, so that a new route cannot be forgotten by a test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.utils import get_flat_dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

#: A value for each part of a path that leads somewhere in the seeded ledger.
GAP = "9f6d2c1e-0000-4000-8000-000000000001"
DAG = "mirror__berlin__cloud"
_BY_ROUTE = {"/api/cutovers/{name}": {"name": "orders-wave-1"}, "/static/{name}": {"name": "main.js"}}
#: An order that each acting route takes.
ORDERS: Mapping[str, dict[str, Any]] = {
    "/api/flows/{dag_id}/pause": {"paused": True},
    "/api/flows/{dag_id}/run": {"dry_run": True},
    "/api/flows/{dag_id}/verify": {"mode": "recent"},
    "/api/flows/{dag_id}/gaps/{gap_id}": {"decision": "accept", "note": "as agreed"},
}
_REQUIRED = {"group": "billing"}


@dataclass(frozen=True, slots=True)
class Route:
    """One route with the names of everything that it takes."""

    method: str
    path: str
    in_path: tuple[str, ...]
    in_query: tuple[str, ...]
    in_body: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    def path_values(self, dag_id: str = DAG) -> dict[str, str]:
        """What leads somewhere."""
        known = {"dag_id": dag_id, "gap_id": GAP, **_BY_ROUTE.get(self.path, {})}
        return {name: known[name] for name in self.in_path}

    def query_values(self) -> dict[str, str]:
        """What must be asked."""
        return {name: _REQUIRED[name] for name in self.in_query if name in _REQUIRED}

    def order(self) -> dict[str, Any] | None:
        """What is posted, None where nothing is."""
        return dict(ORDERS[self.path]) if self.method == "POST" else None


def routes_of(app: FastAPI) -> list[Route]:
    """All of them; one that is not understood fails by name."""
    found = []
    for route in app.routes:
        assert isinstance(route, APIRoute), f"{route} is no route that tests know how to ask"
        taken = get_flat_dependant(route.dependant, skip_repeats=True)
        assert not taken.header_params, f"{route.path} takes headers, which tests do not send"
        assert not taken.cookie_params, f"{route.path} takes cookies, which tests do not send"
        for method in sorted(route.methods - {"HEAD"}):
            assert method in ("GET", "POST"), f"{method} {route.path}: tests know GET and POST only"
            found.append(
                Route(
                    method,
                    route.path,
                    tuple(sorted(field.alias for field in taken.path_params)),
                    tuple(field.alias for field in taken.query_params),
                    tuple(name for field in taken.body_params for name in _fields(field.field_info.annotation)),
                )
            )
    return found


def _fields(model: Any) -> list[str]:
    assert issubclass(model, BaseModel)
    return list(model.model_fields)
