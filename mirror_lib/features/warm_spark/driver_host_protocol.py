"""The protocol between a driver host (`spark_jobs.driver_host`) and its clients.

On a Unix socket in a folder that only its owner can enter, one connection for each driver:

1. the host greets with its code and its Python, so that a client sends nothing to an unsuitable host;
2. the client sends a `DriverRequest` with the driver's three standard streams (SCM_RIGHTS, unix(7));
3. the host responds with the process id of the driver, or with the reason why there is none;
4. from then on each byte from the client is a signal for the driver, and four bytes from the host are its exit code.

Nothing here imports Spark.
"""

from __future__ import annotations

import array
import hashlib
import json
import os
import socket
import stat
import struct
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import mirror_lib
from mirror_lib.errors import ConfigurationError

#: Path of the driver host's socket, for the host and for its clients.
DRIVER_HOST_VARIABLE = "MIRROR_DRIVER_HOST"
#: As `subprocess.Popen.returncode`: negative if a signal ended it.
EXIT_CODE = struct.Struct("!i")
STREAMS = 3
_PACKAGES = ("mirror_lib", "spark_jobs")
_LENGTH = struct.Struct("!I")
#: Far above the maximum size of an environment on Linux (execve(2)).
_MOST_BYTES = 64 * 1024 * 1024
#: `struct ucred`: process, user, group.
_CREDENTIALS = struct.Struct("iII")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Greeting:
    """The code that a driver of this host runs; a host with the same code as this process greets with equal values."""

    #: Result of `code_stamp`.
    code: str
    #: Result of `python_stamp`.
    python: str


@dataclass(frozen=True, slots=True)
class DriverRequest:
    """A request for a driver, which runs like `python -m module arguments`."""

    module: str
    arguments: tuple[str, ...]
    #: The complete environment; it may hold secrets.
    environment: Mapping[str, str]
    directory: str
    umask: int

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """Parse the request from a message."""
        return cls(
            module=str(plain["module"]),
            arguments=tuple(map(str, plain["arguments"])),
            environment={str(name): str(value) for name, value in plain["environment"].items()},
            directory=str(plain["directory"]),
            umask=int(plain["umask"]),
        )

    def to_plain(self) -> dict[str, Any]:
        """The request as a message."""
        return asdict(self)


def code_stamp() -> str:
    """The version of this package and a digest of all its module files at present."""
    root = Path(mirror_lib.__file__).parents[1]
    digest = hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted(_modules(root / package)):
            content = Path(path).read_bytes()
            digest.update(f"{os.path.relpath(path, root)} {len(content)}\n".encode(errors="surrogateescape"))
            digest.update(content)
    return f"{mirror_lib.__version__}/{digest.hexdigest()[:16]}"


def _modules(folder: Path) -> Iterator[str]:
    for where, _, names in os.walk(folder):
        yield from (os.path.join(where, name) for name in names if name.endswith(".py"))  # noqa: PTH118 - many files


def python_stamp(executable: str) -> str:
    """The program and its environment; links in one folder such as `python3` are equivalent."""
    return f"{os.path.realpath(executable)} of {Path(executable).absolute().parent}"


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """The address of a socket in a folder that only this user can enter.

    An address has at most 107 bytes (unix(7)); through the folder's descriptor, every path is short enough.

    Raises:
        ConfigurationError: another user owns the folder, or others may enter it.
        OSError: there is no such folder.
    """
    folder = os.open(path.absolute().parent, os.O_PATH | os.O_DIRECTORY)
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
            raise ConfigurationError(
                f"the folder of the driver host's socket, {path.parent}, is accessible to other users.",
                action=f"Use a folder of this user only, with mode 0700 ({DRIVER_HOST_VARIABLE}).",
            )
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def is_ours(connection: socket.socket) -> bool:
    """True if this user owns the other end: the process that called `connect` or `listen`."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(peer)[1] == os.geteuid())


def send(connection: socket.socket, message: Mapping[str, Any], streams: Sequence[int] = ()) -> None:
    """Send a message, with descriptors.

    Raises:
        OSError: the other end is gone.
    """
    # Escapes carry bytes in arguments and variables that are not valid text (PEP 383).
    body = json.dumps(message).encode("ascii")
    head = _LENGTH.pack(len(body))
    if streams:
        socket.send_fds(connection, [head], list(streams))
    else:
        connection.sendall(head)
    connection.sendall(body)


def receive(connection: socket.socket, streams: int = 0) -> tuple[dict[str, Any], list[int]] | None:
    """A message and its descriptors, which the caller must close; None at the end of the connection.

    Args:
        streams: number of descriptors that it must have.

    Raises:
        OSError: the connection broke.
        ValueError: the message is malformed.
    """
    head, found = _receive_head(connection, streams)
    try:
        if not head:
            return None
        head += _receive_exactly(connection, _LENGTH.size - len(head))
        (length,) = _LENGTH.unpack(head)
        if length > _MOST_BYTES or len(found) != streams:
            raise ValueError(f"a message of {length} bytes with {len(found)} descriptors")
        message = json.loads(_receive_exactly(connection, length))
        if not isinstance(message, dict):
            raise ValueError("a message that is not an object")  # noqa: TRY004 - of what arrived, not of an argument
    except BaseException:
        for each in found:
            os.close(each)
        raise
    return message, found


def _receive_head(connection: socket.socket, streams: int) -> tuple[bytes, list[int]]:
    found = array.array("i")
    size = found.itemsize
    # Unlike `socket.recv_fds`, with descriptors that child processes do not inherit.
    head, control, _, _ = connection.recvmsg(
        _LENGTH.size, socket.CMSG_SPACE(streams * size) if streams else 0, socket.MSG_CMSG_CLOEXEC
    )
    for level, kind, content in control:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(content[: len(content) - len(content) % size])
    return head, list(found)


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise ConnectionResetError("the connection was closed within a message")
        parts += part
    return bytes(parts)


def current_umask() -> int:
    """The umask of this process; read from /proc if possible, since setting it would affect other threads."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    found = os.umask(0o022)
    os.umask(found)
    return found
