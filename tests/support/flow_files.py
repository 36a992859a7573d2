"""Properties files of one flow: of clusters that do not exist, and of the shared ones for an Airflow that runs it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.support.clusters import KafkaPair

#: The line for a ledger beside the file.
LEDGER = "mirror.ledger.url = sqlite:///ledger.sqlite3"
#: Lines for clusters that refuse connections at once: nothing listens on the port for discarded bytes.
AWAY = ("A.bootstrap.servers = 127.0.0.1:9", "B.bootstrap.servers = 127.0.0.1:9", "admin.timeout.ms = 1000")


def write_flow(
    folder: Path, *lines: str, source: str = "A", target: str = "B", name: str = "mirror.properties"
) -> Path:
    """Write the file of a flow and further lines; a line with a key of the first four replaces that one."""
    first = (
        f"clusters = {source}, {target}",
        f"{source}.bootstrap.servers = {source.lower()}:9092",
        f"{target}.bootstrap.servers = {target.lower()}:9092",
        f"{source}->{target}.enabled = true",
    )
    replaced = {line.partition(" = ")[0] for line in lines}
    kept = [line for line in first if line.partition(" = ")[0] not in replaced]
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in (*kept, *lines)))
    return path


def flow_between(pair: KafkaPair, flow: str, topics: str, name: str, *lines: str) -> str:
    """Return the text of a file with one flow between the shared clusters, and further lines.

    Args:
        name: of this test's own, for the topic of the flow's positions.
    """
    source, _, target = flow.partition("->")
    return f"""\
clusters = {source}, {target}
{source}.bootstrap.servers = {pair.source.bootstrap_servers}
{target}.bootstrap.servers = {pair.target.bootstrap_servers}
{flow}.enabled = true
{flow}.topics = {topics}
{target}->{source}.enabled = false
emit.heartbeats.enabled = false
replication.factor = 1
offset-syncs.topic.replication.factor = 1
heartbeats.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
offset.storage.topic = mm2-offsets.{name}.internal
""" + "".join(f"{line}\n" for line in lines)
