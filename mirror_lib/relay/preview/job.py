"""The command line of a preview's Spark job, without Spark itself: `spark_jobs/preview.py` passes the runner.

The job reads the records from a file and writes its result to another one: it connects to no cluster.
"""

from __future__ import annotations

import argparse
import logging
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from mirror_lib.config import FlowConfig, load_flow, replication_policy
from mirror_lib.errors import MirrorError
from mirror_lib.transform import TransformChain
from mirror_lib.transform.preview import PreviewResult

_log = logging.getLogger("mirror")


@dataclass(frozen=True, slots=True)
class PreviewArguments:
    """Arguments of the job: the only class that knows their names, for the job and for its starter."""

    #: The MirrorMaker 2 properties file; absolute, since the job may run in another folder.
    config: Path
    flow: str
    #: Source topic.
    topic: str
    #: Name of the topic on the target.
    remote_topic: str
    #: File written by `write_rows`.
    rows: Path
    #: File for the result.
    result: Path

    @classmethod
    def parse(cls, argv: Sequence[str]) -> PreviewArguments:
        """Parse a command line without the program's name; an invalid one ends the process with exit code 2."""
        found = _parser().parse_args(argv)
        return cls(found.config, found.flow, found.topic, found.remote_topic, found.rows, found.result)

    def command_line(self) -> list[str]:
        """The inverse of `parse`."""
        return [
            f"--config={self.config}",
            f"--flow={self.flow}",
            f"--topic={self.topic}",
            f"--remote-topic={self.remote_topic}",
            f"--rows={self.rows}",
            f"--result={self.result}",
        ]


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
    return flow.transforms.chain_of(topic, heartbeats=replication_policy(flow).is_heartbeats_topic(topic))


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
    written = path.with_suffix(".part")
    written.touch(mode=0o600)
    written.write_bytes(pickle.dumps(found, pickle.HIGHEST_PROTOCOL))
    written.replace(path)


def _read_rows(path: Path) -> pa.Table:
    with path.open("rb") as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="preview.py", description="Transform a few records; write nothing.")
    parser.add_argument("--config", required=True, type=Path, help="the MirrorMaker 2 properties file")
    parser.add_argument("--flow", required=True, help="the flow, as SOURCE->TARGET")
    parser.add_argument("--topic", required=True, help="topic on the source")
    parser.add_argument("--remote-topic", required=True, help="topic on the target")
    parser.add_argument("--rows", required=True, type=Path, help="file with the records")
    parser.add_argument("--result", required=True, type=Path, help="output file")
    return parser
