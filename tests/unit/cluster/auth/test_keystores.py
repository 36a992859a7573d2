"""Java's key stores: files made by keytool 17, and PKCS12 and PEM made here.

A client's private key lies on disk for a moment, since Python reads keys from files only: for its owner alone.
"""

from __future__ import annotations

import hashlib
import ssl
import stat
import tempfile
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cluster.auth.keystores import KeyPair, KeystoreError, read_keystore, read_pem_key, read_truststore
from mirror_lib.cluster.auth.tls import Tls
from tests.support.security.pki import PASSWORD, Certified

DATA = Path(__file__).parent / "data"
#: keytool -importcert -alias ca -file ca.pem -storetype JKS -storepass changeit
JKS_TRUSTSTORE = (DATA / "truststore.jks").read_bytes()
#: The same certificate: keytool -importcert ... -storetype PKCS12
PKCS12_TRUSTSTORE = (DATA / "truststore.p12").read_bytes()
#: Its fingerprint, by openssl x509 -fingerprint -sha256
FINGERPRINT = "bd0bb57db7960757becabac7215dce3ac80df02f7b7b5e0c00165d09f32038bf"
#: keytool -genkeypair -alias me -storetype JKS -storepass changeit -keypass changeit
JKS_KEYSTORE = (DATA / "keystore.jks").read_bytes()

ROOT = Certified.root("Root")
MIDDLE = ROOT.issue("Middle", authority=True)
CLIENT = MIDDLE.issue("client")


def fingerprints(pem: str) -> list[str]:
    """SHA-256 of each certificate in a PEM text."""
    found = x509.load_pem_x509_certificates(pem.encode())
    return [hashlib.sha256(certificate.public_bytes(serialization.Encoding.DER)).hexdigest() for certificate in found]


def same_key(pem: str, holder: Certified) -> bool:
    """Whether the PEM text holds this key, unencrypted."""
    loaded = serialization.load_pem_private_key(pem.encode(), None)
    assert hasattr(loaded, "private_numbers")
    return bool(loaded.private_numbers() == holder.key.private_numbers())


def test_given_a_truststore_then_all_its_certificates_are_trusted() -> None:
    commented = f"Bag Attributes\n  friendlyName: x\n{ROOT.pem}# and\n{MIDDLE.pem}"
    for case, store, password, trusted in (
        ("JKS", JKS_TRUSTSTORE, "changeit", [FINGERPRINT]),
        ("JKS, unchecked as Java reads it without a password", JKS_TRUSTSTORE, None, [FINGERPRINT]),
        ("PKCS12 of keytool", PKCS12_TRUSTSTORE, "changeit", [FINGERPRINT]),
        ("PKCS12", MIDDLE.truststore(), PASSWORD, fingerprints(MIDDLE.pem)),
        ("PEM, comments between certificates", commented.encode(), None, fingerprints(ROOT.pem + MIDDLE.pem)),
    ):
        assert fingerprints(read_truststore(store, password)) == trusted, case


def test_given_a_wrong_password_then_the_error_says_so_without_repeating_it(subtests: pytest.Subtests) -> None:
    for store in (JKS_TRUSTSTORE, PKCS12_TRUSTSTORE, CLIENT.keystore()):
        with subtests.test(store=store):
            with pytest.raises(KeystoreError, match="wrong password") as refusal:
                read_truststore(store, "n0t-it")
            assert "n0t-it" not in str(refusal.value)


def test_given_pem_on_one_line_as_java_allows_then_it_is_written_anew_with_line_breaks() -> None:
    """Kafka's PemStore regex takes any white space."""
    flat = ROOT.pem.replace("\n", " ")
    assert read_truststore(flat.encode(), None) == ROOT.pem


def test_given_an_unusable_truststore_then_the_error_says_why(subtests: pytest.Subtests) -> None:
    for content, message in (
        (b"", "not a PKCS12, JKS or PEM file"),
        (b"hello", "not a PKCS12, JKS or PEM file"),
        (b"\xce\xce\xce\xce....", "JCEKS.*keytool -importkeystore"),
        (b"0\x82\x01\x00garbage", "damaged"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "PEM certificate is damaged"),
        (CLIENT.key_pem().encode(), "no certificates"),
    ):
        with subtests.test(content=content), pytest.raises(KeystoreError, match=message):
            read_truststore(content, None)


@given(st.integers(5, len(JKS_TRUSTSTORE) - 1), st.integers(5, len(JKS_KEYSTORE) - 1))
def test_given_a_truncated_jks_store_then_it_is_refused(of_trust: int, of_keys: int) -> None:
    with pytest.raises(KeystoreError):
        read_truststore(JKS_TRUSTSTORE[:of_trust], "changeit")
    with pytest.raises(KeystoreError):
        read_keystore(JKS_KEYSTORE[:of_keys], None, "changeit")


def test_given_a_pkcs12_keystore_then_the_chain_is_leaf_first_and_the_key_unencrypted() -> None:
    pair = read_keystore(CLIENT.keystore(), PASSWORD, None)
    assert fingerprints(pair.certificate_chain) == fingerprints(CLIENT.pem + MIDDLE.pem)
    assert same_key(pair.key, CLIENT)


def test_given_a_pem_keystore_then_key_and_chain_are_found(subtests: pytest.Subtests) -> None:
    for password in (None, "s3cret"):
        with subtests.test(password=password):
            content = CLIENT.key_pem(password) + CLIENT.chain_pem
            pair = read_keystore(content.encode(), None, password)
            assert fingerprints(pair.certificate_chain) == fingerprints(CLIENT.chain_pem)
            assert same_key(pair.key, CLIENT)


def test_given_a_jks_keystore_of_keytool_then_key_and_certificate_belong_together() -> None:
    pair = read_keystore(JKS_KEYSTORE, "changeit", None)

    (certificate,) = x509.load_pem_x509_certificates(pair.certificate_chain.encode())
    key = serialization.load_pem_private_key(pair.key.encode(), None)
    assert certificate.subject.rfc4514_string() == "CN=me"
    assert certificate.public_key() == key.public_key()


def test_given_a_jks_keystore_as_truststore_then_the_keys_own_certificate_is_trusted_as_in_java() -> None:
    """Java class `TrustStoreUtil`: of a key entry the first certificate counts."""
    assert read_truststore(JKS_KEYSTORE, "changeit") == read_keystore(JKS_KEYSTORE, "changeit", None).certificate_chain


def test_given_a_wrong_password_of_a_jks_keystore_then_the_error_says_which(subtests: pytest.Subtests) -> None:
    for store_password, key_password, message in (
        ("wr0ng", None, "cannot be opened: wrong password"),
        ("changeit", "wr0ng", "private key me cannot be read: wrong ssl.key.password"),
        (None, None, "ssl.key.password, which is not set"),
    ):
        with subtests.test(store_password=store_password):
            with pytest.raises(KeystoreError, match=message) as refusal:
                read_keystore(JKS_KEYSTORE, store_password, key_password)
            assert "wr0ng" not in str(refusal.value)


@given(st.integers(28, 158), st.integers(1, 255))
def test_given_a_changed_byte_in_the_key_of_a_jks_keystore_then_it_is_refused(place: int, change: int) -> None:
    """The key's size and the key; a store without a password has no digest that would tell."""
    changed = bytearray(JKS_KEYSTORE)
    changed[place] ^= change
    with pytest.raises(KeystoreError):
        read_keystore(bytes(changed), None, "changeit")


def test_given_a_truststore_as_keystore_then_the_error_says_that_there_is_no_key() -> None:
    with pytest.raises(KeystoreError, match="no private key"):
        read_keystore(ROOT.truststore(), PASSWORD, None)


def test_given_an_unusable_pem_key_then_the_error_says_why(subtests: pytest.Subtests) -> None:
    for key, chain, password, message in (
        ("", CLIENT.pem, None, "no PEM private key"),
        (CLIENT.key_pem(), "", None, "no PEM certificate"),
        (CLIENT.key_pem("right"), CLIENT.pem, None, "ssl.key.password is not set"),
        (CLIENT.key_pem("right"), CLIENT.pem, "wr0ng", "wrong ssl.key.password"),
    ):
        with subtests.test(message=message):
            with pytest.raises(KeystoreError, match=message) as refusal:
                read_pem_key(key, chain, password)
            assert "wr0ng" not in str(refusal.value)


def test_given_an_unencrypted_key_with_a_password_then_the_password_does_not_matter() -> None:
    """One ssl.key.password may serve several clients."""
    assert same_key(read_pem_key(CLIENT.key_pem(), CLIENT.pem, "anything").key, CLIENT)


def test_the_key_is_encrypted_readable_by_its_owner_alone_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = Certified.root("Root").issue("client")
    found: list[tuple[int, int, bytes]] = []

    class Looking(ssl.SSLContext):
        def load_cert_chain(self, certfile: Path, *given: object, **more: object) -> None:  # type: ignore[override]
            path = Path(certfile)
            modes = (stat.S_IMODE(each.stat().st_mode) for each in (path, path.parent))
            found.append((*modes, path.read_bytes()))  # type: ignore[arg-type]
            super().load_cert_chain(certfile, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(ssl, "create_default_context", lambda **_: Looking(ssl.PROTOCOL_TLS_CLIENT))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    Tls(client=KeyPair(client.chain_pem, client.key_pem())).context()

    ((mode, folder_mode, content),) = found
    assert (mode, folder_mode) == (0o600, 0o700)
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in content
    assert list(tmp_path.iterdir()) == []
