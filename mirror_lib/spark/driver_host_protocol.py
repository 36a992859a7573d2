"""What a driver host (`spark_jobs.driver_host`) and whoever asks it for a driver say to each other.

On a Unix socket in a folder that only its owner can enter, one connection for each driver:

1. the host greets: its code and its Python. So a client sends nothing to a host whose answer it would not want;
2. the client sends a `DriverRequest` with the driver's three standard streams (SCM_RIGHTS, unix(7));
3. the host answers with the process id of the driver, or with why there is none;
4. from then on each byte of the client is a signal for the driver, and four bytes of the host are its exit code.

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

#: Names the socket of the driver host, for the host and for whoever asks it.
DRIVER_HOST_VARIABLE = "MIRROR_DRIVER_HOST"
#: As `subprocess.Popen.returncode`: negative when a signal ended it.
EXIT_CODE = struct.Struct("!i")
STREAMS = 3
_PACKAGES = ("mirror_lib", "spark_jobs")
_LENGTH = struct.Struct("!I")
#: Far above what an environment may hold on Linux (execve(2)).
_MOST_BYTES = 64 * 1024 * 1024
#: `struct ucred`: process, user, group.
_CREDENTIALS = struct.Struct("iII")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True)
class Greeting:
    """Which code a driver of this host runs; one that would run the same code as a process of its own greets alike."""

    #: As `code_stamp` gives it.
    code: str
    #: As `python_stamp` gives it.
    python: str


@dataclass(frozen=True, slots=True)
class DriverRequest:
    """A driver, as `python -m module arguments` would be started."""

    module: str
    arguments: tuple[str, ...]
    #: The whole of it; it may hold secrets.
    environment: Mapping[str, str]
    directory: str
    umask: int

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Self:
        """The request of a message."""
        return cls(
            module=str(plain["module"]),
            arguments=tuple(map(str, plain["arguments"])),
            environment={str(name): str(value) for name, value in plain["environment"].items()},
            directory=str(plain["directory"]),
            umask=int(plain["umask"]),
        )

    def to_plain(self) -> dict[str, Any]:
        """The request for a message."""
        return asdict(self)


def code_stamp() -> str:
    """The version of this package and a digest of all its modules, as they are in the files now."""
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
    """The program and the environment that it belongs to; links of one folder such as `python3` mean the same."""
    return f"{os.path.realpath(executable)} of {Path(executable).absolute().parent}"


@contextmanager
def socket_address(path: Path) -> Iterator[str]:
    """The address of a socket in a folder that is ours alone.

    An address has 107 bytes at the most (unix(7)); by the folder's descriptor, every path is short enough.

    Raises:
        ConfigurationError: the folder is somebody else's, or others may enter it.
        OSError: there is no such folder.
    """
    folder = os.open(path.absolute().parent, os.O_PATH | os.O_DIRECTORY)
    try:
        found = os.fstat(folder)
        if found.st_uid != os.geteuid() or found.st_mode & _OTHERS:
            raise ConfigurationError(
                f"the folder of the driver host's socket, {path.parent}, is not ours alone.",
                action=f"Give the socket a folder of this user alone, with mode 0700 ({DRIVER_HOST_VARIABLE}).",
            )
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)


def is_ours(connection: socket.socket) -> bool:
    """Whether the other end belongs to our user: who called `connect` there, or `listen`."""
    peer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return bool(_CREDENTIALS.unpack(peer)[1] == os.geteuid())


def send(connection: socket.socket, message: Mapping[str, Any], streams: Sequence[int] = ()) -> None:
    """Send a message, and descriptors with it.

    Raises:
        OSError: the other end is gone.
    """
    # Escapes carry what is no text in arguments and variables (PEP 383).
    body = json.dumps(message).encode("ascii")
    head = _LENGTH.pack(len(body))
    if streams:
        socket.send_fds(connection, [head], list(streams))
    else:
        connection.sendall(head)
    connection.sendall(body)


def receive(connection: socket.socket, streams: int = 0) -> tuple[dict[str, Any], list[int]] | None:
    """A message and the descriptors that came with it, which are ours to close; None at the end of the connection.

    Args:
        streams: how many descriptors it must have.

    Raises:
        OSError: the connection broke.
        ValueError: this is no such message.
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
            raise ValueError("a message that is no object")  # noqa: TRY004 - of what arrived, not of an argument
    except BaseException:
        for each in found:
            os.close(each)
        raise
    return message, found


def _receive_head(connection: socket.socket, streams: int) -> tuple[bytes, list[int]]:
    found = array.array("i")
    size = found.itemsize
    # Unlike `socket.recv_fds`, with descriptors that no child of ours gets by the way.
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
            raise ConnectionResetError("the connection ended within a message")
        parts += part
    return bytes(parts)


def current_umask() -> int:
    """The mask of new files: read where it can be, for setting it to find it out would show in other threads."""
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    found = os.umask(0o022)
    os.umask(found)
    return found
