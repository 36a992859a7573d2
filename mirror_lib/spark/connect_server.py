"""The address of a Spark Connect server, and the session that runs share; nothing here imports Spark."""

from __future__ import annotations

import socket
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from urllib.parse import quote, unquote, urlsplit

from mirror_lib.errors import ConfigurationError, SparkUnreachableError

#: Spark's own variable (`SparkSession.builder.remote`); here it also keeps a token out of the list of processes.
REMOTE_VARIABLE = "SPARK_REMOTE"
#: Set by a starter whose driver has a pipe without a writer as standard input: the driver ends when it closes.
END_WITH_INPUT_VARIABLE = "MIRROR_END_WITH_INPUT"
SCHEME = "sc://"
#: `spark.connect.grpc.binding.port`.
DEFAULT_PORT = 15002
_TOKEN = "token"
_SESSION = "session_id"
_CONTACT_SECONDS = 10.0
_NAMES = uuid.UUID("0b2f6a0e-6f5c-5d43-9a43-4d8a2f6f3c11")


def is_connect(master: str) -> bool:
    """True if a master URL names a Spark Connect server."""
    return master.startswith(SCHEME)


@dataclass(frozen=True, slots=True)
class ConnectAddress:
    """`sc://host:port/;name=value`, as in Spark's connection string (`pyspark.sql.connect.client.ChannelBuilder`)."""

    host: str
    port: int = DEFAULT_PORT
    #: Such as `use_ssl`, `user_id` and `token`.
    parameters: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @classmethod
    def parse(cls, text: str) -> ConnectAddress:
        """Parse a connection string.

        Raises:
            ConfigurationError: it is invalid. The message does not repeat the text, since it may hold a token.
        """
        try:
            address, _, rest = text.strip().partition(";")
            parts = urlsplit(address)
            pairs = [part.split("=") for part in rest.split(";") if part]
            parameters = {name: unquote(value) for name, value in pairs}
            if _SESSION in parameters:
                # As Spark's client and server require it.
                uuid.UUID(parameters[_SESSION])
            port = parts.port or DEFAULT_PORT
        except ValueError:
            raise _malformed_error() from None
        if not is_connect(address) or not parts.hostname or parts.path not in ("", "/") or parts.username:
            raise _malformed_error()
        return cls(parts.hostname, port, MappingProxyType(parameters))

    @property
    def url(self) -> str:
        """The whole connection string, with its token."""
        given = ";".join(f"{name}={quote(value, safe='')}" for name, value in self.parameters.items())
        return f"{self}/;{given}" if given else str(self)

    @property
    def token(self) -> str | None:
        """The server's token, if it has one."""
        return self.parameters.get(_TOKEN)

    @property
    def names_session(self) -> bool:
        """True if the connection string names the session."""
        return _SESSION in self.parameters

    def __str__(self) -> str:
        """The part that may be shown: the server's address, without secrets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{SCHEME}{host}:{self.port}"

    def with_parameters(self, **more: str) -> ConnectAddress:
        """The same server with additional parameters."""
        return ConnectAddress(self.host, self.port, MappingProxyType({**self.parameters, **more}))

    def in_session(self, session_id: str) -> ConnectAddress:
        """The same server with this session."""
        return self.with_parameters(**{_SESSION: session_id})

    def require_listener(self) -> None:
        """Check that a server listens there: Spark's client would retry for ten minutes before it reports an error.

        Raises:
            SparkUnreachableError: no server listens.
        """
        try:
            socket.create_connection((self.host, self.port), _CONTACT_SECONDS).close()
        except OSError as error:
            raise SparkUnreachableError(
                f"no response from the Spark Connect server {self}: {error.strerror or error}.",
                action="Start it (`mirror dev up --warm` starts one on this machine), or correct the address.",
            ) from error


def shared_session_id(version: str, generation: int, now: datetime | None = None) -> str:
    """The id of the session that all runs of a server share, so that they find its Python workers warm.

    Spark starts a Python daemon for each session (`SPARK_JOB_ARTIFACT_UUID` is part of the key of
    `PythonWorkerFactory`) and keeps it when the session ends. So runs do not end their session; a week later a new
    one starts, and the old one ends by the server's timeout.

    Args:
        version: version of the code that the workers have loaded: an upgrade starts a new session.
        generation: number of this week's sessions that have ended; the server does not accept a closed id again.
    """
    year, week, _ = (now or datetime.now(UTC)).isocalendar()
    return str(uuid.uuid5(_NAMES, f"{version} {year}-{week} {generation}"))


def _malformed_error() -> ConfigurationError:
    return ConfigurationError(
        "the address of the Spark Connect server is not of the form sc://host:port/;name=value, or its session_id "
        "is not a UUID.",
        action="Examples: sc://spark.example:15002 or sc://spark.example:15002/;use_ssl=true;token=...",
    )
