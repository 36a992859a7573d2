"""Heartbeat tasks: of a flow's DAG, before and after its copy, and of the DAG of heartbeats alone."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.airflow.flow.replicate_operator import REPORT_KEY
from mirror_lib.airflow.flow.report import STEP_KEY
from mirror_lib.airflow.flow.sync_tasks import is_repeated
from mirror_lib.airflow.forms.fields import chosen_topics
from mirror_lib.config.loader import load, load_flow
from mirror_lib.config.topology import flow_topology
from mirror_lib.ledger.location import open_ledger
from mirror_lib.sync.heartbeats.due import due_pairs, note_emitted
from mirror_lib.sync.heartbeats.flow import check_flow_heartbeats
from mirror_lib.sync.heartbeats.flow import emit_heartbeats as write_heartbeats
from mirror_lib.sync.heartbeats.rules import HeartbeatState, describe, emitting_flows
from mirror_lib.sync.observed import save_heartbeats, save_step

if TYPE_CHECKING:
    from mirror_lib.config.model import FlowConfig, MirrorConfig
    from mirror_lib.ledger.store import Ledger
    from mirror_lib.sync.heartbeats.flow import HeartbeatCheck
    from mirror_lib.topology.flow_topology import FlowTopology

_log = logging.getLogger(__name__)

#: XCom key of what preflight has emitted.
EMITTED_KEY = "emitted"
_NONE_COPIED = "this run copies no heartbeats"


def emit_heartbeats(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Write a flow's heartbeats before its copy. A failed write is logged only."""
    if params.get("dry_run"):
        raise AirflowSkipException("a dry run writes no heartbeats.")
    config, settings = load_flow(Path(config_path), flow)
    return emit(
        config, emitting_flows(config, settings.flow), at_once=is_repeated(emit_heartbeats.__name__, context["ti"])
    )


def emit_all_heartbeats(config_path: str) -> dict[str, Any]:
    """Write a heartbeat for every pair of clusters of the file to the target of the pair."""
    config = load(config_path)
    done = emit(config, emitting_flows(config))
    if done["problems"]:
        raise AirflowFailException("; ".join(done["problems"]))
    return done


def heartbeats(flow: str, config_path: str, params: Mapping[str, Any], **context: Any) -> dict[str, Any]:
    """Check heartbeats after the copy; fail if the one of this run is missing on the target."""
    config, settings = load_flow(Path(config_path), flow)
    topology = flow_topology(settings, chosen_topics(params))
    instance = context["ti"]
    copied = instance.xcom_pull(task_ids="replicate", key=REPORT_KEY)
    if copied is not None and (why := copied.get("skipped")) is not None:
        raise _skip_exception(instance, why)
    emitted = instance.xcom_pull(task_ids=emit_heartbeats.__name__)
    if emitted is None:
        emitted = instance.xcom_pull(task_ids="preflight", key=EMITTED_KEY)
    if params.get("dry_run"):
        raise _skip_exception(instance, _NONE_COPIED)
    with open_ledger(config) as ledger:
        done, checked = check_heartbeats(settings, topology, ledger, emitted)
    if checked is None or done["skipped"] is not None:
        raise _skip_exception(instance, done["skipped"])
    instance.xcom_push(key=STEP_KEY, value=done)
    if done["failed"]:
        raise AirflowFailException(f"flow {flow}: " + "; ".join(done["problems"]))
    return checked.to_dict()


def check_heartbeats(
    settings: FlowConfig, topology: FlowTopology, ledger: Ledger, emitted: Mapping[str, Any] | None
) -> tuple[dict[str, Any], HeartbeatCheck | None]:
    """Compare the heartbeats on the target with those that were emitted, log and store the result.

    Args:
        emitted: as `emit` returns it; None if none was.

    Returns:
        The outcome as plain data, with `skipped` if no heartbeats are written or the flow copies none; what was seen.

    Raises:
        MirrorError: the target or the ledger cannot be used.
    """
    if not topology.replicates(topology.policy.heartbeats_topic()):
        return _skipped_outcome(_NONE_COPIED), None
    written_ms = _written_ms(settings, emitted)
    checked = check_flow_heartbeats(settings, ledger=ledger, written_ms=written_ms)
    nobody_writes = written_ms is None and checked.source.hops is None
    save_heartbeats(ledger, settings.flow, () if nobody_writes else checked.upstreams)
    done = _outcome(checked, written_ms)
    if not nobody_writes:
        save_step(ledger, str(settings.flow), heartbeats.__name__, done)
    _log_check(checked)
    if nobody_writes:
        done = _skipped_outcome(f"no heartbeats are written to cluster {settings.flow.source}")
    return done, checked


def _skipped_outcome(why: str) -> dict[str, Any]:
    return {"skipped": why, "failed": 0, "problems": []}


def _outcome(checked: HeartbeatCheck, written_ms: int | None) -> dict[str, Any]:
    """Return the outcome of the check for the report."""
    # The copy of an existing but empty topic has begun at its end.
    failed = written_ms is not None and checked.source_is_cut_off and not _is_empty(checked)
    problems = [f"{each.cluster}: {each.problem}" for each in checked.upstreams if each.problem]
    reasons = Counter(each.state.value for each in checked.upstreams)
    return {"skipped": None, "failed": int(failed), "problems": problems, "reasons": dict(reasons)}


def _skip_exception(instance: Any, why: str) -> AirflowSkipException:
    instance.xcom_push(key=STEP_KEY, value=_skipped_outcome(why))
    return AirflowSkipException(f"{why}.")


def emit(config: MirrorConfig, pairs: tuple[FlowConfig, ...], *, at_once: bool = False) -> dict[str, Any]:
    """Write a heartbeat of every pair whose interval has passed, and log each result.

    Args:
        at_once: ignore the interval.

    Raises:
        AirflowSkipException: there are no pairs.
    """
    if not pairs:
        raise AirflowSkipException("emit.heartbeats.enabled is false.")
    now = datetime.now(UTC)
    with open_ledger(config) as ledger:
        due = pairs if at_once else due_pairs(pairs, ledger, now)
        emitted = write_heartbeats(due, ledger) if due else ()
        note_emitted(emitted, ledger, now)
    for pair in pairs:
        if pair not in due:
            _log.info("Heartbeat of %s is not due (emit.heartbeats.interval.seconds).", pair.flow)
    problems = [f"{each.pair}: {each.error}" for each in emitted if each.error is not None]
    for each in emitted:
        if each.error is None:
            _log.info("Heartbeat of %s written to %s on cluster %s.", each.pair, each.topic, each.cluster)
    for problem in problems:
        _log.warning("Heartbeat of %s", problem)
    return {"emitted": [each.to_dict() for each in emitted], "problems": problems}


def _written_ms(settings: FlowConfig, emitted: Mapping[str, Any] | None) -> int | None:
    """Return when this run wrote into its source; None if it did not."""
    watching = str(settings.flow.opposite)
    for each in (emitted or {}).get("emitted", ()):
        if each["pair"] == watching and each["error"] is None:
            return int(each["timestamp_ms"])
    return None


def _is_empty(checked: HeartbeatCheck) -> bool:
    return checked.source.hops is not None and checked.source.newest_ms is None


def _log_check(checked: HeartbeatCheck) -> None:
    for upstream in checked.upstreams:
        level = logging.INFO if upstream.state is HeartbeatState.FRESH else logging.WARNING
        _log.log(level, "Flow %s, upstream cluster %s", checked.flow, describe(upstream))
    for remark in checked.remarks:
        _log.warning("Cluster %s: %s", checked.flow.target, remark)
