"""Java key stores and PEM, read into PEM text that both Kafka clients take from memory.

The container is recognised by its content, as Java does for JKS and PKCS12 (`keystore.type.compat`).
"""

from __future__ import annotations

import hashlib
import hmac
import re
import struct
from dataclasses import dataclass, field

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.serialization import pkcs12

_JKS_MAGIC, _JCEKS_MAGIC = b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce"
_JKS_KEY_ENTRY, _JKS_TRUSTED_ENTRY = 1, 2
#: Hashed with every JKS file (Java class `sun.security.provider.JavaKeyStore`).
_JKS_WHITENER = b"Mighty Aphrodite"

_PEM_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_PEM_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----.*?-----END (?:[A-Z]+ )*PRIVATE KEY-----", re.DOTALL)

CONVERT_HINT = (
    "Convert it: keytool -importkeystore -srckeystore OLD.jks -srcstoretype JKS -destkeystore NEW.p12 "
    "-deststoretype PKCS12."
)


class KeystoreError(ValueError):
    """A key or trust store cannot be used; the message says why, and never holds a password."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A client certificate with its chain (leaf first) and its unencrypted PKCS8 key, as PEM."""

    certificate_chain: str
    key: str = field(repr=False)


def read_truststore(content: bytes, password: str | None) -> str:
    """All trusted certificates of a JKS, PKCS12 or PEM store, as PEM.

    Raises:
        KeystoreError: wrong password, unknown container, damaged, or without certificates.
    """
    if content.startswith(_JKS_MAGIC):
        certificates = _jks_certificates(content, password)
    elif _is_pem(content):
        certificates = pem_certificates(content.decode("utf-8", "replace"))
    else:
        store = _load_pkcs12(content, password)
        held = [store.cert] if store.cert else []
        certificates = [_as_pem(entry.certificate) for entry in (*held, *store.additional_certs)]
    if not certificates:
        raise KeystoreError("it holds no certificates")
    return "".join(certificates)


def read_keystore(content: bytes, store_password: str | None, key_password: str | None) -> KeyPair:
    """The client's key and certificate chain from a PKCS12 or PEM store.

    Args:
        key_password: of the key inside; the store's password when None (as Java, whose PKCS12 stores have but one).

    Raises:
        KeystoreError: wrong password, unknown container, damaged, without a key; or JKS, whose key cipher is Sun's own.
    """
    if content.startswith(_JKS_MAGIC):
        raise KeystoreError("private keys in the old JKS format are not supported. " + CONVERT_HINT)
    if _is_pem(content):
        text = content.decode("utf-8", "replace")
        return read_pem_key(text, text, key_password or store_password)
    store = _load_pkcs12(content, store_password)
    if store.key is None or store.cert is None:
        raise KeystoreError("it holds no private key with a certificate")
    chain = _chain(store.cert.certificate, [entry.certificate for entry in store.additional_certs])
    return KeyPair("".join(_as_pem(certificate) for certificate in chain), _key_pem(store.key))


def read_pem_key(key: str, certificate_chain: str, password: str | None) -> KeyPair:
    """A key and a chain given as PEM text (`ssl.keystore.key`, `ssl.keystore.certificate.chain`).

    Raises:
        KeystoreError: no key, no certificate, or a wrong password.
    """
    found = _PEM_KEY.search(key)
    if found is None:
        raise KeystoreError("it holds no PEM private key")
    certificates = pem_certificates(certificate_chain)
    if not certificates:
        raise KeystoreError("it holds no PEM certificate")
    pem = found.group().encode()
    encrypted = b"ENCRYPTED" in pem
    if encrypted and password is None:
        raise KeystoreError("the private key is encrypted and ssl.key.password is not set")
    try:
        loaded = serialization.load_pem_private_key(pem, (password or "").encode() if encrypted else None)
    except (ValueError, TypeError) as error:
        raise KeystoreError("the private key cannot be read: wrong ssl.key.password, or damaged") from error
    return KeyPair("".join(certificates), _key_pem(loaded))


def pem_certificates(text: str) -> list[str]:
    """The certificates in a PEM text, each ending with a line break.

    Raises:
        KeystoreError: one of them is damaged.
    """
    try:
        # Written anew: Java also takes spaces for the line breaks, which OpenSSL does not.
        return [_as_pem(x509.load_pem_x509_certificate(found.encode())) for found in _PEM_CERTIFICATE.findall(text)]
    except ValueError as error:
        raise KeystoreError("a PEM certificate is damaged") from error


def _is_pem(content: bytes) -> bool:
    return b"-----BEGIN " in content


def _load_pkcs12(content: bytes, password: str | None) -> pkcs12.PKCS12KeyAndCertificates:
    if content.startswith(_JCEKS_MAGIC):
        raise KeystoreError("JCEKS stores are not supported. " + CONVERT_HINT.replace("JKS", "JCEKS"))
    if not content.startswith(b"\x30"):
        raise KeystoreError("it is neither PKCS12, nor JKS, nor PEM")
    try:
        return pkcs12.load_pkcs12(content, None if password is None else password.encode())
    except ValueError as error:
        raise KeystoreError("it cannot be opened: wrong password, or damaged") from error


def _chain(leaf: x509.Certificate, others: list[x509.Certificate]) -> list[x509.Certificate]:
    """Leaf first, each followed by its issuer: PKCS12 keeps no order."""
    by_subject = {certificate.subject: certificate for certificate in others}
    chain = [leaf]
    while (issuer := by_subject.pop(chain[-1].issuer, None)) is not None:
        chain.append(issuer)
    return chain


def _as_pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: object) -> str:
    if not hasattr(key, "private_bytes"):
        raise KeystoreError("the private key is of a kind that cannot be exported")
    pem: bytes = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return pem.decode()


class _JksReader:
    """Big-endian fields of a JKS file."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def number(self) -> int:
        (value,) = struct.unpack(">I", self.take(4))
        return int(value)

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.take(2))
        return self.take(size).decode("utf-8", "replace")

    def take(self, size: int) -> bytes:
        piece = self._content[self._position : self._position + size]
        if len(piece) < size:
            raise KeystoreError("the JKS file is cut short")
        self._position += size
        return piece


def _jks_certificates(content: bytes, password: str | None) -> list[str]:
    """The trusted certificates of a JKS store: they stand in it in clear, only a digest depends on the password."""
    if password is not None:
        digest = hashlib.sha1(password.encode("utf-16-be") + _JKS_WHITENER + content[:-20]).digest()
        if not hmac.compare_digest(digest, content[-20:]):
            raise KeystoreError("it cannot be opened: wrong password, or damaged")
    reader = _JksReader(content[:-20])
    reader.take(len(_JKS_MAGIC))
    version = reader.number()
    certificates = []
    for _ in range(reader.number()):
        kind = reader.number()
        reader.text()
        reader.take(8)
        if kind == _JKS_KEY_ENTRY:
            reader.take(reader.number())
            for _ in range(reader.number()):
                _jks_certificate(reader, version)
        elif kind == _JKS_TRUSTED_ENTRY:
            certificates.append(_jks_certificate(reader, version))
        else:
            raise KeystoreError("the JKS file holds an entry of an unknown kind")
    return certificates


def _jks_certificate(reader: _JksReader, version: int) -> str:
    if version > 1:
        reader.text()
    try:
        return _as_pem(x509.load_der_x509_certificate(reader.take(reader.number())))
    except ValueError as error:
        raise KeystoreError("a certificate in it is damaged") from error
