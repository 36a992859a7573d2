"""Airflow reads its environment when it is imported, so the folder of its files is chosen before any test module is."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.airflow.home import use_temporary_home
from tests.support.airflow.stand_in_submit import StandInSubmit, stand_in_submit

use_temporary_home()
os.environ.setdefault("AIRFLOW__CORE__UNIT_TEST_MODE", "False")


@pytest.fixture
def make_flow():
    """Makes flows by hand: these tests are not about configuration files."""
    from mirror_lib.config.model import ClientSettings, FlowClients, FlowConfig
    from mirror_lib.topology.names import FlowId

    def client(cluster: str) -> ClientSettings:
        servers = f"{cluster.lower()}1.example:9092,{cluster.lower()}2.example:9092"
        properties = {"bootstrap.servers": servers, "sasl.jaas.config": "very-secret"}
        return ClientSettings(cluster=cluster, role="test", properties=properties)

    def make(source: str = "A", target: str = "B", **settings: object) -> FlowConfig:
        clients = dict.fromkeys(FlowClients.model_fields, client(source))
        clients |= dict.fromkeys(("target_admin", "data_producer", "target_internal"), client(target))
        return FlowConfig(
            **{"flow": FlowId(source, target), "enabled": True, "clients": FlowClients(**clients), **settings}
        )

    return make


@pytest.fixture
def submit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInSubmit]:
    """A stand-in for `spark-submit`."""
    with stand_in_submit(tmp_path, monkeypatch) as program:
        yield program
