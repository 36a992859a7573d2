"""Chapter of transforms: records sent to other topics, topics merged in transactions, and runs of both that died.

Functions take the place of Spark; the flow's transforms are written so that the rules about them are the same.
"""

from __future__ import annotations

from dataclasses import replace

from tests.stored_formats.scene import Scene
from tests.support.flows import Flow
from tests.support.kafka import consume, create_topic, produce, records
from tests.support.transforming import Killed, TransformHere, marked

SOURCE, TARGET = "shop", "lake"
FLOW = f"{SOURCE}->{TARGET}"
#: Copied in transactions, since what the transform makes is different each time.
SOURCE_OF_MERGE, TARGET_OF_MERGE = "web", "depot"
MERGE = f"{SOURCE_OF_MERGE}->{TARGET_OF_MERGE}"
_ROUTED = {
    "emit.heartbeats.enabled": "false",
    "heartbeats.replication.enabled": "false",
    "mirror.batch.max.bytes": "4096",
    "shop->lake.mirror.transforms": "sort",
    "shop->lake.mirror.transform.sort.topics": "clicks",
    "shop->lake.mirror.transform.sort.topic": "if(cast(value as string) like '%1-%', 'clicks-odd', null)",
}
_MERGED = {
    "emit.heartbeats.enabled": "false",
    "heartbeats.replication.enabled": "false",
    "depot.exactly.once.source.support": "enabled",
    "mirror.topics.rename": "page-views:visits, app-views:visits",
    "mirror.topics.merge.enabled": "true",
    "mirror.batch.max.bytes": "4096",
    "web->depot.mirror.transforms": "stamp",
    "web->depot.mirror.transform.stamp.headers": "array(struct('at' as key, cast(rand() as binary) as value))",
}


def play(scene: Scene) -> None:
    """Everything of this chapter."""
    _route(scene)
    _merge(scene)


def _number(value: bytes | None) -> int:
    return int((value or b"value-0-").split(b"-")[1])


def _to_odd(value: bytes | None) -> tuple[str | None, int | None]:
    return ("clicks-odd" if _number(value) % 2 else None), None


def _route(scene: Scene) -> None:
    flow = scene.flow(SOURCE, TARGET, "clicks", _ROUTED)
    create_topic(scene.pair.source, "clicks", partitions=2)
    produce(scene.pair.source, "clicks", [*records(200), *records(100, partition=1)])
    runner = TransformHere(route=_to_odd, rows_at_once=50)
    _run_until_killed(flow, replace(runner, dies_after=150))
    # What the worker that died had written is found and not written again.
    report = flow.run(runner=runner)
    copied = report.records + sum(result.recovered for result in report.results)
    if report.errors or copied != 300:
        raise RuntimeError(f"{copied} records: {report.errors}")
    scene.outputs["run-report-routed.json"] = report.to_dict()
    scene.facts.add(
        "runs", id=report.run_id, flow=FLOW, state="succeeded", records=report.records, trigger="cli", reason=None
    )
    for topic in ("shop.clicks", "clicks-odd"):
        for partition in range(2):
            count = len(consume(scene.pair.target, topic, partitions=[partition]))
            scene.facts.add("routed", flow=FLOW, target_topic=topic, target_partition=partition, records=count)
    for partition in range(2):
        scene.expect_position(flow, "clicks", partition, target="shop.clicks")
    # A worker that dies again, and whose positions nobody takes over.
    produce(scene.pair.source, "clicks", records(40, start=200))
    _run_until_killed(flow, replace(runner, rows_at_once=10, dies_after=20))


def _merge(scene: Scene) -> None:
    flow = scene.flow(SOURCE_OF_MERGE, TARGET_OF_MERGE, "page-views, app-views", _MERGED)
    for topic in ("page-views", "app-views"):
        create_topic(scene.pair.source, topic)
        produce(scene.pair.source, topic, records(60))
    runner = TransformHere(marked, exact=False, rows_at_once=50)
    _run_until_killed(flow, replace(runner, dies_after=50))
    report = flow.run(runner=runner)
    if report.errors:
        raise RuntimeError(f"{MERGE}: {report.errors}")
    for topic in ("page-views", "app-views"):
        scene.expect_position(flow, topic, target="visits")
    produce(scene.pair.source, "app-views", records(10, start=60))
    _run_until_killed(flow, replace(runner, rows_at_once=3, dies_after=5))


def _run_until_killed(flow: Flow, runner: TransformHere) -> None:
    try:
        flow.run(runner=runner)
    except Killed:
        return
    raise RuntimeError(f"no worker of {flow.config.flow} died")
