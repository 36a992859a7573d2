"""OAUTHBEARER on a real broker, with tokens of a real token endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import Awaitable

import pytest

from mirror_lib.cluster.protocol.error_codes import ErrorCode
from mirror_lib.cluster.raw.client import ProducedPartition, RawClient, open_clients
from mirror_lib.cluster.raw.connection import DataConnection
from mirror_lib.errors import AuthenticationError, BrokerUnreachableError
from mirror_lib.topology.names import TopicPartition
from tests.support.kafka import create_topic
from tests.support.records.record_batches import SourceRecord, ready
from tests.support.security.logins import LET_IN, asked, forget_token_of, records_client, try_both
from tests.support.security.secure_cluster import SERVICE, SecureCluster
from tests.support.security.token_endpoint import TokenEndpoint


@pytest.fixture(autouse=True)
def as_new(guarded: SecureCluster, tokens: TokenEndpoint) -> None:
    """What a test before this one has changed or left in memory is gone."""
    forget_token_of(guarded.with_token())
    tokens.behaviour.lifetime_seconds, tokens.behaviour.answer = 600.0, None
    tokens.asked.clear()


@pytest.mark.parametrize("tls", [True, False], ids=["SASL_SSL", "SASL_PLAINTEXT"])
def test_given_client_credentials_then_both_clients_are_let_in(
    guarded: SecureCluster, tokens: TokenEndpoint, tls: bool
) -> None:
    assert try_both(guarded.with_token(tls=tls)) == LET_IN


def test_given_what_librdkafka_cannot_ask_for_by_itself_then_both_clients_share_one_token(
    guarded: SecureCluster, tokens: TokenEndpoint
) -> None:
    connection = guarded.with_token(sasl_oauthbearer_header_urlencode="true")
    forget_token_of(connection)
    assert try_both(connection) == LET_IN
    assert len(tokens.asked) == 1


@pytest.mark.parametrize(
    "claims",
    [{"lifetime_seconds": -300}, {"aud": "elsewhere"}, {"iss": "https://stranger.test"}],
    ids=["expired", "for somebody else", "from somebody else"],
)
def test_given_a_token_that_the_broker_does_not_believe_then_both_clients_say_so(
    guarded: SecureCluster, tokens: TokenEndpoint, claims: dict[str, object]
) -> None:
    tokens.behaviour.answer = {"access_token": tokens.token(SERVICE, **claims)}  # type: ignore[arg-type]
    for tried in try_both(guarded.with_token()):
        assert tried.error == "AuthenticationError"
        assert tried.said.startswith("cluster secure: ")
    forget_token_of(guarded.with_token())


def test_given_a_token_that_was_refused_then_the_next_connection_asks_for_another(
    guarded: SecureCluster, tokens: TokenEndpoint
) -> None:
    tokens.behaviour.answer = {"access_token": tokens.token(SERVICE, aud="elsewhere")}
    with pytest.raises(AuthenticationError):
        records_client(guarded.with_token())

    tokens.behaviour.answer = None

    assert records_client(guarded.with_token()) == [1]


def test_given_a_session_that_ends_then_small_requests_continue_with_a_new_token(
    guarded: SecureCluster, tokens: TokenEndpoint
) -> None:
    """The broker ends connections whose session is over (KIP-368)."""
    tokens.behaviour.lifetime_seconds = 4.0

    async def use() -> None:
        async with open_clients(guarded.with_token()) as (client,):
            while len(tokens.asked) < 2:
                # A process that stands still for long may miss the end.
                with contextlib.suppress(BrokerUnreachableError):
                    await client.refresh_leaders([])
                await asyncio.sleep(0.1)
            await client.refresh_leaders([])
        await asyncio.sleep(0.1)

    asyncio.run(use())


@pytest.mark.parametrize(("mechanism", "times"), [("PLAIN", 1), ("SCRAM-SHA-512", 1), ("OAUTHBEARER", 2)])
def test_given_a_session_that_ends_in_a_long_copy_then_its_connection_logs_in_again_between_two_batches(
    guarded: SecureCluster, tokens: TokenEndpoint, mechanism: str, times: int, topic_name: str
) -> None:
    # Given a broker whose sessions last three seconds, and a producer with several batches in flight,
    tokens.behaviour.lifetime_seconds = 4.0
    connection = guarded.with_token() if mechanism == "OAUTHBEARER" else guarded.with_password(mechanism)
    create_topic(guarded.cluster, topic_name)

    async def write(client: RawClient) -> None:
        await client.refresh_leaders([topic_name])
        node = client.leader(TopicPartition(topic_name, 0))
        assert node is not None
        identity = await client.producers.new_producer_id(deadline=time.monotonic() + 30)
        await client.connect(node)
        over = client.connection(node)
        assert isinstance(over, DataConnection)
        sequences = itertools.count()

        def send() -> Awaitable[list[ProducedPartition]]:
            sequence = next(sequences)
            payload = ready(
                SourceRecord(sequence), producer_id=identity.producer_id, epoch=identity.epoch, sequence=sequence
            )
            return client.produce(node, [(topic_name, 0, payload)], timeout_ms=10_000, connection=over)

        # when the login was renewed,
        renewals, offsets = 0, []
        while renewals < times:
            waiting = [send() for _ in range(5)]
            renewals += over.is_renewing
            for (answer,) in await asyncio.gather(*waiting):
                assert answer.error_code == ErrorCode.NONE
                offsets.append(answer.base_offset)
        # then all batches were appended in their order, over one connection.
        assert offsets == list(range(offsets[0], offsets[0] + len(offsets)))
        assert client.connection(node) is over

    async def until_written(client: RawClient) -> None:
        while True:
            # A process that stands still for long may miss the end of a session; the next connection is tried then.
            with contextlib.suppress(BrokerUnreachableError):
                return await write(client)

    asked(connection, until_written)


def test_given_a_login_that_is_refused_when_it_is_renewed_then_the_next_request_says_so(
    guarded: SecureCluster, topic_name: str
) -> None:
    user, password = f"user-{topic_name}", "first"
    guarded.let_in(user, password)

    async def use(client: RawClient) -> None:
        (node,) = client.brokers()
        await client.connect(node)
        guarded.let_in(user, "second")

        async def until_refused() -> None:
            while True:
                # The connection ends; the next one is refused by name.
                with contextlib.suppress(BrokerUnreachableError):
                    await client.log_sizes(["none"])
                await asyncio.sleep(0.05)

        with pytest.raises(AuthenticationError, match="cluster rejected the credentials"):
            await until_refused()

    asked(guarded.with_password("SCRAM-SHA-512", user, password), use)
