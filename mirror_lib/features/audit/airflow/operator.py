"""The operator for DAGs of your own: audits copies of any replicator, without a properties file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import BaseOperator

from mirror_lib.airflow import Context, failing_at_once, retry_policy


class AuditOperator(BaseOperator):  # type: ignore[misc]  # Airflow is untyped here
    """Audits the copies of topics as `mirror audit` does; only reads, in the task's process.

    The task fails without retries if a copy is wrong. Its log has the report, its XCom `audit` the numbers. All
    arguments may have templates.
    """

    template_fields = (
        *("source", "target", "topics", "pairs", "client_config", "source_config", "target_config", "since", "wait"),
        *("sample", "seed", "ignored_headers", "ignore_timestamps", "same_offsets", "uncommitted"),
        *("merged", "strict", "memory_mib", "processes", "metrics"),
    )

    def __init__(
        self,
        *,
        source: str,
        target: str,
        topics: str = ".*",
        pairs: Mapping[str, str] | None = None,
        client_config: str | None = None,
        source_config: str | None = None,
        target_config: str | None = None,
        since: str | None = None,
        wait: float = 60.0,
        sample: str | None = None,
        seed: int | None = None,
        ignored_headers: Sequence[str] = (),
        ignore_timestamps: bool = False,
        same_offsets: bool = False,
        uncommitted: bool = False,
        merged: bool = False,
        strict: bool = False,
        memory_mib: int = 256,
        processes: int = 1,
        metrics: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Make the task.

        Args:
            source: brokers, as in `bootstrap.servers`.
            target: brokers.
            topics: names or Java regexes of source topics, separated by commas.
            pairs: topic of the source -> its copy.
            client_config: file with properties of a Java client, for both clusters; it must be on the worker.
            source_config: the same, for the source.
            target_config: the same, for the target.
            since: only newer records, such as `2h`; None for all.
            wait: seconds that records are awaited on the target.
            sample: compare only ranges of so much of each partition, such as `1%`; None for all.
            seed: of the sample; the same one chooses the same ranges. None chooses one, which the log names.
            ignored_headers: names of headers that are not compared.
            ignore_timestamps: the replicator does not keep timestamps.
            same_offsets: records must have the offsets that they have on the source.
            uncommitted: compare as readers of uncommitted records see both sides.
            merged: other sources write to the copies, too; their records are only counted.
            strict: topics without a copy, groups that would skip records, and differing configs and ACLs are wrong.
            memory_mib: shared by the processes.
            processes: 1 compares in the task's own process.
            metrics: path of a file for node_exporter's textfile collector.
            kwargs: arguments of every operator.
        """
        super().__init__(**{**retry_policy(), **kwargs})
        self.source, self.target, self.topics, self.pairs = source, target, topics, dict(pairs or {})
        self.client_config, self.source_config, self.target_config = client_config, source_config, target_config
        self.since, self.wait, self.sample, self.seed = since, wait, sample, seed
        self.ignored_headers, self.ignore_timestamps = list(ignored_headers), ignore_timestamps
        self.same_offsets, self.uncommitted = same_offsets, uncommitted
        self.merged, self.strict = merged, strict
        self.memory_mib, self.processes, self.metrics = memory_mib, processes, metrics

    def execute(self, context: Context) -> None:
        """Audit; called by Airflow."""
        # Kafka's clients take a second to import, and DAGs are parsed all the time.
        from mirror_lib.features.audit.airflow.tasks import audit_clusters

        with failing_at_once():
            audit_clusters(context["ti"], **{name: getattr(self, name) for name in self.template_fields})
