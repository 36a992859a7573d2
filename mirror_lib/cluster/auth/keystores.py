"""Reads Java key stores and PEM into PEM text, which both Kafka clients accept from memory.

The container type is detected from the content, as Java does for JKS and PKCS12 (`keystore.type.compat`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

from mirror_lib.cluster.auth import jks
from mirror_lib.cluster.auth.jks import JksError, JksStore, parse_jks, recover_key

#: Exceptions of the library for data that is damaged or has an unknown format.
_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm, x509.InvalidVersion)
_JCEKS_MAGIC = b"\xce\xce\xce\xce"

_PEM_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PEM_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----.*?-----END (?:[A-Z]+ )*PRIVATE KEY-----", re.DOTALL)

CONVERT_HINT = (
    "Convert it: keytool -importkeystore -srckeystore OLD -srcstoretype JCEKS -destkeystore NEW.p12 "
    "-deststoretype PKCS12."
)


class KeystoreError(ValueError):
    """A key or trust store cannot be used; the message says why, and never contains a password."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate with its chain (leaf first) and its unencrypted PKCS8 key, as PEM."""

    certificate_chain: str
    key: str = field(repr=False)


def read_truststore(content: bytes, password: str | None) -> str:
    """All trusted certificates of a JKS, PKCS12 or PEM store, as PEM.

    Raises:
        KeystoreError: the password is wrong, the container unknown or damaged, or there are no certificates.
    """
    if content.startswith(jks.MAGIC):
        jks_store = _jks(content, password)
        # As in Java: of a key entry, the key's own certificate is trusted.
        leaves = (key.chain[0] for key in jks_store.keys if key.chain)
        certificates = [_pem_of_der(der) for der in (*jks_store.trusted, *leaves)]
    elif _is_pem(content):
        certificates = pem_certificates(content.decode("utf-8", "replace"))
    else:
        store = _load_pkcs12(content, password)
        held = [store.cert] if store.cert else []
        certificates = [_as_pem(entry.certificate) for entry in (*held, *store.additional_certs)]
    if not certificates:
        raise KeystoreError("it contains no certificates")
    return "".join(certificates)


def read_keystore(content: bytes, store_password: str | None, key_password: str | None) -> KeyPair:
    """The client's key and certificate chain from a JKS, PKCS12 or PEM store; the first key if there are several.

    Args:
        key_password: of the key inside; None uses the store's (as Java, whose PKCS12 stores have only one password).

    Raises:
        KeystoreError: the password is wrong, the container unknown or damaged, or there is no key.
    """
    if content.startswith(jks.MAGIC):
        return _jks_pair(content, store_password, key_password)
    if _is_pem(content):
        text = content.decode("utf-8", "replace")
        return read_pem_key(text, text, key_password or store_password)
    store = _load_pkcs12(content, store_password)
    if store.key is None or store.cert is None:
        raise KeystoreError("it contains no private key with a certificate")
    chain = _chain(store.cert.certificate, [entry.certificate for entry in store.additional_certs])
    return KeyPair("".join(_as_pem(certificate) for certificate in chain), _key_pem(store.key))


def read_pem_key(key: str, certificate_chain: str, password: str | None) -> KeyPair:
    """A key and a chain from PEM text (`ssl.keystore.key`, `ssl.keystore.certificate.chain`).

    Raises:
        KeystoreError: there is no key or no certificate, or the password is wrong.
    """
    found = _PEM_KEY.search(key)
    if found is None:
        raise KeystoreError("it contains no PEM private key")
    certificates = pem_certificates(certificate_chain)
    if not certificates:
        raise KeystoreError("it contains no PEM certificate")
    pem = found.group().encode()
    encrypted = b"ENCRYPTED" in pem
    if encrypted and password is None:
        raise KeystoreError("the private key is encrypted and ssl.key.password is not set")
    try:
        loaded = serialization.load_pem_private_key(pem, (password or "").encode() if encrypted else None)
    except _UNREADABLE as error:
        raise KeystoreError("the private key cannot be read: wrong ssl.key.password, or damaged") from error
    return KeyPair("".join(certificates), _key_pem(loaded))


def pem_certificates(text: str) -> list[str]:
    """The certificates in a PEM text, each ending with a line break.

    Raises:
        KeystoreError: one of them is damaged.
    """
    try:
        # Rewritten: Java also accepts spaces as line breaks, which OpenSSL does not.
        return [_as_pem(x509.load_pem_x509_certificate(found.encode())) for found in _PEM_CERTIFICATE.findall(text)]
    except _UNREADABLE as error:
        raise KeystoreError("a PEM certificate is damaged") from error


def _is_pem(content: bytes) -> bool:
    return b"-----BEGIN " in content


def _load_pkcs12(content: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    if content.startswith(_JCEKS_MAGIC):
        raise KeystoreError("JCEKS stores are not supported. " + CONVERT_HINT)
    if not content.startswith(b"\x30"):
        raise KeystoreError("it is not a PKCS12, JKS or PEM file")
    try:
        return pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except _UNREADABLE as error:
        raise KeystoreError("it cannot be opened: wrong password, or damaged") from error


def _chain(leaf: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """Leaf first, each followed by its issuer: PKCS12 does not store the order."""
    by_subject = {certificate.subject: certificate for certificate in others}
    chain = [leaf]
    while (issuer := by_subject.pop(chain[-1].issuer, None)) is not None:
        chain.append(issuer)
    return chain


def _as_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: object) -> str:
    if not hasattr(key, "private_bytes"):
        raise KeystoreError("the private key has a type that cannot be exported")
    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem.decode()


def _jks(content: bytes, password: str | None) -> JksStore:
    try:
        return parse_jks(content, password)
    except JksError as error:
        raise KeystoreError(str(error)) from error


def _jks_pair(content: bytes, store_password: str | None, key_password: str | None) -> KeyPair:
    """The first key that the password decrypts: with several, Java lets the broker choose."""
    keys = _jks(content, store_password).keys
    if not keys:
        raise KeystoreError("it contains no private key with a certificate")
    password = key_password if key_password is not None else store_password
    if password is None:
        raise KeystoreError("its private key needs ssl.key.password, which is not set")
    refusal: JksError | None = None
    for key in keys:
        try:
            plain = serialization.load_der_private_key(recover_key(key, password), None)
            return KeyPair("".join(map(_pem_of_der, key.chain)), _key_pem(plain))
        except JksError as error:
            refusal = refusal or error
        except _UNREADABLE as error:
            raise KeystoreError(f"the private key {key.alias} is damaged, or has an unknown type") from error
    raise KeystoreError(str(refusal)) from refusal


def _pem_of_der(der: bytes) -> str:
    try:
        return _as_pem(x509.load_der_x509_certificate(der))
    except _UNREADABLE as error:
        raise KeystoreError("a certificate in it is damaged") from error
