"""`mirror.schedule = on-new-records` in Airflow's own terms."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import pytest
from airflow.sdk import AssetOrTimeSchedule

from mirror_lib.airflow.flow import schedule
from mirror_lib.airflow.flow.dag import build_flow_dag
from mirror_lib.config.model import FlowConfig
from mirror_lib.features.watch.airflow import dag_schedule
from mirror_lib.features.watch.airflow import trigger as triggers
from mirror_lib.features.watch.airflow.trigger import NewRecordsTrigger
from mirror_lib.features.watch.poller import Start
from mirror_lib.installed_features import Features

MakeFlow = Callable[..., FlowConfig]


def test_a_flow_is_started_by_its_asset_or_after_the_longest_time(make_flow: MakeFlow) -> None:
    dag = build_flow_dag(make_flow(schedule="on-new-records", schedule_longest="7m"), "/etc/mirror.properties")

    assert isinstance(dag.schedule, AssetOrTimeSchedule)
    assert dag.schedule.timetable.delta == timedelta(minutes=7)
    (asset,) = dag.schedule.asset_condition.objects
    assert asset.uri == "mirror-source://A/B"
    (watcher,) = asset.watchers
    assert watcher.name == "new records of A->B"
    assert watcher.trigger.serialize() == (
        "mirror_lib.features.watch.airflow.trigger.NewRecordsTrigger",
        {"flow": "A->B", "config_path": "/etc/mirror.properties"},
    )


def test_an_airflow_without_watchers_runs_at_the_longest_interval_and_says_so(
    make_flow: MakeFlow, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(dag_schedule, "has_watchers", lambda: False)

    assert build_flow_dag(make_flow(schedule="on-new-records"), "f").schedule == timedelta(minutes=10)
    assert "this Airflow has no asset watchers" in caplog.text
    monkeypatch.setattr(schedule, "installed_features", Features)
    assert build_flow_dag(make_flow(schedule="on-new-records"), "f").schedule == timedelta(minutes=10)
    assert "the feature watch is not installed" in caplog.text


async def test_triggers_of_a_file_share_one_poller_and_have_events_of_their_own() -> None:
    one, other = (NewRecordsTrigger(flow=flow, config_path="f") for flow in ("A->B", "C->B"))
    assert one.shared_stream_key() == other.shared_stream_key()
    assert one.shared_stream_key() != NewRecordsTrigger(flow="A->B", config_path="g").shared_stream_key()

    async def polls() -> AsyncIterator[dict[str, Start]]:
        first, second = Start(1, {"records": 5}), Start(2, {"records": 6})
        for starts in ({}, {"A->B": first}, {"A->B": first, "C->B": first}, {"A->B": second, "C->B": first}):
            yield starts

    async def events(trigger: NewRecordsTrigger) -> list[dict[str, int]]:
        return [event.payload async for event in trigger.filter_shared_stream(polls())]

    assert await events(one) == [{"records": 5}, {"records": 6}]
    assert await events(other) == [{"records": 5}]


async def test_given_a_paused_flow_then_the_poller_of_its_file_does_not_watch_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Airflow ends the trigger of a DAG that is paused, and those of other flows go on."""

    class Poller:
        def __init__(self, *_: Any, is_watched: Callable[[str], bool]) -> None:
            pollers.append(is_watched)

        def start(self) -> None: ...

        def stop(self) -> None: ...

    pollers: list[Callable[[str], bool]] = []
    monkeypatch.setattr(triggers, "_poller_class", lambda: Poller)
    running = {}
    for flow in ("A->B", "C->B"):
        trigger = NewRecordsTrigger(flow=flow, config_path="paused")
        running[flow] = asyncio.create_task(anext(trigger.run()))
    while len(pollers) < 2:
        await asyncio.sleep(0.01)
    is_watched = pollers[0]
    assert [is_watched(flow) for flow in ("A->B", "C->B", "D->B")] == [True, True, False]

    running["A->B"].cancel()
    await asyncio.wait({running["A->B"]})

    assert [is_watched(flow) for flow in ("A->B", "C->B")] == [False, True]
    running["C->B"].cancel()
    await asyncio.wait({running["C->B"]})
