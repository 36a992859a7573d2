"""kfake, the fake cluster of franz-go: built from the pinned Go module in `kfake/`, and run as a process."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from uuid import uuid4

from mirror_lib.config.local_state import state_dir
from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.state import exclusive

_SOURCE = Path(__file__).parent / "kfake"
_STOP_SECONDS = 15


class KfakeError(MirrorError):
    """kfake could not be built or started."""

    reason = "kfake"


@cache
def program() -> Path:
    """Build kfake unless it is up to date, and return the program; Go keeps its own cache.

    Raises:
        KfakeError: Go is missing or too old, or a module cannot be fetched.
    """
    go = shutil.which("go")
    if go is None:
        raise KfakeError(
            "kfake cannot be built: Go is missing.",
            action=f"Install Go {_go_version()} or newer, or run without --brokers kfake.",
        )
    built = state_dir() / "kfake" / "kfake"
    with exclusive(built.with_name("kfake.lock")):
        # The module files are the pins: a build that would change them fails.
        command = [go, "build", "-mod=readonly", "-o", str(built), "."]
        done = subprocess.run(command, cwd=_SOURCE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise KfakeError(
            f"kfake cannot be built: {done.stderr.strip()}",
            action=f"Check that Go is {_go_version()} or newer and that it reaches its module proxy (go env GOPROXY).",
        )
    return built


@contextmanager
def running(*, brokers: int = 1, release: str = "", without: Sequence[int] = ()) -> Iterator[str]:
    """Run kfake for the duration of the context, and return its bootstrap servers. It keeps everything in memory.

    Args:
        brokers: their number.
        release: offer only the API versions of this release of Kafka, such as 3.9; empty for the newest.
        without: keys of APIs that it does not offer.

    Raises:
        KfakeError: it cannot be built, or does not start.
    """
    # By itself, every kfake has the same cluster id.
    options = {"brokers": str(brokers), "id": uuid4().hex, "as": release, "without": ",".join(map(str, without))}
    command = [str(program()), *(f"-{name}={value}" for name, value in options.items())]
    # kfake ends with its standard input, so none outlives this process.
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as it:
        assert it.stdin is not None
        assert it.stdout is not None
        assert it.stderr is not None
        try:
            servers = it.stdout.readline().strip()
            if not servers:
                raise KfakeError(f"kfake did not start: {it.stderr.read().strip()}", action="Report this.")
            yield servers
        finally:
            it.stdin.close()
            try:
                it.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                it.kill()


def _go_version() -> str:
    lines = (_SOURCE / "go.mod").read_text(encoding="utf-8").splitlines()
    return next(line.split()[1] for line in lines if line.startswith("go "))
