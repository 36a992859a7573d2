"""The tasks that audit: a flow of a file, or two clusters."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.loader import load_flow
from mirror_lib.errors import MirrorError
from mirror_lib.features.audit.airflow.form import AuditChoices
from mirror_lib.features.audit.airflow.outcome import judge, log_report, xcom_value
from mirror_lib.features.audit.chosen import sample_of, since_ms, topics_pattern, twice_the_interval
from mirror_lib.features.audit.clusters import clusters_of, connection_to
from mirror_lib.features.audit.manifest import METRICS, SCHEDULE, SINCE
from mirror_lib.features.audit.metrics_text import metrics_text
from mirror_lib.features.audit.pairs import TopicPair
from mirror_lib.features.audit.plan import AuditOptions
from mirror_lib.features.audit.run import audit
from mirror_lib.features.metrics_file import write_metrics_file

_log = logging.getLogger(__name__)
_MEBIBYTE = 1 << 20
#: XCom key of the result, also when something is wrong.
RESULT_KEY = "audit"


def audit_flow(flow: str, config_path: str, params: Mapping[str, Any], ti: Any) -> None:
    """Audit the copies of a flow's topics, as `mirror audit --config` does."""
    _, settings = load_flow(Path(config_path), flow)
    chosen = AuditChoices.from_params(params)
    since = chosen.since.strip() or SINCE.of(settings).strip() or twice_the_interval(SCHEDULE.of(settings))
    share = chosen.sample.strip()
    source, target, rules = clusters_of(settings, chosen.topics)
    options = AuditOptions(
        selected=rules.topology.replicates,
        rules=rules,
        since=since_ms(since),
        wait_seconds=chosen.wait,
        sample=sample_of(share, None) if share else None,
    )
    # Metrics of some topics, or of a sample, would say nothing about the flow.
    metrics = "" if chosen.topics or share else METRICS.of(settings).strip()
    limits = ["--topics", "|".join(chosen.topics)] if chosen.topics else []
    again = ["--config", config_path, "--flow", flow, *limits, "--since", since, *_sample_options(share, options)]
    _run(source, target, options, ti, f"flow {flow}", flow, again, metrics)


def audit_clusters(
    ti: Any,
    *,
    source: str,
    target: str,
    topics: str,
    pairs: Mapping[str, str],
    client_config: str | None,
    source_config: str | None,
    target_config: str | None,
    since: str | None,
    wait: float,
    sample: str | None,
    seed: int | None,
    ignored_headers: Sequence[str],
    ignore_timestamps: bool,
    same_offsets: bool,
    uncommitted: bool,
    merged: bool,
    strict: bool,
    memory_mib: int,
    processes: int,
    metrics: str | None,
) -> None:
    """Audit the copies of topics between two clusters, as `mirror audit --source --target` does."""
    pattern = topics_pattern(topics, "topics")
    options = AuditOptions(
        selected=pattern.fullmatch,
        named=tuple(TopicPair(*each) for each in pairs.items()),
        since=since_ms(since) if since else None,
        wait_seconds=float(wait),
        memory_bytes=memory_mib * _MEBIBYTE,
        read_committed=not uncommitted,
        merged=merged,
        processes=processes,
        ignored_headers=tuple(ignored_headers),
        ignore_times=ignore_timestamps,
        same_offsets=same_offsets,
        sample=sample_of(sample, seed) if sample else None,
    )
    files = {"--client.config": client_config, "--source.config": source_config, "--target.config": target_config}
    again = ["--source", source, "--target", target, "--topics", topics]
    again += [word for name, file in files.items() if file for word in (name, file)]
    again += [word for pair in pairs.items() for word in ("--pair", "=".join(pair))]
    again += ["--since", since] if since else []
    again += _sample_options(sample, options)
    again += [word for name in ignored_headers for word in ("--ignore-header", name)]
    flags = {
        "--ignore-timestamps": ignore_timestamps,
        "--same-offsets": same_offsets,
        "--uncommitted": uncommitted,
        "--merged": merged,
    }
    again += [name for name, is_set in flags.items() if is_set]
    _run(
        connection_to("source", source, _path(source_config or client_config)),
        connection_to("target", target, _path(target_config or client_config)),
        options,
        ti,
        f"copies of {source} on {target}",
        f"{source}->{target}",
        again,
        metrics or "",
        strict=strict,
    )


def _sample_options(share: str | None, options: AuditOptions) -> list[str]:
    return [] if options.sample is None else ["--sample", str(share), "--seed", str(options.sample.seed)]


def _run(
    source: Connection,
    target: Connection,
    options: AuditOptions,
    ti: Any,
    subject: str,
    flow: str,
    again: Sequence[str],
    metrics: str,
    *,
    strict: bool = False,
) -> None:
    report = audit(source, target, options)
    log_report(report)
    if options.sample is not None:
        _log.info("The ranges of the sample were chosen by --seed %s.", options.sample.seed)
    ti.xcom_push(key=RESULT_KEY, value=xcom_value(report, strict=strict))
    unwritten = _write(metrics, metrics_text(report, flow, strict=strict)) if metrics else None
    judge(report, subject, shlex.join(["mirror", "audit", *again]), strict=strict)
    if unwritten is not None:
        raise unwritten


def _write(path: str, text: bytes) -> MirrorError | None:
    """Write the metrics; return why that has failed, since the verdict comes first."""
    try:
        write_metrics_file(Path(path), text)
    except MirrorError as error:
        _log.error("%s", error)
        return error
    return None


def _path(text: str | None) -> Path | None:
    return Path(text) if text else None
