"""Kerberos tickets: the identity in a realm, and the credentials with which both clients log in.

An identity contains its keytab's or its ticket cache's content, so that executors need neither file. Tickets are held
in the process's memory (MIT's `MEMORY:` caches); a keytab is on disk only while it is used to obtain a ticket. The
realm's addresses come from the machine's own krb5.conf, as in Java.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mirror_lib.errors import AuthenticationError, ConfigurationError, MirrorError, TransientError, Where
from mirror_lib.features.kerberos.caches import own_file_of_cache

_CACHE_VARIABLE = "KRB5CCNAME"
_OURS = "MEMORY:mirror-"
#: Of the package gssapi, too.
_LIBRARY = "libkrb5.so.3"
#: The operator action if a package is missing.
INSTALL = (
    "Install the package gssapi (the extra `kerberos`) and a confluent-kafka that was built with Kerberos on every "
    "machine that runs tasks: see docs/security.md."
)
#: Messages of MIT's library.
_NO_KDC, _NOTHING_HELD = "Cannot contact any KDC", "No credentials cache found"


@dataclass(frozen=True, slots=True)
class KerberosIdentity:
    """The identity that logs in, and its keys or tickets."""

    #: The first part of the brokers' principals.
    service: str
    principal: str | None = None
    keytab: bytes | None = field(default=None, repr=False)
    #: A ticket cache, in the format of MIT's `FILE:` caches. It is used before the keytab while its ticket is valid.
    ticket_cache: bytes | None = field(default=None, repr=False)

    def credentials(self, where: Where) -> Any:
        """Credentials of package gssapi, valid for new connections.

        Raises:
            ConfigurationError: package gssapi is missing.
            AuthenticationError: the realm issues no ticket.
            TransientError: no KDC responds.
        """
        return TICKETS.credentials(self, where)


def gssapi_package(where: Where) -> Any:
    """The imported package.

    Raises:
        ConfigurationError: the package is missing.
    """
    try:
        import gssapi
    except ImportError as error:
        raise ConfigurationError(
            "sasl.mechanism=GSSAPI needs the package gssapi, which is not installed.", where=where, action=INSTALL
        ) from error
    return gssapi


class Tickets:
    """The tickets of this process."""

    def __init__(self) -> None:
        """None yet."""
        self._lock = threading.Lock()
        #: The principal with which librdkafka logs in, by realm: MIT chooses the credentials by realm.
        self._offered: dict[str, str] = {}
        #: The same for logins with the process's own cache, which librdkafka does not see next to this module's caches.
        self._of_process: dict[str, str] = {}
        #: As the process was started, before this module set its own.
        self._named_cache = os.environ.get(_CACHE_VARIABLE)

    @functools.cached_property
    def process_cache(self) -> str:
        """The process's own ticket cache: that of KRB5CCNAME, else of krb5.conf (`default_ccache_name`), else MIT's.

        First used before this module sets the variable to its own caches: the library would return these.
        """
        return self._named_cache or _default_cache() or f"FILE:/tmp/krb5cc_{os.getuid()}"

    def credentials(self, login: KerberosIdentity, where: Where) -> Any:
        """As `KerberosIdentity.credentials`."""
        return self._find(login, where)[0]

    def offer_to_process(self, login: KerberosIdentity, where: Where) -> None:
        """Make the login's ticket available to librdkafka.

        Raises:
            ConfigurationError: the process already uses another login that librdkafka cannot use at the same time.
        """
        found, cache = self._find(login, where)
        principal = str(found.name)
        realm = principal.rpartition("@")[2]
        with self._lock:
            same, other = (self._offered, self._of_process) if cache else (self._of_process, self._offered)
            taken = next((each for each in (same.get(realm), *other.values()) if each not in (None, principal)), None)
            if taken is not None:
                raise ConfigurationError(
                    f"{principal} and {taken} are both needed, but librdkafka supports only one principal per realm, "
                    "and either this process's ticket cache or those in sasl.jaas.config.",
                    where=where,
                    action="Use the same principal for both clusters; for different realms, use keytabs or ticket "
                    "cache files.",
                )
            same[realm] = principal
            if cache:
                os.environ[_CACHE_VARIABLE] = cache

    def _find(self, login: KerberosIdentity, where: Where) -> tuple[Any, str | None]:
        """Credentials, with the name of this module's cache that holds them; None if they are in the process's own."""
        gssapi = gssapi_package(where)
        with self._lock:
            own_cache = self.process_cache
            if login.ticket_cache is None and login.keytab is None:
                # It may be another machine than the one where the run was planned, or the file may be newer.
                own_file_of_cache(own_cache, where)
            try:
                return self._acquire(gssapi, login, own_cache)
            except gssapi.exceptions.GSSError as error:
                raise kerberos_error(error, login, where) from error

    @staticmethod
    def _acquire(gssapi: Any, login: KerberosIdentity, own_cache: str) -> tuple[Any, str | None]:
        name = None
        if login.principal:
            name = gssapi.Name(login.principal, name_type=gssapi.NameType.kerberos_principal)
        if login.ticket_cache is not None:
            try:
                found, cache = _copy_tickets(gssapi, name, login.ticket_cache, _cache_name(login, login.ticket_cache))
                if login.keytab is None or _is_current(found):
                    return found, cache
            except gssapi.exceptions.GSSError:
                if login.keytab is None:
                    raise
        if login.keytab is not None:
            # A separate cache: MIT renews by the keytab only tickets that it obtained by it.
            cache = _cache_name(login, login.keytab)
            with _private_file(login.keytab) as path:
                store = {"client_keytab": f"FILE:{path}", "ccache": cache}
                found = gssapi.Credentials(name=name, usage="initiate", store=store)
                # This call makes MIT obtain a ticket, or a new one if half of the old one's lifetime is over.
                found.inquire()
            return gssapi.Credentials(name=name, usage="initiate", store={"ccache": cache}), cache
        # Named, or MIT would use the cache of another cluster's login that librdkafka was offered.
        found = gssapi.Credentials(name=name, usage="initiate", store={"ccache": own_cache})
        found.inquire()
        return found, None


def _default_cache() -> str | None:
    """The name that MIT's library uses without KRB5CCNAME, also by krb5.conf; None without the library."""
    context = ctypes.c_void_p()
    try:
        krb5 = ctypes.CDLL(_LIBRARY)
        krb5.krb5_cc_default_name.restype = ctypes.c_char_p
        if krb5.krb5_init_context(ctypes.byref(context)):
            # Of an invalid krb5.conf: the login names it.
            return None
        try:
            name = krb5.krb5_cc_default_name(context)
            return None if name is None else os.fsdecode(name)
        finally:
            krb5.krb5_free_context(context)
    except (OSError, AttributeError):
        return None


def _copy_tickets(gssapi: Any, name: Any, content: bytes, cache: str) -> tuple[Any, str]:
    """The tickets in a cache's content, copied into a cache of this module."""
    with _private_file(content) as path:
        held = gssapi.Credentials(name=name, usage="initiate", store={"ccache": f"FILE:{path}"})
        held.store(store={"ccache": cache}, usage="initiate", overwrite=True, set_default=False)
    return gssapi.Credentials(name=name, usage="initiate", store={"ccache": cache}), cache


def _is_current(credentials: Any) -> bool:
    """True if the ticket has not expired; package gssapi may also raise for an expired one. None never expires."""
    credentials.inquire()
    return credentials.lifetime is None or credentials.lifetime > 0


TICKETS = Tickets()


def kerberos_error(error: Exception, login: KerberosIdentity, where: Where) -> MirrorError:
    """The project's error for one of package gssapi."""
    message = " ".join(str(error).split())
    who = login.principal or "the ticket cache"
    if login.keytab is not None and _NOTHING_HELD in message:
        return AuthenticationError(
            f"the keytab has no key for {who}.",
            where=where,
            action="Check principal and keyTab in sasl.jaas.config; `klist -k` shows the principals of a keytab.",
        )
    if _NO_KDC in message:
        return TransientError(
            f"no response from a KDC to the login of {who}: {message.rstrip('.')}.",
            where=where,
            action="Check krb5.conf on this machine and that the KDC runs.",
        )
    return AuthenticationError(
        f"Kerberos rejected {who}: {message.rstrip('.')}.",
        where=where,
        action="Check principal and keyTab (or the ticket cache) in sasl.jaas.config, sasl.kerberos.service.name, and "
        "that the brokers' host names match their principals.",
    )


def _cache_name(login: KerberosIdentity, content: bytes) -> str:
    return _OURS + hashlib.sha256((login.principal or "").encode() + b"\0" + content).hexdigest()[:32]


@contextmanager
def _private_file(content: bytes) -> Iterator[str]:
    """A temporary file that only this user can read."""
    handle, path = tempfile.mkstemp(prefix="mirror-krb5-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        yield path
    finally:
        Path(path).unlink()
