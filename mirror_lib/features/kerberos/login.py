"""Kerberos logins (`sasl.mechanism=GSSAPI`): Java's `Krb5LoginModule` options, and properties for both clients."""

from __future__ import annotations

import functools
import importlib.util
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mirror_lib.cluster.auth import JaasEntry, librdkafka_accepts
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.kerberos.tickets import INSTALL, TICKETS, KerberosIdentity, gssapi_package
from mirror_lib.limited_files import read_limited
from mirror_lib.operator_limits import read_named
from mirror_lib.private_files import refuse_foreign, without_foreign_links


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
    kind, colon, rest = name.partition(":")
    path = rest if colon and kind == "FILE" else name
    # With or without the content: MIT's library reads the process's own cache itself.
    _refuse_tickets_of_others(Path(rest.removeprefix(":") if kind == "DIR" else path), where)
    if named and needed:
        return _read(named.removeprefix("FILE:"), f"sasl.jaas.config: ticketCache {named}", where)
    try:
        # The operator's limits are for files that the configuration names.
        return read_named(Path(path)) if named else read_limited(Path(path))
    except OSError:
        return None


def _refuse_tickets_of_others(path: Path, where: Where) -> None:
    """Refuse a ticket cache, or a folder of caches, that another user has made, may change, or has not shared.

    MIT's library and Java use any file that they can read: in /tmp another user may create the default one first, and
    this user's records would be written in that user's name.

    Raises:
        ConfigurationError: it is one.
    """
    try:
        real = without_foreign_links(path)
        refuse_foreign(real)
        found = real.stat()
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        reason = error.strerror or "it cannot be read"
    else:
        is_own = found.st_uid in (0, os.geteuid())
        if not is_own and not found.st_mode & (stat.S_IRGRP | stat.S_IROTH):
            # Root can read it all the same.
            reason = "it belongs to another user, who has not shared it"
        elif found.st_mode & stat.S_IWOTH and not (stat.S_ISDIR(found.st_mode) and found.st_mode & stat.S_ISVTX):
            reason = "all users may change it"
        else:
            return
    raise ConfigurationError(
        f"the ticket cache {path} is not used: {reason}.",
        where=where,
        action="Set ticketCache in sasl.jaas.config, or KRB5CCNAME in the environment, to a cache that the user of "
        "this process has made (`kinit -c FILE:/path`), in a folder that no other user may write.",
    )


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
