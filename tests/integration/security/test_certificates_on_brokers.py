"""TLS with the stores that Java's own keytool makes, on a real broker."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from mirror_lib.cluster.auth.keystores import KeystoreError, read_keystore
from mirror_lib.errors import AuthenticationError
from mirror_lib.spark.java import find_java
from tests.support.security.logins import LET_IN, admin_client, records_client, try_both
from tests.support.security.pki import PASSWORD, Certified
from tests.support.security.secure_cluster import SecureCluster

KEY_PASSWORD = "of-the-key"


def keytool(*arguments: str) -> None:
    subprocess.run([str(find_java().with_name("keytool")), *arguments], check=True, capture_output=True)


def generated(store: Path, alias: str, kind: str, algorithm: str, key_password: str) -> None:
    passwords = ("-storepass", PASSWORD, "-keypass", key_password)
    named = ("-alias", alias, "-dname", f"CN={alias}", "-keyalg", algorithm)
    keytool("-genkeypair", "-keystore", str(store), "-storetype", kind, *named, *passwords)


@pytest.mark.parametrize("algorithm", ["RSA", "EC", "Ed25519"])
@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_given_any_key_that_keytool_makes_then_it_belongs_to_its_certificate(
    tmp_path: Path, kind: str, algorithm: str
) -> None:
    store = tmp_path / "store"
    key_password = KEY_PASSWORD if kind == "JKS" else PASSWORD
    generated(store, "one", kind, algorithm, key_password)

    pair = read_keystore(store.read_bytes(), PASSWORD, key_password)

    (certificate,) = x509.load_pem_x509_certificates(pair.certificate_chain.encode())
    key = serialization.load_pem_private_key(pair.key.encode(), None)
    assert certificate.public_key() == key.public_key()


@pytest.mark.parametrize("kind", ["JKS", "PKCS12"])
def test_given_several_keys_then_the_first_that_the_password_opens_is_shown(tmp_path: Path, kind: str) -> None:
    store = tmp_path / "store"
    for alias in ("one", "two"):
        generated(store, alias, kind, "EC", f"{KEY_PASSWORD}-{alias}" if kind == "JKS" else PASSWORD)

    def shown(key_password: str) -> str:
        pair = read_keystore(store.read_bytes(), PASSWORD, key_password)
        return x509.load_pem_x509_certificate(pair.certificate_chain.encode()).subject.rfc4514_string()

    if kind == "JKS":
        assert {shown(f"{KEY_PASSWORD}-{alias}") for alias in ("one", "two")} == {"CN=one", "CN=two"}
        with pytest.raises(KeystoreError, match=r"wrong ssl\.key\.password"):
            shown(PASSWORD)
    else:
        assert shown(PASSWORD) in ("CN=one", "CN=two")


def test_given_an_untrusted_authority_then_both_clients_say_so(guarded: SecureCluster) -> None:
    stranger = guarded.with_password(ssl_truststore_certificates=Certified.root("Stranger").pem)
    for client in (records_client, admin_client):
        with pytest.raises(AuthenticationError, match=r"cluster secure: .*ssl\.truststore"):
            client(stranger)


def test_given_a_certificate_for_another_host_then_both_clients_say_so_unless_the_check_is_off(
    guarded: SecureCluster,
) -> None:
    port = guarded.cluster.bootstrap_servers_of("PASSWORD").rpartition(":")[2]
    elsewhere = {"bootstrap_servers": f"localhost:{port}"}
    for client in (records_client, admin_client):
        with pytest.raises(AuthenticationError, match=r"ssl\.endpoint\.identification\.algorithm"):
            client(guarded.with_password(**elsewhere))
    unchecked = guarded.with_password(ssl_endpoint_identification_algorithm="", **elsewhere)
    assert try_both(unchecked) == LET_IN


@pytest.mark.parametrize(
    "settings",
    [
        {"ssl_enabled_protocols": "TLSv1.3"},
        {"ssl_enabled_protocols": "TLSv1.2"},
        {"ssl_enabled_protocols": "TLSv1.2", "ssl_cipher_suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"},
    ],
    ids=["only 1.3", "only 1.2", "one suite"],
)
def test_given_versions_and_suites_that_the_broker_has_then_both_clients_are_let_in(
    guarded: SecureCluster, settings: Sequence[str]
) -> None:
    assert try_both(guarded.with_password(**dict(settings))) == LET_IN


def test_given_a_suite_that_the_broker_cannot_use_then_records_are_not_sent_in_another(guarded: SecureCluster) -> None:
    """The broker's certificate holds a key for ECDSA."""
    suite = {"ssl_enabled_protocols": "TLSv1.2", "ssl_cipher_suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"}
    records, _ = try_both(guarded.with_password(**suite))
    assert records.error == "AuthenticationError"
    assert "closed the TLS handshake: SSLV3_ALERT_HANDSHAKE_FAILURE" in records.said
