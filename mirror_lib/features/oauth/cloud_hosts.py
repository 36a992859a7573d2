"""Hosts that get tokens of the machine's identity in a cloud service.

Such a token is no secret of the configuration file: the machine's role, service account or managed identity signs it.
Everybody who receives one can use it until it ends: Google's for all of the account's services, Amazon's for every
cluster of the region that the identity may use, Azure's for the host whose name it was requested for. So the author of
a file may not choose who receives it, nor may a broker that names others in its metadata.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.operator_limits import CLOUD_HOSTS_VARIABLE, cloud_token_hosts

_LABELS = r"(?:[a-z0-9_](?:[a-z0-9_\-]{0,61}[a-z0-9_])?\.){1,10}"
#: By partition of AWS, as in botocore's `endpoints.json`.
_AWS_SUFFIXES = r"(?:amazonaws\.(?:com|com\.cn|eu)|c2s\.ic\.gov|sc2s\.sgov\.gov|cloud\.adc-e\.uk|csp\.hci\.ic\.gov)"
_AZURE_SUFFIXES = r"(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net|cloudapi\.de)"
_ONE_LABEL = r"[a-z0-9\-]{1,63}"


@dataclass(frozen=True, slots=True)
class CloudHosts:
    """The hosts of one cloud service.

    Attributes:
        service: for messages.
        names: regular expression of the service's own host names.
        example: one of them.
        more: what the operator allows in addition: host names, `*.SUFFIX`, `*`.
    """

    service: str
    names: str
    example: str
    more: tuple[str, ...] = ()

    def with_operators(self) -> CloudHosts:
        """Return these hosts and those that the operator allows where runs are planned."""
        return CloudHosts(self.service, self.names, self.example, cloud_token_hosts())

    def allow(self, host: str) -> bool:
        """Return True if a host may get a token."""
        name = _plain(host)
        return re.fullmatch(self.names, name) is not None or self._is_operators(name)

    def refuse_others(self, hosts: Iterable[str], protocol: str, where: Where) -> None:
        """Refuse hosts of others, and a connection without TLS to the service's own.

        Raises:
            ConfigurationError: a host may not get a token.
        """
        for host in hosts:
            if not self.allow(host):
                raise ConfigurationError(
                    f"{host} gets no token of this machine's identity: it is no host of {self.service} "
                    f"({self.example}).",
                    where=where,
                    action=f"Use the host names of the service. If this is a name of your own for it, let the operator "
                    f"of the machine add it to the environment: {CLOUD_HOSTS_VARIABLE}={host} (docs/security.md).",
                )
            if protocol == "SASL_PLAINTEXT" and not self._is_operators(_plain(host)):
                raise ConfigurationError(
                    f"{host} gets no token of this machine's identity without TLS (security.protocol={protocol}).",
                    where=where,
                    action="Set security.protocol=SASL_SSL.",
                )

    def _is_operators(self, name: str) -> bool:
        if "*" in self.more:
            return True
        names = [_plain(each) for each in self.more]
        return name in names or any(each.startswith("*.") and name.endswith(each[1:]) for each in names)


def _plain(host: str) -> str:
    return host.strip().strip("[]").lower().removesuffix(".")


AMAZON = CloudHosts(
    "Amazon MSK",
    rf"{_LABELS}kafka(?:-serverless)?\.{_ONE_LABEL}\.{_AWS_SUFFIXES}",
    "b-1.NAME.ID.c1.kafka.REGION.amazonaws.com",
)
GOOGLE = CloudHosts(
    "Google Cloud's Managed Service for Apache Kafka",
    # Every customer may have `*.endpoints.PROJECT.cloud.goog`, at any address; ids of projects may have a domain.
    rf"(?!(?:.*\.)?endpoints\.){_LABELS}[a-z]{{2,20}}-[a-z]{{2,20}}[0-9]{{1,2}}\.managedkafka\.{_LABELS}cloud\.goog",
    "bootstrap.NAME.REGION.managedkafka.PROJECT.cloud.goog",
)
AZURE = CloudHosts(
    "Azure Event Hubs", rf"{_ONE_LABEL}\.servicebus\.{_AZURE_SUFFIXES}", "NAMESPACE.servicebus.windows.net"
)
