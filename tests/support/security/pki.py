"""Certificates for tests: an authority, those it signs, and the stores that Java programs keep them in."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

PASSWORD = "changeit"


@dataclass(frozen=True, slots=True)
class Certified:
    """A key with its certificate and the certificates of those who signed, nearest first and the root left out."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate
    signers: tuple[x509.Certificate, ...] = ()

    @classmethod
    def root(cls, name: str) -> Self:
        """An authority that signs itself."""
        key = ec.generate_private_key(ec.SECP256R1())
        return cls(key, _sign(name, key, name, key, authority=True))

    def issue(self, name: str, *, authority: bool = False, addresses: tuple[str, ...] = ()) -> Certified:
        """A certificate signed by this one.

        Args:
            addresses: IP addresses that it is good for.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        own_name = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
        signed = _sign(name, key, str(own_name), self.key, authority=authority, addresses=addresses)
        is_root = self.certificate.subject == self.certificate.issuer
        return Certified(key, signed, () if is_root else (self.certificate, *self.signers))

    @property
    def pem(self) -> str:
        """The certificate."""
        return _pem(self.certificate)

    @property
    def chain_pem(self) -> str:
        """The certificate, then its signers up to below the root."""
        return "".join(_pem(certificate) for certificate in (self.certificate, *self.signers))

    def key_pem(self, password: str | None = None) -> str:
        """The key in PKCS8, encrypted when there is a password."""
        encryption: serialization.KeySerializationEncryption = serialization.NoEncryption()
        if password is not None:
            encryption = serialization.BestAvailableEncryption(password.encode())
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption
        ).decode()

    def server_context(self) -> ssl.SSLContext:
        """For a server that shows the chain."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "server.pem")
            path.write_text(self.key_pem() + self.chain_pem, encoding="ascii")
            context.load_cert_chain(path)
        return context

    def keystore(self, password: str = PASSWORD) -> bytes:
        """PKCS12 with the key and the chain."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_key_and_certificates(
            b"me", self.key, self.certificate, list(self.signers) or None, encryption
        )

    def truststore(self, password: str = PASSWORD) -> bytes:
        """PKCS12 that makes Java trust this certificate."""
        encryption = serialization.BestAvailableEncryption(password.encode())
        return pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(self.certificate, b"ca")], encryption)


def _sign(
    name: str,
    key: ec.EllipticCurvePrivateKey,
    issuer: str,
    issuer_key: ec.EllipticCurvePrivateKey,
    *,
    authority: bool,
    addresses: tuple[str, ...] = (),
) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(name))
        .issuer_name(_name(issuer))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if addresses:
        names = [x509.IPAddress(ipaddress.ip_address(address)) for address in addresses]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return builder.sign(issuer_key, hashes.SHA256())


def _name(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()
