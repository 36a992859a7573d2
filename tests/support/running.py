"""Processes that run, by what they are started with."""

from __future__ import annotations

from pathlib import Path


def running_with(text: str) -> list[str]:
    """Command lines of processes that name this text, or have it in their environment as all children do."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line, environment = (entry / "cmdline").read_bytes(), (entry / "environ").read_bytes()
            except OSError:
                continue
            if text.encode() in line + environment:
                found.append(line.replace(b"\0", b" ").decode(errors="replace"))
    return found
