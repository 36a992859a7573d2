"""Results of all runs of the model, in a file that grows: it can be stopped at any time, and continued."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tools.model.steps import Step

_ROOT = Path(__file__).resolve().parents[2]
#: What runs in Airflow's processes only: a change there changes nothing of what the model plays. The contract
#: "Dependencies point one way" (pyproject.toml) keeps commands and jobs from importing it.
NOT_UNDER_IT = ("mirror_lib/airflow", "mirror_lib/features/page")


class Results:
    """Lines of JSON, one for each sequence; the last line may be incomplete after a crash.

    Several processes may add to the same file.
    """

    def __init__(self, file: Path, root: Path = _ROOT) -> None:
        """Nothing is written yet.

        Args:
            file: of earlier runs too; made when something is added.
            root: the checkout that is tried.
        """
        self._file = file
        #: Of the product: results from before a change do not count.
        self.code = tree_hash(root, "mirror_lib", "spark_jobs", without=NOT_UNDER_IT)
        #: Of the model: a seed is another sequence if the rules have changed.
        self._model = tree_hash(root, "tools/model")

    def add(
        self,
        *,
        seed: int,
        length: int,
        steps: int,
        seconds: float,
        without: Sequence[str],
        violation: str | None = None,
        script: Sequence[Step] = (),
    ) -> None:
        """Add a sequence."""
        self._file.parent.mkdir(parents=True, exist_ok=True)
        row = {
            "code": self.code,
            "model": self._model,
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "seed": seed,
            "length": length,
            "steps": steps,
            "seconds": round(seconds, 1),
            "without": list(without),
            "violation": violation,
            "script": list(script),
        }
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    def steps(self) -> int:
        """Return how many steps were played with this code, with all protections."""
        return sum(row["steps"] for row in self._present_rows())

    def summary(self, wanted: int | None = None) -> str:
        """Summarize the file's results for this code, with all protections.

        Args:
            wanted: the required number of steps.
        """
        rows = self._present_rows()
        failed = sum(row["violation"] is not None for row in rows)
        steps = f"{sum(row['steps'] for row in rows):,}" + ("" if wanted is None else f" of {wanted:,}")
        return f"{steps} steps under this code ({self.code}) in {len(rows):,} sequences, {failed} with a violation"

    def tried(self, length: int) -> set[int]:
        """Return the seeds that need no repetition: played with this product by this model."""
        rows = self._present_rows()
        return {row["seed"] for row in rows if row["model"] == self._model and row["length"] == length}

    def _present_rows(self) -> list[dict[str, Any]]:
        return [row for row in self._rows() if row.get("code") == self.code and not row["without"]]

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


def tree_hash(root: Path, *folders: str, without: Sequence[str] = ()) -> str:
    """Hash the names and contents of all present files, committed or not, without compiled modules.

    Args:
        without: folders below these.
    """
    omitted = [root / folder for folder in without]
    digest = hashlib.sha256()
    for folder in folders:
        for file in sorted((root / folder).rglob("*")):
            if file.is_file() and "__pycache__" not in file.parts and not any(map(file.is_relative_to, omitted)):
                content = hashlib.sha256(file.read_bytes()).hexdigest()
                digest.update(f"{file.relative_to(root)} {content}\n".encode())
    return digest.hexdigest()[:12]
