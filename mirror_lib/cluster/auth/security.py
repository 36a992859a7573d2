"""Login and trust of a client: Kafka's Java security properties, for both Python clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mirror_lib.cluster.auth.sasl import Login, read_sasl
from mirror_lib.cluster.auth.tls import Tls, read_tls, refuse_java_only
from mirror_lib.errors import ConfigurationError, Where

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


@dataclass(frozen=True, slots=True)
class Security:
    """A `security.protocol` with its parts; a part is None if the protocol does not use it."""

    protocol: str = "PLAINTEXT"
    tls: Tls | None = None
    sasl: Login | None = None

    def librdkafka(self, where: Where) -> dict[str, Any]:
        """The properties of librdkafka. Obtains tokens and tickets, unless this process has them already.

        Raises:
            MirrorError: a prerequisite of the mechanism is not available.
        """
        options: dict[str, Any] = {"security.protocol": self.protocol}
        if self.tls is not None:
            options |= self.tls.librdkafka()
        if self.sasl is not None:
            options |= self.sasl.librdkafka(where)
        return options

    def aiokafka(self, where: Where) -> dict[str, Any]:
        """The keyword arguments of aiokafka's client.

        Raises:
            MirrorError: as `librdkafka`.
        """
        options: dict[str, Any] = {"security_protocol": self.protocol}
        if self.tls is not None:
            options["ssl_context"] = self.tls.context()
        if self.sasl is not None:
            options |= self.sasl.aiokafka(where)
        return options


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
    tls, sasl = protocol.endswith("SSL"), protocol.startswith("SASL")
    refuse_java_only(properties, "security.", where)
    return Security(
        protocol, read_tls(properties, where) if tls else None, read_sasl(properties, where) if sasl else None
    )
