"""Login and trust of a client: Kafka's Java security properties, for both Python clients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mirror_lib.errors import Where

if TYPE_CHECKING:
    from mirror_lib.cluster.auth.sasl import Login
    from mirror_lib.cluster.auth.tls import Tls


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
