"""Login errors that the configuration alone shows, without opening files or connections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mirror_lib.cluster.auth.sasl import login_reader, read_sasl
from mirror_lib.config.model import ClientSettings, FlowClients, FlowConfig
from mirror_lib.errors import ConfigurationError, Where

#: The mechanisms whose settings refer to no file.
_WITHOUT_FILES = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")


def login_errors(flow: FlowConfig, unknown: Mapping[str, bool]) -> Iterator[tuple[str, ConfigurationError]]:
    """The clients of a flow that could not log in, by their names in `mirror config show`, each with the error.

    Args:
        unknown: by the same names, true if values of the client are only known where it runs.
    """
    for field in FlowClients.model_fields:
        client: ClientSettings = getattr(flow.clients, field)
        if unknown.get(client.role, False):
            continue
        protocol = client.properties.get("security.protocol", "PLAINTEXT").strip().upper()
        mechanism = client.properties.get("sasl.mechanism", "GSSAPI").strip()
        if not protocol.startswith("SASL"):
            continue
        try:
            if mechanism in _WITHOUT_FILES or not client.properties.get("sasl.jaas.config"):
                read_sasl(client.properties, Where(cluster=client.cluster))
        except ConfigurationError as error:
            yield client.role, error


def missing_for_kerberos() -> str | None:
    """What this installation lacks for Kerberos; None if it is complete."""
    try:
        return login_reader("GSSAPI", Where()).missing()
    except ConfigurationError as error:
        return f"the feature kerberos ({error.action[:1].lower()}{error.action[1:].rstrip('.')})"
