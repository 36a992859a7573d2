"""The command line of a preview's Spark job, without Spark itself: `spark_jobs/preview.py` passes the runner.

The job reads the records from a file and writes its result to another one: it connects to no cluster.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar

import pyarrow as pa

from mirror_lib.config.loader import load_flow
from mirror_lib.config.model import FlowConfig
from mirror_lib.config.topology import replication_policy
from mirror_lib.errors import MirrorError
from mirror_lib.features.transforms.model import TransformChain, transforms_of
from mirror_lib.features.transforms.preview.preview import PreviewResult
from mirror_lib.private_files import draft_of
from mirror_lib.spark.job_arguments import CommandLine

_log = logging.getLogger("mirror")


@dataclass(frozen=True, slots=True)
class PreviewArguments(CommandLine):
    """Arguments of the job."""

    program: ClassVar[str] = "preview.py"
    description: ClassVar[str] = "Transform a few records; write nothing."

    #: Absolute, since the job may run in another folder.
    config: Annotated[Path, "the MirrorMaker 2 properties file"]
    flow: Annotated[str, "the flow, as SOURCE->TARGET"]
    topic: Annotated[str, "topic on the source"]
    remote_topic: Annotated[str, "topic on the target"]
    #: Written by `write_rows`.
    rows: Annotated[Path, "file with the records"]
    result: Annotated[Path, "output file"]


#: Takes the transforms of a topic and its rows (`layout.READ_SCHEMA`), and returns the result.
PreviewRunner = Callable[[TransformChain, pa.Table], PreviewResult]


def main(argv: Sequence[str], make_runner: Callable[[PreviewArguments, FlowConfig], PreviewRunner]) -> int:
    """Run the job; return the exit code (0 done, 1 failed, 2 configuration)."""
    arguments = PreviewArguments.parse(argv)
    found: PreviewResult | MirrorError
    try:
        _, flow = load_flow(arguments.config, arguments.flow)
        found = make_runner(arguments, flow)(chain_of(flow, arguments.topic), _read_rows(arguments.rows))
    except MirrorError as error:
        _log.error("%s", error)
        found = error
    _write_result(arguments.result, found)
    return found.exit_code if isinstance(found, MirrorError) else 0


def chain_of(flow: FlowConfig, topic: str) -> TransformChain:
    """The transform chain of a source topic in this flow."""
    return transforms_of(flow).chain_of(topic, heartbeats=replication_policy(flow).is_heartbeats_topic(topic))


def write_rows(path: Path, rows: pa.Table) -> None:
    """Write the rows for the job."""
    path.touch(mode=0o600)
    with path.open("wb") as file, pa.ipc.new_stream(file, rows.schema) as stream:
        stream.write_table(rows)


def read_result(path: Path) -> PreviewResult | None:
    """Return the result of the job; None if it wrote none.

    Raises:
        MirrorError: the error that ended the job.
    """
    if not path.exists():
        return None
    found: PreviewResult | MirrorError = pickle.loads(path.read_bytes())
    if isinstance(found, MirrorError):
        raise found
    return found


def _write_result(path: Path, found: PreviewResult | MirrorError) -> None:
    """Write the file atomically and readable only by its owner, since it holds records."""
    with draft_of(path, 0o600) as draft:
        draft.write_bytes(pickle.dumps(found, pickle.HIGHEST_PROTOCOL))


def _read_rows(path: Path) -> pa.Table:
    with path.open("rb") as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()
