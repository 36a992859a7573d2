"""PgBouncer in front of a PostgreSQL server: each transaction may run on another connection to it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlalchemy import make_url

from tests.support.ledger.postgres import as_server_user, free_port
from tests.support.waiting import wait_for


@contextmanager
def pgbouncer(server: str, *, connections: int) -> Iterator[str]:
    """Start it in transaction mode, with that many connections to the server; gives its own URL of the database."""
    url = make_url(server)
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="mirror-pgbouncer-") as name:
        folder = Path(name)
        prefix = as_server_user(folder)
        settings = folder / "pgbouncer.ini"
        settings.write_text(
            f"""[databases]
* = host={url.host} port={url.port} user={url.username}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
"""
        )
        settings.chmod(0o644)
        with (folder / "log").open("w") as log:
            # A user's PATH has not always Debian's folder for it.
            program = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
            process = subprocess.Popen([*prefix, program, str(settings)], cwd="/", stdout=log, stderr=log)
        try:
            wait_for(lambda: _answers(port), why=f"PgBouncer does not listen: {(folder / 'log').read_text()}")
            yield url.set(port=port).render_as_string(hide_password=False)
        finally:
            process.terminate()
            process.wait()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
