"""The DAGs of configuration files as plain data, for the DAG file in the other environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from mirror_lib.airflow import kinds, mirror_dags
from mirror_lib.airflow.files import load_readable, runs_here
from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.features.external.channel import PROTOCOL
from mirror_lib.features.external.stand_ins import DAG, AssetAlias, BaseOperator

#: Kinds of DAGs that have external tasks, as far as their features are there. The others ask questions on Airflow's
#: page of required actions.
_KINDS: Final = ("flows", "verifications", "audits", "backfills", "heartbeats")
_DURATIONS = ("retry_delay", "max_retry_delay", "execution_timeout")
_DEFAULT_RUNS = 16


def external_dags(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the DAGs of the files that have external tasks."""
    return mirror_dags(paths, only=[kind for kind in _KINDS if kind in kinds()])


def describe(paths: Sequence[Path]) -> dict[str, Any]:
    """Return the DAGs of all flows with `mirror.airflow.execution = external`.

    Raises:
        ConfigurationError: no file can be used, or none has such a flow.
    """
    sources = _sources(paths)
    dags = external_dags(paths)
    if not dags:
        raise ConfigurationError(
            f"{', '.join(map(str, paths))}: no enabled flow has mirror.airflow.execution = external.",
            action="Set it for all flows, or A->B.mirror.airflow.execution for one, in the configuration file.",
        )
    return {
        "protocol": PROTOCOL,
        "sources": sources,
        "dags": [described(dag) for dag in dags.values()],
    }


def notes(paths: Iterable[Path]) -> list[str]:
    """Return the settings of external flows that have no effect, one sentence each."""
    found = []
    for path in paths:
        try:
            config = load_readable(path).config
        except MirrorError:
            continue
        found += [
            f"{path}: {key} of {flow.flow} has no effect with mirror.airflow.execution = external."
            for flow in config.enabled_flows
            if runs_here(flow)
            for key, is_set in (
                ("mirror.airflow.deadline.seconds", flow.airflow_deadline_seconds),
                ("mirror.airflow.deferrable", flow.airflow_deferrable),
            )
            if is_set
        ]
    return found


def _sources(paths: Iterable[Path]) -> list[str]:
    """Return the files that decide about the DAGs."""
    found: dict[str, None] = {}
    for path in paths:
        found[str(path)] = None
        try:
            stamps = load_readable(path).sources
        except MirrorError as error:
            stamps = getattr(error, "sources", ())
        found |= dict.fromkeys(str(stamp.path) for stamp in stamps)
    return list(found)


def described(dag: DAG) -> dict[str, Any]:
    """Return a DAG as plain data."""
    given: Mapping[str, Any] = dag.arguments
    return {
        "dag_id": dag.dag_id,
        "name": given.get("dag_display_name") or dag.dag_id,
        "description": dag.description,
        "doc_md": dag.doc_md,
        "schedule": _schedule(given["schedule"]),
        "start_date": given["start_date"].isoformat(),
        "max_active_runs": given.get("max_active_runs", _DEFAULT_RUNS),
        "max_consecutive_failed_dag_runs": dag.max_consecutive_failed_dag_runs,
        "dagrun_timeout": _seconds(given.get("dagrun_timeout")),
        "tags": sorted(dag.tags),
        "params": {
            name: {"default": field.value, "description": field.description, "schema": field.schema}
            for name, field in dag.params.items()
        },
        "tasks": [_task(task) for task in dag.tasks.values()],
    }


def _task(task: BaseOperator) -> dict[str, Any]:
    given = task.arguments
    outlets = given.get("outlets", ())
    found: dict[str, Any] = {
        "task_id": task.task_id,
        "owner": given.get("owner", "mirror"),
        "doc_md": task.doc_md,
        "upstream": sorted(task.upstream),
        "outlets": [each.name for each in outlets if isinstance(each, AssetAlias)],
        **{name: _seconds(given.get(name)) for name in _DURATIONS},
    }
    if "trigger_rule" in given:
        found["trigger_rule"] = str(given["trigger_rule"])
    if "retry_exponential_backoff" in given:
        # A factor since Airflow 3.2; yes or no before, where yes means 2.
        found["retry_exponential_backoff"] = bool(given["retry_exponential_backoff"])
    return found | {name: given[name] for name in ("pool", "retries") if name in given}


def _schedule(schedule: Any) -> Any:
    return {"seconds": schedule.total_seconds()} if isinstance(schedule, timedelta) else schedule


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()
