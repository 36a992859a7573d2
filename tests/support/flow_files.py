"""Properties files of the flow A->B, whose clusters do not exist."""

from __future__ import annotations

from pathlib import Path

#: The line for a ledger beside the file.
LEDGER = "mirror.ledger.url = sqlite:///ledger.sqlite3"
#: Lines for clusters that refuse connections at once: nothing listens on the port for discarded bytes.
AWAY = ("A.bootstrap.servers = 127.0.0.1:9", "B.bootstrap.servers = 127.0.0.1:9", "admin.timeout.ms = 1000")
_LINES = (
    "clusters = A, B",
    "A.bootstrap.servers = a:9092",
    "B.bootstrap.servers = b:9092",
    "A->B.enabled = true",
)


def write_flow(folder: Path, *lines: str, name: str = "mirror.properties") -> Path:
    """Write the file of the flow and further lines; a line with a key of the first four replaces that one."""
    chosen = {line.partition(" = ")[0] for line in lines}
    kept = [line for line in _LINES if line.partition(" = ")[0] not in chosen]
    path = folder / name
    path.write_text("".join(f"{line}\n" for line in (*kept, *lines)))
    return path
