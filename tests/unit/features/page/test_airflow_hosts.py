"""Under which names Airflow answers: a site may point its name at this machine (DNS rebinding)."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from fastapi import FastAPI

from mirror_lib.features.page.plugin import HOSTS_VARIABLE, ReplicationPlugin


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> FastAPI:
    """An application with the plugin's middleware, added as Airflow adds it (`init_plugins`)."""
    monkeypatch.setenv(HOSTS_VARIABLE, "127.0.0.1 localhost")
    app = FastAPI()
    app.get("/api/v2/version")(lambda: "3")
    for each in ReplicationPlugin().fastapi_root_middlewares:
        app.add_middleware(each["middleware"], *each["args"], **each["kwargs"])
    return app


async def status_of(app: FastAPI, host: str) -> int:
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8080") as client:
        return (await client.get("/api/v2/version", headers={"Host": host})).status_code


def test_only_named_hosts_are_answered(app: FastAPI) -> None:
    for host, status in {
        "127.0.0.1:8080": 200,
        "localhost:8080": 200,
        "evil.example:8080": 400,
        "127.0.0.1.evil.example": 400,
        "localhost.evil.example:8080": 400,
        "": 400,
    }.items():
        assert asyncio.run(status_of(app, host)) == status, host


def test_without_the_setting_airflow_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(HOSTS_VARIABLE, raising=False)

    assert ReplicationPlugin().fastapi_root_middlewares == []
