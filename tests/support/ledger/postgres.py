"""A PostgreSQL server of Debian's package `postgresql`, in a temporary folder, for as long as a test needs it."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_BINARIES = Path("/usr/lib/postgresql")
_START_SECONDS = 120
#: Nothing here has to survive a power cut.
_FAST = "-c fsync=off -c full_page_writes=off -c synchronous_commit=off -c autovacuum=off"
_INSTALL = "install it with: apt-get install -y postgresql"


class PostgresMissingError(RuntimeError):
    """The machine has no PostgreSQL server."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """Start a server of its own on a free port of 127.0.0.1; gives the URL of its database `postgres`.

    Raises:
        PostgresMissingError: the server is not installed.
        RuntimeError: it does not start; the message has its log.
    """
    binaries = find_binaries()
    # Not under pytest's folder: that one is closed to the user the server runs as.
    folder = Path(tempfile.mkdtemp(prefix="mirror-postgres-"))
    try:
        prefix = as_server_user(folder)
        _run([*prefix, binaries / "initdb", "-D", folder / "data", "-U", "mirror", "-A", "trust", "-E", "UTF8", "-N"])
        port = free_port()
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} {_FAST}"
        log = folder / "log"
        control = [*prefix, binaries / "pg_ctl", "-D", folder / "data", "-w", "-t", str(_START_SECONDS)]
        try:
            _run([*control, "-l", log, "-o", options, "start"])
        except RuntimeError as error:
            raise RuntimeError(f"{error}\n{log.read_text() if log.exists() else ''}") from error
        try:
            yield f"postgresql://mirror:unchecked@127.0.0.1:{port}/postgres"
        finally:
            _run([*control, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def find_binaries() -> Path:
    """Folder of the server's programs.

    Raises:
        PostgresMissingError: the server is not installed.
    """
    versions = sorted(_BINARIES.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if versions:
        return versions[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise PostgresMissingError(f"The tests of the ledger on PostgreSQL need its server; {_INSTALL}")
    return Path(on_path).resolve().parent


def as_server_user(folder: Path) -> list[str]:
    """PostgreSQL refuses to run as root; Debian's package brings a user for it."""
    if os.geteuid() != 0:
        return []
    try:
        user = pwd.getpwnam("postgres")
    except KeyError as error:
        raise PostgresMissingError(f"root may not run PostgreSQL and there is no user postgres; {_INSTALL}") from error
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _run(command: list[str | Path]) -> None:
    # A server that inherits our pipes would keep them open, and the call waiting: output goes to a file.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [str(part) for part in command], cwd="/", stdout=output, stderr=subprocess.STDOUT, check=False
        )
        if done.returncode:
            output.seek(0)
            raise RuntimeError(f"{Path(str(command[0])).name} ended with {done.returncode}: {output.read()}")
