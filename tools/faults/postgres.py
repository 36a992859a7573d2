"""A PostgreSQL server that a campaign can stop and start: the ledger's database for the fault that stops it."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from tools.faults.errors import FaultsError

_BINARIES = Path("/usr/lib/postgresql")
_START_SECONDS = 60
_INSTALL = "Install it (apt-get install -y postgresql), or exclude this fault."


class PostgresServer:
    """A server in a temporary folder; as a context manager it runs, and its data are deleted at the end."""

    def __init__(self) -> None:
        # Not under the campaign's folder, which the server's user cannot access.
        self._folder = Path(tempfile.mkdtemp(prefix="mirror-faults-postgres-"))
        (self._port,) = free_ports(1)

    @property
    def url(self) -> str:
        """URL of its database, for SQLAlchemy."""
        return f"postgresql://mirror:unchecked@{LOOPBACK}:{self._port}/postgres"

    def __enter__(self) -> Self:
        try:
            data = self._folder / "data"
            self._prefix = _as_server_user(self._folder)
            _run([*self._prefix, _binaries() / "initdb", "-D", data, "-U", "mirror", "-A", "trust", "-E", "UTF8", "-N"])
            self.start()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(FaultsError):
            self.crash()
        shutil.rmtree(self._folder, ignore_errors=True)

    def start(self) -> None:
        """Start it and wait until it responds.

        Raises:
            FaultsError: it does not.
        """
        options = f"-c listen_addresses={LOOPBACK} -c port={self._port} -c unix_socket_directories={self._folder}"
        self._control("-w", "-t", str(_START_SECONDS), "-l", str(self._folder / "log"), "-o", options, "start")

    def crash(self) -> None:
        """Stop it at once, like a power cut; committed data exists after the next start."""
        self._control("-m", "immediate", "stop")

    def _control(self, *arguments: str) -> None:
        _run([*self._prefix, _binaries() / "pg_ctl", "-D", self._folder / "data", *arguments])


def _binaries() -> Path:
    versions = sorted(_BINARIES.glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if versions:
        return versions[-1].parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise FaultsError("the fault ledger-gone needs a PostgreSQL server.", action=_INSTALL)
    return Path(on_path).resolve().parent


def _as_server_user(folder: Path) -> list[str | Path]:
    """PostgreSQL refuses to run as root; Debian's package has a user for it."""
    if os.geteuid() != 0:
        return []
    try:
        user = pwd.getpwnam("postgres")
    except KeyError as error:
        raise FaultsError("root may not run PostgreSQL, and there is no user postgres.", action=_INSTALL) from error
    os.chown(folder, user.pw_uid, user.pw_gid)
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def _run(command: list[str | Path]) -> None:
    # A server that inherits this process's pipes would keep them open, and the call waiting: output goes to a file.
    with tempfile.TemporaryFile("w+") as output:
        done = subprocess.run(
            [str(part) for part in command],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            # An interrupt of the campaign must not reach the server.
            start_new_session=True,
            check=False,
        )
        if done.returncode:
            output.seek(0)
            raise FaultsError(f"{Path(str(command[0])).name} ended with {done.returncode}: {output.read()}")
