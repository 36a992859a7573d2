"""Logs in with the project's own handshake before librdkafka does, where a broker could misuse a login.

librdkafka 2 computes up to 1,000,000 iterations of SCRAM, but accepts 1 (`rdkafka_sasl_scram.c`): the proof that it
then sends lets an impostor guess the password offline. It sends tokens to all brokers that another broker names: those
of the machine's identity in a cloud are for the cloud's hosts only.
"""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import ThreadPoolExecutor

from aiokafka.protocol.metadata import MetadataRequest

from mirror_lib.cluster.auth.sasl import HostRule, PreparedLogin
from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.raw.handshake import SILENCE, Handshake, shake_hands
from mirror_lib.errors import BrokerUnreachableError, Where

_PAUSE_SECONDS = 0.2
_CLOSING_SECONDS = 1.0
#: As long as an admin client waits for its first response.
_LONGEST_SECONDS = 10.0
#: Another login within this time is not needed: clients are created together.
_VALID_SECONDS = 60.0
#: When each login last passed, by addresses, protocol and login.
_passed: dict[tuple[object, ...], float] = {}


def log_in_first(connection: Connection) -> None:
    """Log in to one of the bootstrap servers with SCRAM or with a token of a cloud; do nothing for other logins.

    Raises:
        MirrorError: there is no token.
        AuthenticationError: the broker rejects the login, or asks for iterations outside the limits.
        ConfigurationError: the broker names a host that may not get the token.
        BrokerUnreachableError: no server responds.
    """
    login: object = connection.security.sasl
    prepared = login if isinstance(login, PreparedLogin) else None
    hosts = None if prepared is None else prepared.hosts
    if not getattr(login, "mechanism", "").startswith("SCRAM-") and hosts is None:
        return
    key = connection.bootstrap_servers, connection.security.protocol, login
    if time.monotonic() - _passed.get(key, -_VALID_SECONDS) < _VALID_SECONDS:
        return
    if prepared is not None:
        prepared.prepare(Where(cluster=connection.cluster))
    # The caller may be a coroutine.
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="log-in-first") as pool:
        pool.submit(asyncio.run, _log_in(connection, hosts)).result()
    _passed[key] = time.monotonic()


async def _log_in(connection: Connection, hosts: HostRule | None) -> None:
    deadline = time.monotonic() + min(_LONGEST_SECONDS, connection.request_timeout_ms / 1000)
    while True:
        for server in connection.bootstrap_servers:
            host, _, port = server.rpartition(":")
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), _PAUSE_SECONDS)):
                    made = await shake_hands(connection, host.strip("[]"), int(port))
                    try:
                        if hosts is not None:
                            await _check_brokers(made, hosts, Where(cluster=connection.cluster))
                    finally:
                        # Over TLS it takes some turns of the loop, which ends here.
                        await asyncio.wait([made.close()], timeout=_CLOSING_SECONDS)
            except SILENCE as error:
                failure = error
                continue
            return
        if time.monotonic() > deadline:
            raise BrokerUnreachableError(
                f"no response from {', '.join(connection.bootstrap_servers)}: {failure or type(failure).__name__}.",
                where=Where(cluster=connection.cluster),
                action="Check that the brokers run, and bootstrap.servers and security.protocol.",
            ) from failure
        await asyncio.sleep(_PAUSE_SECONDS)


async def _check_brokers(connection: Handshake, hosts: HostRule, where: Where) -> None:
    found = await connection.send(MetadataRequest([], allow_auto_topic_creation=False))
    hosts.refuse_others((host for _, host, *_ in found.brokers), "", where)
