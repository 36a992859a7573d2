"""Reads login and trust of a client from its Java properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mirror_lib.cluster.auth.security import Security
from mirror_lib.cluster.auth.unsupported import refuse_java_only
from mirror_lib.errors import ConfigurationError, Where

if TYPE_CHECKING:
    from mirror_lib.cluster.auth.sasl import Login
    from mirror_lib.cluster.auth.tls import Tls

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def read_security(properties: Mapping[str, str], where: Where) -> Security:
    """Parse the security part of a Java client's properties; read the files that they name.

    Raises:
        ConfigurationError: a value is unknown or missing, or a file cannot be used. Never contains secrets.
    """
    protocol = properties.get("security.protocol", "PLAINTEXT").strip().upper()
    if protocol not in _PROTOCOLS:
        raise ConfigurationError(
            f"security.protocol={protocol} is unknown.", where=where, action=f"Use one of {', '.join(_PROTOCOLS)}."
        )
    refuse_java_only(properties, "security.", where)
    tls: Tls | None = None
    sasl: Login | None = None
    # A client without them imports neither key stores nor tokens.
    if protocol.endswith("SSL"):
        from mirror_lib.cluster.auth.tls import read_tls

        tls = read_tls(properties, where)
    if protocol.startswith("SASL"):
        from mirror_lib.cluster.auth.sasl import read_sasl

        sasl = read_sasl(properties, where)
    return Security(protocol, tls, sasl)
