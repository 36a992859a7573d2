"""TLS versions and cipher suites that Java settings allow, in OpenSSL's terms. Pure.

OpenSSL has its own names for the suites up to TLS 1.2, and neither client can choose the suites of TLS 1.3.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

#: `SslConfigs.DEFAULT_SSL_ENABLED_PROTOCOLS`; older versions are accepted and not used.
_DEFAULT_PROTOCOLS = "TLSv1.2,TLSv1.3"
_KNOWN_PROTOCOLS = frozenset({"SSLv2Hello", "SSLv3", "TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"})
#: Java's TLS 1.3 suites, all of them.
TLS13_SUITES = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
#: A signalling value, not a suite (RFC 5746).
_SIGNAL = "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"
_SUITE = re.compile(
    r"(?:TLS|SSL)_(?P<exchange>RSA|DHE_RSA|DHE_DSS|ECDHE_RSA|ECDHE_ECDSA)_WITH_"
    r"(?P<cipher>AES_(?:128|256)_(?:CBC|GCM|CCM)|CHACHA20_POLY1305)_?(?P<digest>SHA|SHA256|SHA384|8)?"
)


class TlsVersionsError(ValueError):
    """A setting that is not supported; the message names the value."""


@dataclass(frozen=True, slots=True)
class TlsVersions:
    """Possible results of a handshake."""

    tls12: bool = True
    tls13: bool = True
    #: OpenSSL's names for TLS 1.2, in the order of preference; None leaves the choice to OpenSSL.
    ciphers: tuple[str, ...] | None = None


def tls_versions(protocols: str | None, suites: str | None) -> TlsVersions:
    """Return what `ssl.enabled.protocols` and `ssl.cipher.suites` allow.

    Raises:
        TlsVersionsError: nothing supported is left, or a name is unknown.
    """
    wanted = _names(protocols) or _names(_DEFAULT_PROTOCOLS)
    unknown = [name for name in wanted if name not in _KNOWN_PROTOCOLS]
    if unknown:
        raise TlsVersionsError(f"ssl.enabled.protocols: {', '.join(unknown)} is unknown")
    tls12, tls13 = "TLSv1.2" in wanted, "TLSv1.3" in wanted
    if not (tls12 or tls13):
        raise TlsVersionsError(
            "ssl.enabled.protocols has neither TLSv1.2 nor TLSv1.3; older versions are not supported"
        )
    listed = [name for name in _names(suites) if name != _SIGNAL]
    if not listed:
        return TlsVersions(tls12, tls13)
    newer = [name for name in TLS13_SUITES if name in listed]
    if tls13 and newer and len(newer) < len(TLS13_SUITES):
        missing = ", ".join(name for name in TLS13_SUITES if name not in newer)
        raise TlsVersionsError(f"ssl.cipher.suites excludes {missing}, but TLS 1.3 suites can only be used all or none")
    older = tuple(openssl_name(name) for name in listed if name not in TLS13_SUITES)
    tls12, tls13 = tls12 and bool(older), tls13 and bool(newer)
    if not (tls12 or tls13):
        raise TlsVersionsError("ssl.cipher.suites has no suite of the versions in ssl.enabled.protocols")
    return TlsVersions(tls12, tls13, older or None)


def openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite of TLS 1.2, given by its name in Java and in IANA's registry.

    Raises:
        TlsVersionsError: it is unknown, or OpenSSL no longer supports it (RC4, 3DES, NULL, anonymous ones).
    """
    match = _SUITE.fullmatch(suite)
    if match is None:
        raise TlsVersionsError(f"ssl.cipher.suites: {suite} is unknown, or no longer supported")
    exchange, cipher, digest = match["exchange"], match["cipher"], match["digest"]
    parts = [] if exchange == "RSA" else [exchange.replace("_", "-")]
    if cipher == "CHACHA20_POLY1305":
        parts.append("CHACHA20-POLY1305")
    else:
        _, bits, mode = cipher.split("_")
        # CBC is not part of OpenSSL's names.
        parts.append(f"AES{bits}" if mode == "CBC" else f"AES{bits}-{mode}" + ("8" if digest == "8" else ""))
        if mode != "CCM":
            if digest is None or digest == "8":
                raise TlsVersionsError(f"ssl.cipher.suites: {suite} is unknown, or no longer supported")
            parts.append(digest)
    return "-".join(parts)


def _names(text: str | None) -> list[str]:
    return [name for name in (part.strip() for part in (text or "").split(",")) if name]
