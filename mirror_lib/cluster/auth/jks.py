"""Java's old key store format, JKS (Java class `sun.security.provider.JavaKeyStore`).

The file contains certificates in clear; a digest of the whole file depends on the store's password. Private keys are
encrypted by Sun's own cipher (`sun.security.provider.KeyProtector`): a stream of SHA-1 digests.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass

MAGIC = b"\xfe\xed\xfe\xed"
_KEY_ENTRY, _TRUSTED_ENTRY = 1, 2
#: Included in the digest of every file.
_WHITENER = b"Mighty Aphrodite"
_DIGEST = 20
#: DER of the algorithm 1.3.6.1.4.1.42.2.17.1.1 with empty parameters.
_SUN_PROTECTOR = bytes.fromhex("300e060a2b060104012a021101010500")
_SEQUENCE, _OCTETS = 0x30, 0x04


class JksError(ValueError):
    """The file cannot be used; the message says why, and never contains a password."""


@dataclass(frozen=True, slots=True)
class JksKey:
    """A private key entry."""

    alias: str
    #: DER of an EncryptedPrivateKeyInfo.
    protected: bytes
    #: DER of each certificate, leaf first.
    chain: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class JksStore:
    """The content of a file, in its order."""

    keys: tuple[JksKey, ...]
    #: DER of each certificate.
    trusted: tuple[bytes, ...]


def parse_jks(content: bytes, password: str | None) -> JksStore:
    """Parse a whole file.

    Args:
        password: the store's; without it, changes to the file are not detected (as in Java).

    Raises:
        JksError: the password is wrong, or the file is damaged.
    """
    if password is not None:
        digest = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + content[:-_DIGEST]).digest()
        if not hmac.compare_digest(digest, content[-_DIGEST:]):
            raise JksError("it cannot be opened: wrong password, or damaged")
    reader = _Reader(content[:-_DIGEST])
    reader.take(len(MAGIC))
    version = reader.number()
    keys: list[JksKey] = []
    trusted: list[bytes] = []
    for _ in range(reader.number()):
        kind, alias = reader.number(), reader.text()
        reader.take(8)
        if kind == _KEY_ENTRY:
            protected = reader.take(reader.number())
            chain = tuple(reader.certificate(version) for _ in range(reader.number()))
            keys.append(JksKey(alias, protected, chain))
        elif kind == _TRUSTED_ENTRY:
            trusted.append(reader.certificate(version))
        else:
            raise JksError("the JKS file contains an entry of an unknown type")
    return JksStore(tuple(keys), tuple(trusted))


def recover_key(key: JksKey, password: str) -> bytes:
    """The private key in clear, as PKCS8 in DER.

    Raises:
        JksError: the password is wrong, or the cipher is not Sun's.
    """
    data = _protected_data(key.protected)
    salt, hidden, check = data[:_DIGEST], data[_DIGEST:-_DIGEST], data[-_DIGEST:]
    secret = password.encode("utf-16-be")
    stream = bytearray()
    digest = salt
    while len(stream) < len(hidden):
        digest = hashlib.sha1(secret + digest).digest()
        stream += digest
    plain = bytes(a ^ b for a, b in zip(hidden, stream, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), check):
        raise JksError(f"the private key {key.alias} cannot be read: wrong ssl.key.password, or damaged")
    return plain


def _protected_data(der: bytes) -> bytes:
    body, rest = _der_value(der, _SEQUENCE)
    if rest or not body.startswith(_SUN_PROTECTOR):
        raise JksError("a private key in the JKS file is encrypted with an unknown cipher")
    data, rest = _der_value(body[len(_SUN_PROTECTOR) :], _OCTETS)
    if rest or len(data) <= 2 * _DIGEST:
        raise JksError("a private key in the JKS file is damaged")
    return data


def _der_value(der: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the first DER value, and the bytes after it."""
    if len(der) < 2 or der[0] != tag:
        raise JksError("a private key in the JKS file is damaged")
    size, start = der[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[2:start])
    if len(der) < start + size:
        raise JksError("a private key in the JKS file is damaged")
    return der[start : start + size], der[start + size :]


class _Reader:
    """Reads big-endian fields."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._position = 0

    def number(self) -> int:
        (value,) = struct.unpack(">I", self.take(4))
        return int(value)

    def text(self) -> str:
        (size,) = struct.unpack(">H", self.take(2))
        return self.take(size).decode("utf-8", "replace")

    def certificate(self, version: int) -> bytes:
        if version > 1:
            self.text()
        return self.take(self.number())

    def take(self, size: int) -> bytes:
        piece = self._content[self._position : self._position + size]
        if len(piece) < size:
            raise JksError("the JKS file is truncated")
        self._position += size
        return piece
