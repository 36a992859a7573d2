"""Kerberos logins (`sasl.mechanism=GSSAPI`): Java's `Krb5LoginModule` options, and properties for both clients."""

from __future__ import annotations

import functools
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirror_lib.cluster.auth.jaas import JaasEntry
from mirror_lib.cluster.auth.librdkafka_build import librdkafka_accepts
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.kerberos.caches import own_file_of_cache
from mirror_lib.features.kerberos.tickets import INSTALL, TICKETS, KerberosIdentity, gssapi_package
from mirror_lib.limited_files import read_limited
from mirror_lib.operator_limits import read_named


@dataclass(frozen=True, slots=True)
class KerberosLogin(KerberosIdentity):
    """GSSAPI."""

    mechanism: str = "GSSAPI"

    def librdkafka(self, where: Where) -> dict[str, Any]:
        """The properties of librdkafka; obtains the ticket that it will use.

        Raises:
            ConfigurationError: this installation does not support Kerberos.
            AuthenticationError: the realm issues no ticket.
            TransientError: no KDC responds.
        """
        if not librdkafka_speaks_kerberos():
            raise ConfigurationError(
                "sasl.mechanism=GSSAPI needs a confluent-kafka that was built with Kerberos; the installed one was "
                "not.",
                where=where,
                action=INSTALL,
            )
        TICKETS.offer_to_process(self, where)
        return {
            "sasl.mechanism": self.mechanism,
            "sasl.kerberos.service.name": self.service,
            # Otherwise librdkafka runs the program kinit.
            "sasl.kerberos.min.time.before.relogin": 0,
        }

    def aiokafka(self, where: Where) -> dict[str, Any]:
        """The keyword arguments of aiokafka's client; each new connection obtains a ticket.

        Raises:
            ConfigurationError: this installation does not support Kerberos.
        """
        gssapi_package(where)
        from mirror_lib.features.kerberos.exchange import KerberosService

        return {
            "sasl_mechanism": self.mechanism,
            "sasl_kerberos_service_name": KerberosService.of(self, where),
        }


def read_kerberos(properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> KerberosLogin:
    """Parse a `Krb5LoginModule`; read its keytab or ticket cache.

    Raises:
        ConfigurationError: an option is missing, or a file cannot be read.
    """
    options = jaas.options
    service = (properties.get("sasl.kerberos.service.name") or options.get("serviceName") or "").strip()
    if not service:
        raise ConfigurationError(
            "sasl.kerberos.service.name is not set.", where=where, action="Set it to the brokers' service, often kafka."
        )
    principal, keytab = options.get("principal"), options.get("keyTab")
    by_keytab = _is_true(options, "useKeyTab") or bool(keytab)
    if not by_keytab:
        return KerberosLogin(service, principal, ticket_cache=_ticket_cache(options, where))
    cached = _ticket_cache(options, where, needed=False) if _is_true(options, "useTicketCache") else None
    path = (keytab or "/etc/krb5.keytab").removeprefix("FILE:")
    if cached is not None and not (principal and os.access(path, os.R_OK)):
        # Java uses neither while the cache is valid.
        return KerberosLogin(service, principal, ticket_cache=cached)
    if not principal:
        raise ConfigurationError(
            "sasl.jaas.config has no principal, which a login by keytab needs.",
            where=where,
            action="Add it as an option of the login module.",
        )
    content = _read(path, f"sasl.jaas.config: keyTab {path}", where)
    return KerberosLogin(service, principal, keytab=content, ticket_cache=cached)


def _ticket_cache(options: Mapping[str, str], where: Where, *, needed: bool = True) -> bytes | None:
    """The cache's content; None if there is no cache, or if its type cannot be copied."""
    named = options.get("ticketCache")
    name = named or TICKETS.process_cache
    # With or without the content: MIT's library reads the process's own cache itself.
    path = own_file_of_cache(name, where)
    if named and needed:
        what = f"sasl.jaas.config: ticketCache {named}"
        if path is None:
            raise ConfigurationError(
                f"{what}: No such file or directory.",
                where=where,
                action="Set it to the path of a cache of `kinit -c FILE:/path`.",
            )
        return _read(str(path), what, where)
    try:
        if path is None:
            return None
        # The operator's limits are for files that the configuration names.
        return read_named(path) if named else read_limited(path)
    except OSError:
        return None


def _read(path: str, what: str, where: Where) -> bytes:
    try:
        return read_named(Path(path))
    except OSError as error:
        raise ConfigurationError(
            f"{what}: {error.strerror or error}.",
            where=where,
            action="The file must be readable where runs are planned.",
        ) from error


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


class KerberosLogins:
    """Reads logins by Kerberos (`cluster.auth.sasl.LoginReader`)."""

    @staticmethod
    def read(mechanism: str, properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> KerberosLogin:
        """As `LoginReader.read`."""
        del mechanism
        return read_kerberos(properties, jaas, where)

    @staticmethod
    def missing() -> str | None:
        """As `LoginReader.missing`, with a reference to the documentation."""
        missing = [] if librdkafka_speaks_kerberos() else ["a confluent-kafka that was built with Kerberos"]
        if importlib.util.find_spec("gssapi") is None:
            missing.append("the package gssapi")
        return f"it lacks {' and '.join(missing)}: see docs/security.md" if missing else None


@functools.cache
def librdkafka_speaks_kerberos() -> bool:
    """True if the installed confluent-kafka was built with Kerberos; its wheels are not."""
    return librdkafka_accepts(
        {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.min.time.before.relogin": 0,
        }
    )
