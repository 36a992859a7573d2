"""Implementation of `mirror transform preview`: read a few records, have Spark transform them, show both."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import NamedTuple

from mirror_lib.cli import Output
from mirror_lib.cli.run.spark_submit import Job, running_job
from mirror_lib.config.copy_settings import PoisonPolicy
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import flow_topology, quarantine_topic
from mirror_lib.errors import SparkJobError, Where
from mirror_lib.features.transforms.model import Determinism, TransformChain
from mirror_lib.features.transforms.preview.preview import Preview, PreviewResult
from mirror_lib.features.transforms.preview.schemas import SchemaTexts
from mirror_lib.features.transforms.preview.text import PreviewText, summary
from mirror_lib.features.transforms.sampling.job import PreviewArguments, chain_of, read_result, write_rows
from mirror_lib.features.transforms.sampling.sample import MOST_BYTES, Sample, SampleStart, read_sample
from mirror_lib.planning.record_paths import topic_paths
from mirror_lib.processes import tail
from mirror_lib.spark.submit import job_file
from mirror_lib.sync.admins import source_admin

_POLL_SECONDS = 0.2
_LOG_LINES = 20


class Wanted(NamedTuple):
    """The records to show."""

    topic: str
    start: SampleStart
    most: int
    partition: int | None = None


def show_preview(output: Output, config: Path, flow: FlowConfig, wanted: Wanted, master: str) -> None:
    """Show records before and after their transforms; set exit code 1 if some cannot be transformed.

    Args:
        config: the properties file; absolute.
        master: Spark's, or the address of a Spark Connect server.

    Raises:
        ConfigurationError: the flow does not select the topic, a position is not in it, or Spark rejects a transform.
        MirrorError: the source or Spark does not respond.
    """
    topology = flow_topology(flow)
    topology.refuse_unselected(wanted.topic)
    (path,) = topic_paths(
        [wanted.topic], flow.transforms, topology.policy.is_heartbeats_topic, transactions=flow.transactions
    )
    output.document({"flow": str(flow.flow), "topic": wanted.topic, "path": path.to_dict()})
    chain = chain_of(flow, wanted.topic)
    if not chain:
        _check_exists(output, flow, wanted.topic)
        output.document({"records": []})
        output.note(f"{wanted.topic} has no transforms: it is copied unchanged ({path.reason}).")
        return
    output.note(str(path))
    _show_determinism(output, chain)
    with output.progress(f"Reading {wanted.topic} on {flow.flow.source}"):
        sample = read_sample(flow, wanted.topic, wanted.start, most=wanted.most, partition=wanted.partition)
    remote_topic = topology.remote_topic(wanted.topic)
    result = PreviewResult()
    if sample.rows.num_rows:
        result = _transform(output, config, flow, wanted.topic, remote_topic, sample, master)
    preview = Preview.of(wanted.topic, remote_topic, sample.records(), sample.unreadable, result)
    _show(output, preview, PreviewText(policy_text(flow), SchemaTexts(chain)))
    if sample.is_cut:
        output.note(
            f"Fewer than {wanted.most:,} records: a preview reads at most {MOST_BYTES // 1024**2} MiB of decompressed "
            "records. For others, use --from and --partition."
        )


def _check_exists(output: Output, flow: FlowConfig, topic: str) -> None:
    with output.progress(f"Reading the offsets of {flow.flow.source} on {topic}"), source_admin(flow) as admin:
        for error in admin.describe_topics([topic]).errors.values():
            raise error


def _show_determinism(output: Output, chain: TransformChain) -> None:
    doubtful = {
        each.name: [str(reason) for reason in each.non_determinism]
        for each in chain.transforms
        if each.determinism is not Determinism.YES
    }
    output.document({"determinism": chain.determinism.value, "non_determinism": doubtful})
    for name, reasons in doubtful.items():
        reasons_text = f" ({'; '.join(reasons)})" if reasons else ""
        output.note(f"Warning: {name} may return another result for the same record next time{reasons_text}.")


def _transform(
    output: Output, config: Path, flow: FlowConfig, topic: str, remote_topic: str, sample: Sample, master: str
) -> PreviewResult:
    """Transform the sample by a Spark job. All its input and output is in a folder that only this user may read."""
    with tempfile.TemporaryDirectory(prefix="batch-mirror-preview-") as name:
        folder = Path(name)
        arguments = PreviewArguments(
            config=config,
            flow=str(flow.flow),
            topic=topic,
            remote_topic=remote_topic,
            rows=folder / "rows",
            result=folder / "result",
        )
        write_rows(arguments.rows, sample.rows)
        job = Job(
            title=f"mirror transform preview {topic}",
            file=job_file().with_name("preview.py"),
            arguments=arguments.command_line(),
            interrupted="the preview was interrupted.",
            what_then="Nothing was written.",
        )
        log = folder / "log"
        with (
            output.progress(f"Starting Spark for {sample.rows.num_rows:,} records"),
            running_job(job, master=master, log=log) as child,
        ):
            while (code := child.wait(_POLL_SECONDS)) is None:
                pass
        found = read_result(arguments.result)
        if found is None:
            raise SparkJobError(
                f"the Spark job of the preview ended with exit code {code} and without a result. The end of its "
                f"log:\n{tail(log, _LOG_LINES)}",
                where=Where(flow=str(flow.flow), topic=topic),
            )
        return found


def _show(output: Output, preview: Preview, text: PreviewText) -> None:
    output.document({"records": text.data(preview)})
    for line in text.lines(preview):
        output.note(line)
    output.note(f"{summary(preview)} Nothing was written.")
    if preview.failures:
        output.exit_code = 1


def policy_text(flow: FlowConfig) -> str:
    """Return the flow's policy for poison records."""
    policy = flow.copy_settings.poison_policy
    consequences = {
        PoisonPolicy.FAIL: "its partition stops before it, and the run needs operator action",
        PoisonPolicy.QUARANTINE: f"a copy of it is written to {quarantine_topic(flow)} on {flow.flow.target}, and the "
        "flow continues after it",
        PoisonPolicy.SKIP: "it is skipped and stored in the ledger, and the flow continues after it",
    }
    return f"mirror.poison.policy={policy.value}: {consequences[policy]}"
