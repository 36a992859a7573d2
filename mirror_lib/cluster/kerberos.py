"""Kerberos logins (`sasl.mechanism=GSSAPI`): Java's `Krb5LoginModule` options, and the tickets both clients log in by.

A login carries its keytab's or its ticket cache's content, so that executors need neither file. Tickets are held in
the memory of the process (MIT's `MEMORY:` caches); a keytab lies on disk only while a ticket is got by it. The realm's
addresses come from the machine's own krb5.conf, as in Java.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import os
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirror_lib.cluster.jaas import JaasEntry
from mirror_lib.errors import AuthenticationError, ConfigurationError, MirrorError, TransientError, Where

_CACHE_VARIABLE = "KRB5CCNAME"
_OURS = "MEMORY:mirror-"
_INSTALL = (
    "Install the package gssapi (the extra `kerberos`) and a confluent-kafka that was built with Kerberos on every "
    "machine that runs tasks: docs/security.md says how."
)
#: What MIT's library says.
_NO_KDC, _NOTHING_HELD = "Cannot contact any KDC", "No credentials cache found"


@dataclass(frozen=True, slots=True)
class KerberosLogin:
    """GSSAPI."""

    #: The first part of the brokers' principals.
    service: str
    principal: str | None = None
    keytab: bytes | None = field(default=None, repr=False)
    #: A ticket cache, in the format of MIT's `FILE:` caches. It counts before the keytab while its ticket is current.
    ticket_cache: bytes | None = field(default=None, repr=False)
    mechanism: str = "GSSAPI"

    def librdkafka(self, where: Where) -> dict[str, Any]:
        """The properties of librdkafka; the ticket that it will find is got now.

        Raises:
            ConfigurationError: this installation lacks what Kerberos needs.
            AuthenticationError: the realm gives no ticket.
            TransientError: no KDC answers.
        """
        if not librdkafka_speaks_kerberos():
            raise ConfigurationError(
                "sasl.mechanism=GSSAPI needs a confluent-kafka that was built with Kerberos; the installed one was "
                "not.",
                where=where,
                action=_INSTALL,
            )
        _TICKETS.offer_to_process(self, where)
        return {
            "sasl.mechanism": self.mechanism,
            "sasl.kerberos.service.name": self.service,
            # It would run the program kinit.
            "sasl.kerberos.min.time.before.relogin": 0,
        }

    def aiokafka(self, where: Where) -> dict[str, Any]:
        """The keyword arguments of aiokafka's client; tickets are got with each connection that is made.

        Raises:
            ConfigurationError: this installation lacks what Kerberos needs.
        """
        _gssapi(where)
        from mirror_lib.cluster.sasl_exchange import KerberosService

        return {
            "sasl_mechanism": self.mechanism,
            "sasl_kerberos_service_name": KerberosService.of(self, where),
        }

    def credentials(self, where: Where) -> Any:
        """Credentials of package gssapi, good for new connections.

        Raises:
            ConfigurationError: package gssapi is missing.
            AuthenticationError: the realm gives no ticket.
            TransientError: no KDC answers.
        """
        return _TICKETS.credentials(self, where)


def read_kerberos(properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> KerberosLogin:
    """Read a `Krb5LoginModule`; its keytab or ticket cache is read.

    Raises:
        ConfigurationError: something is missing, or a file cannot be read.
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
        # Java looks at neither while the cache serves.
        return KerberosLogin(service, principal, ticket_cache=cached)
    if not principal:
        raise ConfigurationError(
            "sasl.jaas.config does not give principal, which a login by keytab needs.",
            where=where,
            action="Add it as an option of the login module.",
        )
    content = _read(path, f"sasl.jaas.config: keyTab {path}", where)
    return KerberosLogin(service, principal, keytab=content, ticket_cache=cached)


def _ticket_cache(options: Mapping[str, str], where: Where, *, needed: bool = True) -> bytes | None:
    """The cache's content; None when it is of a kind that cannot be carried, or when there is none."""
    named = options.get("ticketCache")
    if named and needed:
        return _read(named.removeprefix("FILE:"), f"sasl.jaas.config: ticketCache {named}", where)
    name = named or _TICKETS.process_cache or f"/tmp/krb5cc_{os.getuid()}"
    kind, colon, rest = name.partition(":")
    path = rest if colon and kind == "FILE" else name
    try:
        return Path(path).read_bytes()
    except OSError:
        return None


def _read(path: str, what: str, where: Where) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"{what}: {error.strerror or error}.",
            where=where,
            action="The file must be readable where runs are planned.",
        ) from error


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"


@functools.cache
def librdkafka_speaks_kerberos() -> bool:
    """Whether the installed confluent-kafka was built with Kerberos; its wheels are not."""
    from confluent_kafka import KafkaException, Producer

    try:
        Producer(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "GSSAPI",
                "sasl.kerberos.min.time.before.relogin": 0,
                "log_level": 0,
            }
        )
    except KafkaException:
        return False
    return True


def missing_for_kerberos() -> str | None:
    """What this installation lacks for Kerberos and where it is told how to get it; None when it lacks nothing."""
    missing = [] if librdkafka_speaks_kerberos() else ["a confluent-kafka that was built with Kerberos"]
    if importlib.util.find_spec("gssapi") is None:
        missing.append("the package gssapi")
    return f"it lacks {' and '.join(missing)}: see docs/security.md" if missing else None


def _gssapi(where: Where) -> Any:
    try:
        import gssapi
    except ImportError as error:
        raise ConfigurationError(
            "sasl.mechanism=GSSAPI needs the package gssapi, which is not installed.", where=where, action=_INSTALL
        ) from error
    return gssapi


class _Tickets:
    """The tickets of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        #: The principal that librdkafka logs in by, by realm: it takes what MIT chooses, which goes by realms.
        self._offered: dict[str, str] = {}
        #: The same for logins by the process's own cache, which librdkafka does not see beside ours.
        self._of_process: dict[str, str] = {}
        #: The process's ticket cache before we set our own.
        self.process_cache = os.environ.get(_CACHE_VARIABLE)

    def credentials(self, login: KerberosLogin, where: Where) -> Any:
        return self._found(login, where)[0]

    def offer_to_process(self, login: KerberosLogin, where: Where) -> None:
        """Let librdkafka find the login's ticket.

        Raises:
            ConfigurationError: another login, which librdkafka cannot have beside it, is in use in this process.
        """
        found, cache = self._found(login, where)
        principal = str(found.name)
        realm = principal.rpartition("@")[2]
        with self._lock:
            same, other = (self._offered, self._of_process) if cache else (self._of_process, self._offered)
            taken = next((each for each in (same.get(realm), *other.values()) if each not in (None, principal)), None)
            if taken is not None:
                raise ConfigurationError(
                    f"{principal} and {taken} are both needed, and librdkafka takes one principal of a realm, and "
                    "either this process's own ticket cache or those of sasl.jaas.config.",
                    where=where,
                    action="Log in to both clusters by the same principal; of different realms, by keytabs or ticket "
                    "cache files.",
                )
            same[realm] = principal
            if cache:
                os.environ[_CACHE_VARIABLE] = cache

    def _found(self, login: KerberosLogin, where: Where) -> tuple[Any, str | None]:
        """Credentials with the name of our cache that holds them; None when they are in the process's own."""
        gssapi = _gssapi(where)
        with self._lock:
            try:
                return self._acquire(gssapi, login)
            except gssapi.exceptions.GSSError as error:
                raise kerberos_error(error, login, where) from error

    def _acquire(self, gssapi: Any, login: KerberosLogin) -> tuple[Any, str | None]:
        name = None
        if login.principal:
            name = gssapi.Name(login.principal, name_type=gssapi.NameType.kerberos_principal)
        if login.ticket_cache is not None:
            try:
                found, cache = _carried(gssapi, name, login.ticket_cache, _cache_name(login, login.ticket_cache))
                if login.keytab is None or _is_current(found):
                    return found, cache
            except gssapi.exceptions.GSSError:
                if login.keytab is None:
                    raise
        if login.keytab is not None:
            # A cache of its own: MIT renews by the keytab only what it got by it.
            cache = _cache_name(login, login.keytab)
            with _private_file(login.keytab) as path:
                store = {"client_keytab": f"FILE:{path}", "ccache": cache}
                found = gssapi.Credentials(name=name, usage="initiate", store=store)
                # It is here that MIT gets a ticket, or a new one when half of the old one's life is over.
                found.inquire()
            return gssapi.Credentials(name=name, usage="initiate", store={"ccache": cache}), cache
        process_store = {"ccache": self.process_cache} if self.process_cache else None
        found = gssapi.Credentials(name=name, usage="initiate", store=process_store)
        found.inquire()
        return found, None


def _carried(gssapi: Any, name: Any, content: bytes, cache: str) -> tuple[Any, str]:
    """The tickets of a cache's content, now in a cache of ours."""
    with _private_file(content) as path:
        held = gssapi.Credentials(name=name, usage="initiate", store={"ccache": f"FILE:{path}"})
        held.store(store={"ccache": cache}, usage="initiate", overwrite=True, set_default=False)
    return gssapi.Credentials(name=name, usage="initiate", store={"ccache": cache}), cache


def _is_current(credentials: Any) -> bool:
    """Whether the ticket is not over; package gssapi may also raise that it is. None is a life without an end."""
    credentials.inquire()
    return credentials.lifetime is None or credentials.lifetime > 0


_TICKETS = _Tickets()


def kerberos_error(error: Exception, login: KerberosLogin, where: Where) -> MirrorError:
    """The named error for one of package gssapi."""
    said = " ".join(str(error).split())
    who = login.principal or "the ticket cache"
    if login.keytab is not None and _NOTHING_HELD in said:
        return AuthenticationError(
            f"the keytab holds no key of {who}.",
            where=where,
            action="Check principal and keyTab in sasl.jaas.config; `klist -k` shows the principals of a keytab.",
        )
    if _NO_KDC in said:
        return TransientError(
            f"no KDC answered when {who} logged in: {said.rstrip('.')}.",
            where=where,
            action="Check krb5.conf on this machine and that the KDC runs.",
        )
    return AuthenticationError(
        f"Kerberos refused {who}: {said.rstrip('.')}.",
        where=where,
        action="Check principal and keyTab (or the ticket cache) in sasl.jaas.config, sasl.kerberos.service.name, and "
        "that the names of the brokers are those of their principals.",
    )


def _cache_name(login: KerberosLogin, content: bytes) -> str:
    return _OURS + hashlib.sha256((login.principal or "").encode() + b"\0" + content).hexdigest()[:32]


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """A file that only this user can read, gone at the end."""
    handle, path = tempfile.mkstemp(prefix="mirror-krb5-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield path
    finally:
        Path(path).unlink()
