"""Example DAGs are copied by people, so they are tested as they stand."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mirror_lib.airflow.flow.assets import NewRecords, topic_asset

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "dags"


@pytest.fixture
def new_orders(monkeypatch):
    """The module, and the DAG that it makes."""
    from airflow.sdk.definitions._internal.contextmanager import DagContext

    monkeypatch.setattr(DagContext, "autoregistered_dags", set())
    monkeypatch.setattr(DagContext, "current_autoregister_module_name", "new_orders_example")
    spec = importlib.util.spec_from_file_location("new_orders_example", FOLDER / "new_orders.py")
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "new_orders_example", module)
    spec.loader.exec_module(module)
    ((dag, _),) = DagContext.autoregistered_dags
    return module, dag


def test_the_example_waits_for_the_topic_that_the_example_file_of_a_flow_makes(new_orders):
    _, dag = new_orders

    (asset,) = dag.timetable.asset_condition.objects
    assert asset.uri == "kafka://backup/primary.orders"


def test_the_example_reads_what_a_flow_announces(new_orders, capsys):
    module, dag = new_orders
    told = NewRecords("orders", "primary.orders", records=7, bytes=70, offsets={0: (10, 15), 3: (0, 2)})
    event = SimpleNamespace(extra=told.extra("primary->backup"))

    read = dag.get_task("read").python_callable({topic_asset("backup", "primary.orders"): [event, event]})

    assert read == 14
    assert "primary.orders-0: offsets 10 to 14" in capsys.readouterr().out
    assert module.ORDERS.name == "kafka://backup/primary.orders"
