"""Airflow reads its environment when it is imported, so the folder of its files is chosen before any test module is."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.airflow.stand_in_submit import StandInSubmit, stand_in_submit

_home = tempfile.mkdtemp(prefix="mirror-airflow-unit-")
atexit.register(shutil.rmtree, _home, ignore_errors=True)
os.environ.setdefault("AIRFLOW_HOME", _home)
os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "False")


@pytest.fixture
def make_flow():
    """Makes flows by hand: these tests are not about configuration files."""
    from mirror_lib.config.model import ClientSettings, FlowClients, FlowConfig
    from mirror_lib.topology.names import FlowId

    def client(cluster: str, role: str) -> ClientSettings:
        servers = f"{cluster.lower()}1.example:9092,{cluster.lower()}2.example:9092"
        properties = {"bootstrap.servers": servers, "sasl.jaas.config": "very-secret"}
        return ClientSettings(cluster=cluster, role=role, properties=properties)

    def make(source: str = "A", target: str = "B", **settings: object) -> FlowConfig:
        clients = FlowClients(
            data_consumer=client(source, "consumer"),
            source_admin=client(source, "admin"),
            target_admin=client(target, "admin"),
            data_producer=client(target, "producer"),
            offset_syncs_producer=client(source, "producer"),
            offset_syncs_consumer=client(source, "consumer"),
            target_internal=client(target, "internal"),
        )
        return FlowConfig(**{"flow": FlowId(source, target), "enabled": True, "clients": clients, **settings})

    return make


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInSubmit]:
    """A stand-in for `spark-submit`."""
    with stand_in_submit(tmp_path, monkeypatch) as program:
        yield program
