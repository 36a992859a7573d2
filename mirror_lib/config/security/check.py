"""Security settings of the clients of enabled flows that are not supported here. Pure; no file is opened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mirror_lib.config.file.derive import FlowSettings, Settings
from mirror_lib.config.model import ClientSettings, FlowClients, FlowConfig, Problem
from mirror_lib.config.security.cloud_classes import MECHANISMS
from mirror_lib.config.security.java_only import java_only_problem
from mirror_lib.config.security.tls import TlsVersionsError, tls_versions
from mirror_lib.topology.java_types import parse_raw_boolean

_PROTOCOLS, _SUITES = "ssl.enabled.protocols", "ssl.cipher.suites"


def security_problems(flows: Iterable[FlowSettings]) -> Iterator[Problem]:
    """Yield the problems, possibly repeated.

    Settings of TLS and SASL matter if the client's `security.protocol` uses them, as in Java.
    """
    for flow in flows:
        enabled = flow.connector.get("enabled")
        if enabled is None or not parse_raw_boolean(enabled.value.strip()):
            continue
        for client in flow.clients.values():
            for name in sorted(_in_use(client)):
                if not client[name].later and (problem := _problem(name, client)) is not None:
                    yield problem


def uses_kerberos(flow: FlowConfig) -> Iterator[str]:
    """Yield the aliases of the clusters that some client of a flow logs in to by Kerberos."""
    for name in FlowClients.model_fields:
        client: ClientSettings = getattr(flow.clients, name)
        protocol = client.properties.get("security.protocol", "PLAINTEXT").strip().upper()
        if protocol.startswith("SASL") and client.properties.get("sasl.mechanism", "GSSAPI").strip() == "GSSAPI":
            yield client.cluster


def _in_use(client: Settings) -> Iterator[str]:
    setting = client.get("security.protocol")
    protocol = "PLAINTEXT" if setting is None else setting.value.strip().upper()
    for name in client:
        if (
            name.startswith("security.")
            or (name.startswith("ssl.") and protocol.endswith("SSL"))
            or (name.startswith("sasl.") and protocol.startswith("SASL"))
        ):
            yield name


def _problem(name: str, client: Settings) -> Problem | None:
    setting = client[name]
    found = java_only_problem(name, setting.value)
    if found is not None:
        what, action = f"{name}: {found.what}", found.action.rstrip(".")
    elif name == "sasl.mechanism" and setting.value.strip() not in MECHANISMS:
        what, action = f"sasl.mechanism={setting.value.strip()} is not supported", f"use one of {', '.join(MECHANISMS)}"
    elif (wrong := _tls_problem(name, client)) is not None:
        what, action = wrong, "use others, or remove the setting"
    else:
        return None
    message = what if setting.key is None else f"{setting.key}{what.removeprefix(name)}"
    return Problem.error(message, setting, action[0].lower() + action[1:])


def _tls_problem(name: str, client: Settings) -> str | None:
    if name not in (_PROTOCOLS, _SUITES):
        return None
    protocols, suites = client.get(_PROTOCOLS), client.get(_SUITES) if name == _SUITES else None
    if protocols is not None and protocols.later:
        return None
    try:
        tls_versions(None if protocols is None else protocols.value, None if suites is None else suites.value)
    except TlsVersionsError as error:
        # A problem of the versions is not repeated for the suites.
        return str(error) if str(error).startswith(name) else None
    return None
