"""Properties files of one flow, whose clusters do not exist."""

from __future__ import annotations

from pathlib import Path

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
