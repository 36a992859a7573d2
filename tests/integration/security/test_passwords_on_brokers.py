"""Both clients with passwords and client certificates on a real broker; refusals are named and quick."""

from __future__ import annotations

import pickle

import pytest

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.cluster.raw.client import RawClient
from mirror_lib.errors import AuthenticationError, BrokerUnreachableError
from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from tests.support.security.logins import admin_client, asked, records_client
from tests.support.security.secure_cluster import SecureCluster

MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


@pytest.mark.parametrize("way", [*MECHANISMS, "client certificate"])
def test_given_a_password_over_tls_or_a_certificate_with_an_intermediate_then_both_clients_are_let_in(
    guarded: SecureCluster, way: str
) -> None:
    given = guarded.with_password(way) if way in MECHANISMS else guarded.with_certificate(guarded.client)
    # As it travels to an executor.
    connection = pickle.loads(pickle.dumps(given))

    with ClusterAdmin(connection) as admin:
        assert admin.cluster_id() == guarded.cluster.cluster_id
    assert records_client(connection) == [1]


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_given_a_wrong_password_then_both_clients_say_so_quickly_without_repeating_it(
    guarded: SecureCluster, mechanism: str
) -> None:
    for client in (records_client, admin_client):
        with pytest.raises(AuthenticationError) as refusal:
            client(guarded.with_password(mechanism, password="wr0ng"))
        assert "wr0ng" not in str(refusal.value)
        assert "cluster secure" in str(refusal.value)


def test_given_brokers_of_which_one_refuses_us_and_others_are_away_then_the_refusal_is_told(
    guarded: SecureCluster,
) -> None:
    away = [f"{LOOPBACK}:{port}" for port in free_ports(3)]
    servers = ",".join([*away, guarded.cluster.bootstrap_servers_of("PASSWORD")])

    with pytest.raises(AuthenticationError, match="credentials"):
        records_client(guarded.with_password(password="wr0ng", bootstrap_servers=servers))


def test_given_a_password_that_is_changed_under_us_then_the_next_question_tells_so(guarded: SecureCluster) -> None:
    guarded.let_in("eve", "first")

    async def ask_again(client: RawClient) -> None:
        guarded.let_in("eve", "second")
        await client.refresh_leaders([])

    with pytest.raises(AuthenticationError, match="credentials"):
        asked(guarded.with_password("SCRAM-SHA-256", "eve", "first"), ask_again)


def test_given_no_client_certificate_where_one_is_required_then_we_are_refused(guarded: SecureCluster) -> None:
    anonymous = guarded.connection("MUTUAL", security_protocol="SSL")

    with (
        ClusterAdmin(anonymous, timeout_seconds=4) as admin,
        pytest.raises((AuthenticationError, BrokerUnreachableError)),
    ):
        admin.list_topics()


def test_given_plaintext_on_a_tls_listener_then_it_is_told(guarded: SecureCluster) -> None:
    wrong = guarded.connection("PASSWORD", security_protocol="PLAINTEXT")

    with (
        ClusterAdmin(wrong, timeout_seconds=2) as admin,
        pytest.raises(BrokerUnreachableError, match=r"security\.protocol"),
    ):
        admin.list_topics()
