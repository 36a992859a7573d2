"""The documentation of a flow's DAG and of its tasks in Airflow. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping

from mirror_lib.airflow.compatibility import Param
from mirror_lib.airflow.spark.pool import pool_of
from mirror_lib.config.model import ClientSettings, FlowConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.markdown_text import markdown_block, markdown_code, markdown_text
from mirror_lib.masked_urls import masked_addresses
from mirror_lib.printable import printable

_SAMPLE_TOPIC = "orders"
#: By task.
TASK_DOCUMENTATION: Mapping[str, str] = {
    "preflight": """\
Reads the configuration, checks both clusters, the ledger and Spark, and logs what this run selects.

It also writes the heartbeats that are due. If there is nothing to copy, this task runs the sync steps that are due, and
the other tasks are skipped; otherwise only those that have nothing to do. Clear a task to run it anyway.
""",
    "emit_heartbeats": """\
Writes a heartbeat to the source, which the copy then replicates, and the flow's own heartbeat to the target.

A failed write is logged and does not fail the run: heartbeats monitor the copy, they are not part of it. Usually
preflight has done it already, and this task is skipped.
""",
    "sync_topics": (
        "Creates missing target topics and adds missing partitions; a dry run only prints the plan. Skipped if none is "
        "missing."
    ),
    "sync_topic_configs": "Copies changed topic configs to the target, at the interval in the configuration file.",
    "sync_topic_acls": "Copies ACLs of the flow's topics to the target, at the interval in the configuration file.",
    "translate_offsets": (
        "Translates the committed offsets of consumer groups and writes checkpoints, at the configured interval. "
        "Skipped if `sync_group_offsets` is due in the same run: it writes the checkpoints, too."
    ),
    "sync_group_offsets": (
        "Commits translated offsets on the target for groups without members there, if the configuration enables it."
    ),
    "heartbeats": (
        "Shows the upstream clusters' heartbeats on the target; fails if the heartbeat of this run is missing."
    ),
    "announce_new_records": """\
Emits asset events for the target topics with new records in this run, for DAGs that are scheduled on them.

Emits them also if other partitions failed. If it is cleared, it emits the same events again.
""",
    "observe": "Stores the lag of all partitions of the flow. A failure of this task does not fail the run.",
    "report": """\
Prints what this run copied and the results of the sync steps; fails the run if any of them is incomplete.

Skipped if another run of the flow copies.
""",
}


def documentation(flow: FlowConfig, config_path: str, form: Mapping[str, Param]) -> str:
    """Return the flow's diagram, its settings and how to trigger it by hand, as Markdown."""
    return (
        "\n\n".join([_picture(flow), _settings(flow, config_path), _trigger_section(flow, form), _failure_section()])
        + "\n"
    )


def _picture(flow: FlowConfig) -> str:
    source, target = flow.flow.source, flow.flow.target
    remote = flow_topology(flow).remote_topic(_SAMPLE_TOPIC)
    boxes = [
        (f"cluster {source}", f"cluster {target}"),
        (_bootstrap(flow.clients.source_admin), _bootstrap(flow.clients.target_admin)),
        (f"topic {_SAMPLE_TOPIC}", f"topic {remote}"),
    ]
    boxes = [(printable(left), printable(right)) for left, right in boxes]
    left = max(len(line[0]) for line in boxes)
    right = max(len(line[1]) for line in boxes)
    arrow = ["", "-------->", ""]
    rows = [f"| {a:<{left}} |{gap:^12}| {b:<{right}} |" for (a, b), gap in zip(boxes, arrow, strict=True)]
    edge = f"+{'-' * (left + 2)}+{' ' * 12}+{'-' * (right + 2)}+"
    names = f"**{markdown_text(source)}** to **{markdown_text(target)}**"
    return f"Copies new records of {names}, in bounded batches.\n\n{markdown_block([edge, *rows, edge])}"


def _settings(flow: FlowConfig, config_path: str) -> str:
    budget, deadline = flow.copy_settings.run_max_seconds, flow.airflow_deadline_seconds
    rows = {
        "topics": _list(flow.topics),
        "topics.exclude": _list(flow.topics_exclude),
        "groups": _list(flow.groups),
        "replication.policy.class": markdown_code(flow.replication_policy_class),
        "isolation.level": markdown_code(flow.isolation_level.value),
        "mirror.offsets": markdown_code(flow.copy_settings.offsets.value),
        "tasks.max": markdown_code(str(flow.tasks_max)),
        "mirror.schedule": _schedule(flow.schedule),
        "mirror.verify.schedule": _schedule(flow.verify_schedule),
        "mirror.run.max.seconds": f"{budget:g}" if budget else "one round per run",
        "mirror.airflow.deadline.seconds": f"{deadline:g}" if deadline else "none",
        "mirror.airflow.pool": markdown_code(pool_of(flow)),
        "mirror.airflow.deferrable": markdown_code(str(flow.airflow_deferrable).lower()),
        "mirror.spark.connection": markdown_code(flow.spark_connection),
        "file": markdown_code(config_path),
    }
    lines = ["| setting | value |", "|---|---|", *(f"| `{key}` | {value} |" for key, value in rows.items())]
    return "### Settings\n\n" + "\n".join(lines)


def _trigger_section(flow: FlowConfig, form: Mapping[str, Param]) -> str:
    pattern = flow.topics[0] if flow.topics else _SAMPLE_TOPIC
    fields = [f"| `{name}` | {param.schema['title']} | {_type(param)} |" for name, param in form.items()]
    return (
        "### Triggering manually\n\n"
        "All fields have defaults. In the `conf` of the REST API and of `airflow dags trigger --conf`, the fields are "
        "named:\n\n"
        + "\n".join(["| name | field | value |", "|---|---|---|", *fields])
        + "\n\nFor example:\n\n"
        + markdown_block([json.dumps({"topics": [pattern], "dry_run": True}, ensure_ascii=False)], "json")
    )


def _failure_section() -> str:
    return (
        "### Failures\n\n"
        "Partitions fail independently: the others are copied. Transient errors (a broker that restarts) are retried; "
        "a retry copies only the rest. An invalid configuration, and states that need a manual decision (lost records, "
        "a changed target), fail without retries. The log of the `report` task says what to do."
    )


def _type(param: Param) -> str:
    schema = param.schema
    choices = schema.get("enum") or schema.get("items", {}).get("enum")
    types = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    text = " or ".join(each for each in types if each != "null")
    return f"{text} of {', '.join(markdown_code(each) for each in choices)}" if choices else text


def _bootstrap(settings: ClientSettings) -> str:
    # A broken file may lack it.
    servers = masked_addresses(settings.properties.get("bootstrap.servers", "unknown")).split(",")
    return servers[0].strip() + (f" and {len(servers) - 1} more" if len(servers) > 1 else "")


def _schedule(cron: str | None) -> str:
    return markdown_code(cron) if cron else "none (manual runs only)"


def _list(values: tuple[str, ...]) -> str:
    return ", ".join(markdown_code(value) for value in values) or "none"
