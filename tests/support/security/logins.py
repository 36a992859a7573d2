"""Both clients of a connection, tried: what they see, or how they are refused."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.client import RawClient, open_clients
from mirror_lib.errors import MirrorError
from mirror_lib.features.oauth.login import OAuthLogin
from mirror_lib.features.oauth.oauth_tokens import forget_token
from tests.support.security.kerberos_client import with_kerberos

_PROJECT = Path(__file__).resolve().parents[3]
_SECONDS = 120.0

_Answer = TypeVar("_Answer")


@dataclass(frozen=True, slots=True)
class Tried:
    """What one client saw: the brokers' ids, or an error."""

    brokers: tuple[int, ...] = ()
    #: The name of the error's class.
    error: str | None = None
    said: str = ""


#: Of both clients, by a cluster with one broker.
LET_IN = (Tried((1,)), Tried((1,)))


def asked(connection: Connection, question: Callable[[RawClient], Awaitable[_Answer]]) -> _Answer:
    """Ask the client for records something, inside an event loop.

    Raises:
        MirrorError: it was refused.
    """

    async def ask() -> _Answer:
        try:
            async with open_clients(connection) as (client,):
                return await question(client)
        finally:
            # aiokafka does not wait for the end of TLS's farewell, and Python warns of a loop closed before it.
            await asyncio.sleep(0.1)

    return asyncio.run(ask())


def records_client(connection: Connection) -> list[int]:
    """The ids of the brokers, as the client for records sees them.

    Raises:
        MirrorError: it was refused.
    """

    async def brokers(client: RawClient) -> list[int]:
        return client.brokers()

    return asked(connection, brokers)


def admin_client(connection: Connection) -> list[int]:
    """The same by the client for administration.

    Raises:
        MirrorError: it was refused.
    """
    with ClusterAdmin(connection) as admin:
        admin.list_topics()
    return [1]


def forget_token_of(connection: Connection) -> None:
    """The next client of the connection asks for a token of its own."""
    assert isinstance(connection.security.sasl, OAuthLogin)
    forget_token(connection.security.sasl.source)


def try_both(connection: Connection) -> tuple[Tried, Tried]:
    """The client for records, then the one for administration; in this process, without the files it was made from."""
    there = pickle.loads(pickle.dumps(connection))
    return _tried(lambda: records_client(there)), _tried(lambda: admin_client(there))


def _tried(ask: object) -> Tried:
    assert callable(ask)
    try:
        return Tried(tuple(ask()))
    except MirrorError as error:
        return Tried(error=type(error).__name__, said=str(error))


def try_with_kerberos(
    connections: Sequence[Connection], site: Path, environment: Mapping[str, str]
) -> list[tuple[Tried, Tried]]:
    """Each connection by both clients, in one process that has clients with Kerberos.

    Args:
        site: with the clients.
        environment: says where the realm is.
    """
    told = json.dumps([base64.b64encode(pickle.dumps(each)).decode() for each in connections])
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.security.logins"],
        cwd=_PROJECT,
        env={**with_kerberos(os.environ, site), **environment},
        input=told,
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pairs = json.loads(done.stdout.splitlines()[-1])
    return [(_from_plain(**records), _from_plain(**admin)) for records, admin in pairs]


def _from_plain(brokers: list[int], error: str | None, said: str) -> Tried:
    return Tried(tuple(brokers), error, said)


def _main() -> None:
    connections = [pickle.loads(base64.b64decode(text)) for text in json.load(sys.stdin)]
    print(json.dumps([[asdict(each) for each in try_both(connection)] for connection in connections]))


if __name__ == "__main__":
    _main()
