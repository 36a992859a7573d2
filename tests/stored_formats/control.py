"""Chapter of sync steps: ACLs, groups, heartbeats, tasks of the DAG; then observations and verifications."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from confluent_kafka.admin import AclBinding, AclOperation, AclPermissionType, ResourcePatternType, ResourceType

from mirror_lib.airflow.spark.outcome import xcom_value
from mirror_lib.copy.flow_plan import plan_flow
from mirror_lib.copy.job.report import JobReport, plan_report
from mirror_lib.copy.run_options import RunOptions, RunReport
from mirror_lib.features.verify.html import to_html
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.ledger.rows import AclKind, AclState, ReplicatedAclRow
from mirror_lib.sync.intervals import SyncStep
from mirror_lib.topology.acls import AclPattern, AclPermission, AclResource
from tests.stored_formats import copies
from tests.stored_formats.copies import FLOW
from tests.stored_formats.scene import Scene
from tests.support.cutovers import commit
from tests.support.flows import Flow
from tests.support.kafka import Record, admin, consume, produce, records
from tests.support.verifying import tamper, verify

#: As an untouched trigger form gives them.
_NO_CHOICE = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False}
_DAG_RUN = SimpleNamespace(dag_id="mirror__east__west", run_id="manual__2026-11-25T09:00:00+00:00")
_TRIGGER = f"airflow {_DAG_RUN.dag_id} {_DAG_RUN.run_id}"


def play(scene: Scene, flow: Flow) -> None:
    """Everything of this chapter."""
    _copy_acls(scene, flow)
    _commit_groups(scene, flow)
    copies.change_topic_config(scene)
    _run_dag_tasks(scene, flow)
    _observe(scene, flow)
    _verify(scene, flow)
    _leave_acl_half_done(scene, flow)


def _copy_acls(scene: Scene, flow: Flow) -> None:
    """A grant to read is copied, a grant to write waits for the cutover."""
    client = admin(scene.pair.source)
    granted = (("User:reader", AclOperation.READ), ("User:writer", AclOperation.WRITE))
    acls = [
        AclBinding(
            ResourceType.TOPIC, "orders", ResourcePatternType.LITERAL, who, "*", operation, AclPermissionType.ALLOW
        )
        for who, operation in granted
    ]
    for future in client.create_acls(acls).values():
        future.result(30)
    scene.call_for_flow(flow, "acls", "apply", keep="acls-apply.json")
    scene.facts.add("acls", flow=FLOW, principal="User:reader", operation="READ", kind="copied", state="created")
    scene.facts.add("acls", flow=FLOW, principal="User:writer", operation="WRITE", kind="staged", state="waiting")


def _leave_acl_half_done(scene: Scene, flow: Flow) -> None:
    """Only a process that dies between two requests leaves this state."""
    flow.ledger.save_acls(
        [
            ReplicatedAclRow(
                flow=FLOW,
                resource=AclResource.TOPIC.value,
                name="east.payments",
                pattern=AclPattern.LITERAL.value,
                principal="User:auditor",
                host="*",
                operation="READ",
                permission=AclPermission.ALLOW.value,
                kind=AclKind.COPIED.value,
                state=AclState.CREATING.value,
                withdrawn=True,
                changed_at=datetime.now(UTC),
                changed_by=_TRIGGER,
            )
        ]
    )
    scene.facts.add("acls", flow=FLOW, principal="User:auditor", operation="READ", kind="copied", state="creating")


def _commit_groups(scene: Scene, flow: Flow) -> None:
    """A group that reads two topics, and one on a topic whose map has holes."""
    committed = (("billing", "orders", {0: 30, 1: 10, 2: 20}), ("fraud", "payments", {0: 20}))
    for group, topic, offsets in committed:
        commit(scene.pair.source, group, topic, offsets)
        for partition, offset in offsets.items():
            scene.facts.add("groups", flow=FLOW, group=group, topic=topic, partition=partition, upstream=offset)
    # Nothing of this topic is copied: there is no target offset to translate to.
    commit(scene.pair.source, "early", "archive", {0: 18})
    scene.call_for_flow(flow, "groups", "apply", keep="groups-apply.json")
    scene.call_for_flow(flow, "groups", "status", exit_code=1, keep="groups-status.json")


@dataclass
class _TaskInstance:
    """What a task uses of Airflow's task instance: the XComs of its DAG run."""

    task_id: str
    xcoms: dict[tuple[str, str], Any]
    try_number: int = 1

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[self.task_id, key] = value

    def xcom_pull(self, task_ids: str, key: str = "return_value") -> Any:
        return self.xcoms.get((task_ids, key))


@dataclass
class DagRun:
    """One run of the flow's DAG, task by task, in this process."""

    scene: Scene
    flow: Flow
    xcoms: dict[tuple[str, str], Any] = field(default_factory=dict)

    def do(self, task: Callable[..., Any], *, params: bool = True) -> Any:
        """Carry a task out and keep what it returns; a skipped one returns nothing."""
        from airflow.sdk.exceptions import AirflowSkipException

        name = task.__name__
        choices = {"params": _NO_CHOICE} if params else {}
        instance = _TaskInstance(name, self.xcoms)
        try:
            done = task(str(self.flow.config.flow), str(self.flow.path), **choices, ti=instance, dag_run=_DAG_RUN)
        except AirflowSkipException:
            return None
        self.xcoms[name, "return_value"] = done
        return done


def _run_dag_tasks(scene: Scene, flow: Flow) -> None:
    """The tasks of the flow's DAG; `replicate` itself is a Spark job, whose report a run in this process gives."""
    os.environ.setdefault("AIRFLOW_HOME", str(scene.folder / "airflow"))
    os.environ.setdefault("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
    from mirror_lib.airflow.flow import assets, report_task, sync_tasks
    from mirror_lib.airflow.flow import observe_task as observe_tasks
    from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
    from mirror_lib.airflow.heartbeats import tasks as heartbeat_tasks

    logging.getLogger("mirror_lib.airflow").setLevel(logging.ERROR)
    run = DagRun(scene, flow)
    began = datetime.now(UTC)
    for task in (heartbeat_tasks.emit_heartbeats, sync_tasks.sync_topic_configs, sync_tasks.sync_topic_acls):
        run.do(task)
    produce(scene.pair.source, "orders", records(7, start=950))
    report = _copy(scene, flow)
    run.xcoms["replicate", REPORT_KEY] = xcom_value(JobReport.from_dict(report.to_dict()))
    for task in (sync_tasks.translate_offsets, sync_tasks.sync_group_offsets, heartbeat_tasks.heartbeats):
        run.do(task)
    run.do(observe_tasks.observe, params=False)
    run.do(report_task.report, params=False)
    rows = flow.ledger.partition_runs(report.run_id)
    scene.outputs["asset-events.json"] = [each.extra(FLOW) for each in assets.new_records(rows)]
    scene.outputs["xcom.json"] = [
        {"task": task, "key": key, "value": value} for (task, key), value in sorted(run.xcoms.items())
    ]
    for step, name in _STEPS.items():
        scene.facts.add("sync_times", flow=FLOW, step=step, not_before=began.isoformat())
        scene.facts.add("step_outcomes", flow=FLOW, step=name, failed=0)
    scene.facts.add("step_outcomes", flow=FLOW, step="heartbeats", failed=0)
    scene.facts.add("heartbeats", flow=FLOW, pair="west->east", verdict="fresh")


#: Steps with an interval by the tasks that do them.
_STEPS = {
    SyncStep.TOPIC_CONFIGS.value: "sync_topic_configs",
    SyncStep.TOPIC_ACLS.value: "sync_topic_acls",
    SyncStep.CHECKPOINTS.value: "translate_offsets",
    SyncStep.GROUP_OFFSETS.value: "sync_group_offsets",
}


def _copy(scene: Scene, flow: Flow) -> RunReport:
    """What `replicate` does, of the topics that can be copied."""
    scene.facts.add("planned", flow=FLOW, topic="orders", offsets=7)
    scene.outputs["job-report-plan.json"] = plan_report(plan_flow(flow.config, RunOptions(topics=("orders",))))
    report = flow.run(topics=("orders", "heartbeats"), trigger=_TRIGGER)
    copied = 7 + 1
    if report.errors or report.records != copied:
        raise RuntimeError(f"{report.records} records: {report.errors}")
    scene.expect_run(flow, report.run_id, "succeeded", copied, _TRIGGER)
    for partition in range(3):
        scene.expect_position(flow, "orders", partition, target="east.orders")
    return report


def _observe(scene: Scene, flow: Flow) -> None:
    """A lagging partition, and one that stalls for lost records."""
    produce(scene.pair.source, "payments", [Record(value=b"late-%d" % each) for each in range(4)])
    scene.call_for_flow(flow, "observe", exit_code=3, keep="observe.json")
    scene.call_for_flow(flow, "status", keep="status.json")
    scene.call_for_flow(flow, "position", "show", keep="position-show.json")
    scene.outputs["metrics.prom"] = scene.call(flow, "metrics")["metrics"]
    observed = (
        ("orders", 0, 0, None),
        ("payments", 0, 4, None),
        # The loss is at 10 to 14, of 20 offsets.
        ("shipments", 0, 10, "retention-gap"),
    )
    for topic, partition, lag, reason in observed:
        scene.facts.add(
            "observed_partitions", flow=FLOW, topic=topic, partition=partition, records_behind=lag, reason=reason
        )
    # Heartbeats that brokers on this machine have not copied yet are no matter of this.
    scene.facts.add("observed_flows", flow=FLOW, stalled_topics=["shipments"], open_gaps=1)


def _verify(scene: Scene, flow: Flow) -> None:
    """Equal, different, and not to be compared; also of a sample and of what is new."""
    tamper(scene.pair, "east.stock", lambda copy: [*copy[:14], Record(value=b"forged", key=copy[14].key), *copy[15:]])
    report = verify(flow, topics=("orders", "stock", "shipments", "legacy", "coupons"))
    scene.outputs["verify-report.json"] = report.to_dict()
    scene.outputs["verify-report.html"] = to_html(report)
    for partition in range(3):
        count = len(consume(scene.pair.source, "orders", partitions=[partition]))
        _verdict(scene, report.verification_id, "orders", partition, "full", "equal", records=count, difference_count=0)
    _verdict(scene, report.verification_id, "stock", 0, "full", "different", difference_count=1)
    sample = verify(flow, topics=("orders",), mode=VerifyMode.SAMPLE, seed=7)
    scene.outputs["verify-report-sample.json"] = sample.to_dict()
    _verdict(scene, sample.verification_id, "orders", 0, "sample", "equal", difference_count=0)
    recent = verify(flow, topics=("payments",), mode=VerifyMode.RECENT)
    _verdict(scene, recent.verification_id, "payments", 0, "recent", "equal", difference_count=0)


def _verdict(
    scene: Scene, verification_id: str, topic: str, partition: int, mode: str, verdict: str, **more: object
) -> None:
    scene.facts.add(
        "verifications",
        id=verification_id,
        flow=FLOW,
        topic=topic,
        partition=partition,
        mode=mode,
        verdict=verdict,
        **more,
    )
