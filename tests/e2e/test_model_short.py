"""The short form of the model: fixed sequences without a violation, and some that it must notice."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.model.world import clusters

_ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def servers() -> Iterator[Path]:
    """The folder of running clusters."""
    with tempfile.TemporaryDirectory(prefix="model-") as folder, clusters(Path(folder)):
        yield Path(folder)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("options", [(), ("--same-offsets",)])
def test_a_seed_is_carried_out_without_a_violation_and_is_noted(
    servers: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    results = tmp_path / "results.jsonl"

    done = _model(servers, "--seeds", "7..7", "--length", "12", "--results", str(results), *options)

    assert done.returncode == 0, done.stdout + done.stderr
    rows = [json.loads(line) for line in results.read_text().splitlines()]
    assert [(row["seed"], row["steps"], row["violation"]) for row in rows] == [(7, 12, None)]


def _written(count: int, topic: str = "a") -> dict[str, object]:
    step = {"do": "produce", "topic": topic, "partition": 0, "count": count, "age": "present"}
    return {**step, "codec": "none", "batch": 5}


#: What a short seed has none of: a cutover and the way home, decisions, names and clusters that change.
_MOVES: list[dict[str, object]] = [
    {"do": "settings", "guarded": False, "committed": True, "latest": False, "ends": None, "separator": None},
    _written(20),
    _written(20, "c"),
    {"do": "run"},
    {"do": "commit", "group": "g", "topic": "a", "partition": 0, "percent": 30},
    {"do": "cutover", "topic": "a", "groups": True, "at": None, "nth": 1},
    _written(5),
    {"do": "run-back", "at": None, "nth": 1},
    {"do": "failback", "topic": "a"},
    _written(5),
    {"do": "run"},
    {"do": "verify", "mode": "full"},
    {"do": "delete-keys"},
    {"do": "first-start", "latest": True},
    {"do": "policy", "separator": "--"},
    {"do": "run"},
    {"do": "decide", "how": "stop"},
    {"do": "first-start", "latest": False},
    {"do": "restore", "which": "target", "at": "closed", "nth": 1, "topic": "b", "burst": 5, "age": "present"},
    {"do": "resettle"},
]


@pytest.mark.timeout(600)
def test_a_cutover_and_what_comes_after_it_are_carried_out_without_a_violation(servers: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text(json.dumps(_MOVES))

    done = _model(servers, "--replay", str(script), "--results", str(tmp_path / "results.jsonl"))

    assert done.returncode == 0, done.stdout + done.stderr
    for words in ("cutover there-1: finished at finish", "cutover there-1-back-1: finished at finish"):
        assert words in done.stdout


@pytest.mark.parametrize(
    ("without", "seed", "steps", "kind"),
    [("identity", 1, 13, "group"), ("fence", 2, 4, "repeated"), ("last-record", 6, 7, "missing")],
)
@pytest.mark.timeout(600)
def test_given_a_copy_without_a_protection_when_the_first_seeds_are_played_then_the_model_notices(
    servers: Path, tmp_path: Path, without: str, seed: int, steps: int, kind: str
) -> None:
    results = tmp_path / "results.jsonl"
    words = ("--seeds", str(seed), "--length", str(steps), "--shrink-seconds", "0", "--results", str(results))

    done = _model(servers, "--without", without, *words)

    assert done.returncode == 1, done.stdout + done.stderr
    assert f"VIOLATION {kind}" in done.stdout


@pytest.mark.timeout(600)
def test_groups_of_real_clients_move_and_read_each_record_that_no_gate_names_once(servers: Path) -> None:
    done = _model(servers, "--clients", "6", "--seeds", "4")

    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped where a gate names it" in done.stdout


def _model(servers: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Sockets of forked commands stand there, whose paths may have about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="model-") as temporary:
        return subprocess.run(
            [sys.executable, "-m", "tools.model", "--on", str(servers), *arguments],
            cwd=_ROOT,
            env={**os.environ, "TMPDIR": temporary},
            capture_output=True,
            text=True,
            timeout=580,
            check=False,
        )
