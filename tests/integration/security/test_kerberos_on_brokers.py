"""GSSAPI on a real broker, with tickets of a real KDC. The clients run in a process that has clients with Kerberos."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mirror_lib.features.kerberos.tickets import Tickets
from tests.support.security.kdc import Realm
from tests.support.security.logins import LET_IN, Tried, try_with_kerberos
from tests.support.security.secure_cluster import KERBEROS_SERVICE, SERVICE, SecureCluster

#: The client is built once on a machine.
pytestmark = pytest.mark.timeout(1_800)


@pytest.fixture
def keytab(realm: Realm) -> Path:
    return realm.keytab(SERVICE)


def test_given_a_ticket_cache_then_both_clients_are_let_in_without_the_file(
    guarded: SecureCluster, realm: Realm, kerberos_client: Path
) -> None:
    cache = realm.ticket_cache(SERVICE)
    connection = guarded.with_login(
        "GSSAPI", f'useTicketCache=true ticketCache="{cache}"', sasl_kerberos_service_name=KERBEROS_SERVICE
    )
    cache.unlink()

    assert try_with_kerberos([connection], kerberos_client, realm.environment) == [LET_IN]


def test_given_the_process_s_own_ticket_cache_then_both_clients_are_let_in(
    guarded: SecureCluster, realm: Realm, kerberos_client: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = f"FILE:{realm.ticket_cache(SERVICE)}"
    monkeypatch.setenv("KRB5CCNAME", "FILE:/nowhere")
    connection = guarded.with_login("GSSAPI", "useTicketCache=true", sasl_kerberos_service_name=KERBEROS_SERVICE)

    assert try_with_kerberos([connection], kerberos_client, {**realm.environment, "KRB5CCNAME": cache}) == [LET_IN]


def test_the_ticket_cache_that_krb5_conf_names_is_the_processs_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "krb5.conf").write_text("[libdefaults]\n    default_ccache_name = FILE:/shared/%{uid}\n")
    monkeypatch.setenv("KRB5_CONFIG", str(tmp_path / "krb5.conf"))
    monkeypatch.delenv("KRB5CCNAME", raising=False)

    assert Tickets().process_cache == f"FILE:/shared/{os.getuid()}"


def test_given_refusals_then_both_clients_say_why(
    guarded: SecureCluster, realm: Realm, kerberos_client: Path, keytab: Path
) -> None:
    stranger = realm.keytab("stranger")
    wrong_service = guarded.with_ticket(keytab, sasl_kerberos_service_name="elsewhere")
    wrong_keytab = guarded.with_ticket(stranger)

    by_service, by_keytab = try_with_kerberos([wrong_service, wrong_keytab], kerberos_client, realm.environment)

    for tried in by_service:
        assert tried.error == "AuthenticationError"
        assert "elsewhere/127.0.0.1@MIRROR.TEST not found in Kerberos database" in tried.said
    for tried in by_keytab:
        assert tried.error == "AuthenticationError"
        assert tried.said.startswith("cluster secure: the keytab has no key for mirror@MIRROR.TEST.")


def test_given_a_principal_that_the_realm_has_forgotten_then_both_clients_say_so(
    guarded: SecureCluster, realm: Realm, kerberos_client: Path
) -> None:
    keytab = realm.keytab("leaver")
    realm.forget("leaver")

    (tried,) = try_with_kerberos([guarded.with_ticket(keytab, principal="leaver")], kerberos_client, realm.environment)

    assert [each.error for each in tried] == ["AuthenticationError"] * 2
    assert all("not found in Kerberos database" in each.said for each in tried)


def test_given_a_kdc_that_does_not_answer_then_the_fault_may_pass(
    guarded: SecureCluster, realm: Realm, kerberos_client: Path, keytab: Path, tmp_path: Path
) -> None:
    lost = tmp_path / "krb5.conf"
    port = realm.krb5_conf.read_text().split("kdc = 127.0.0.1:")[1].split()[0]
    lost.write_text(realm.krb5_conf.read_text().replace(f"kdc = 127.0.0.1:{port}", "kdc = 127.0.0.1:1"))

    ((records, admin),) = try_with_kerberos([guarded.with_ticket(keytab)], kerberos_client, {"KRB5_CONFIG": str(lost)})

    assert (records.error, admin.error) == ("TransientError", "TransientError")
    assert records.said.startswith("cluster secure: no response from a KDC to the login of mirror@MIRROR.TEST")


def test_given_two_principals_of_a_realm_then_records_flow_by_both_and_administration_says_what_it_cannot(
    guarded: SecureCluster, realm: Realm, kerberos_client: Path, keytab: Path
) -> None:
    other = guarded.with_ticket(realm.keytab("alice"), principal="alice")

    first, (records, admin) = try_with_kerberos(
        [guarded.with_ticket(keytab), other], kerberos_client, realm.environment
    )

    assert (first, records) == (LET_IN, Tried((1,)))
    assert admin.error == "ConfigurationError"
    assert "alice@MIRROR.TEST and mirror@MIRROR.TEST are both needed" in admin.said
