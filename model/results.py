"""What all runs of the model have found, in a file that grows: it can be stopped at any time, and continued."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from model.steps import Step


class Results:
    """Lines of JSON, one for each sequence; the last line may be incomplete after a crash."""

    def __init__(self, file: Path) -> None:
        self._file = file
        #: Of the product: what was played before it changed says nothing about it.
        self.revision = _revision("mirror_lib", "spark_jobs")
        #: Of the model: a seed is another sequence when the rules have changed.
        self._model = _revision("model")

    def add(
        self,
        *,
        seed: int,
        steps: int,
        seconds: float,
        without: Sequence[str],
        violation: str | None = None,
        script: Sequence[Step] = (),
    ) -> None:
        """Note a sequence."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        row = {
            "revision": self.revision,
            "model": self._model,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": seed,
            "steps": steps,
            "seconds": round(seconds, 1),
            "without": list(without),
            "violation": violation,
            "script": list(script),
        }
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def summary(self) -> str:
        """What the file has of this revision, with all protections."""
        rows = [row for row in self._rows() if row["revision"] == self.revision and not row["without"]]
        failed = sum(row["violation"] is not None for row in rows)
        return (
            f"{sum(row['steps'] for row in rows):,} steps in {len(rows):,} sequences of revision {self.revision}, "
            f"{failed} with a violation ({self._file})"
        )

    def tried(self) -> set[int]:
        """The seeds that need not be tried again: played with this product by this model."""
        return {
            row["seed"]
            for row in self._rows()
            if row["revision"] == self.revision and row.get("model") == self._model and not row["without"]
        }

    def _rows(self) -> list[dict[str, Any]]:
        if not self._file.exists():
            return []
        rows = []
        for line in self._file.read_text(encoding="utf-8").splitlines():
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        return rows


def _revision(*folders: str) -> str:
    """The last commit that changed these folders, with a mark when files differ from it."""
    root = Path(__file__).resolve().parent.parent

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=root, capture_output=True, text=True, check=False).stdout.strip()

    changed = "+" if git("status", "--porcelain", *folders) else ""
    return (git("log", "-1", "--format=%h", "--", *folders) or "unknown") + changed
