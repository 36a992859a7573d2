"""GSSAPI on aiokafka's connections, which support one Kerberos identity per process."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Self

from mirror_lib.cluster.auth.sasl_exchange import OwnExchange, Step, refused_login
from mirror_lib.errors import MirrorError, Where
from mirror_lib.features.kerberos.tickets import KerberosIdentity, kerberos_error

#: RFC 4752: no security layer, so no message of any size.
_NO_SECURITY_LAYER = b"\x01\x00\x00\x00"


class KerberosService(str, OwnExchange):
    """The brokers' service name, with the login for it."""

    login: KerberosIdentity
    where: Where

    @classmethod
    def of(cls, login: KerberosIdentity, where: Where) -> Self:
        """The service name of a login."""
        service = cls(login.service)
        service.login, service.where = login, where
        return service

    def authenticator(self, host: str) -> KerberosAuthenticator:
        """As `OwnExchange.authenticator`."""
        return KerberosAuthenticator(self, host)


class KerberosAuthenticator:
    """The client's side of one exchange (RFC 4752), as aiokafka drives it."""

    def __init__(self, service: KerberosService, host: str) -> None:
        self._service = service
        self._host = host
        self._exchange = self._messages()

    async def step(self, payload: bytes | None) -> Step:
        """The next message, for the broker's response.

        Raises:
            AuthenticationFailedError: there is no ticket; its cause is the project's error.
        """
        return await asyncio.get_running_loop().run_in_executor(None, self._step, payload)

    def _step(self, payload: bytes | None) -> Step:
        import gssapi

        login, where = self._service.login, self._service.where
        try:
            return self._exchange.send(payload)
        except StopIteration:
            return None
        except gssapi.exceptions.GSSError as error:
            raise refused_login(error) from kerberos_error(error, login, where)
        except MirrorError as error:
            raise refused_login(error) from error

    def _messages(self) -> Generator[tuple[bytes, bool], bytes | None, None]:
        import gssapi

        credentials = self._service.login.credentials(self._service.where)
        name = gssapi.Name(f"{self._service}@{self._host}", name_type=gssapi.NameType.hostbased_service)
        context = gssapi.SecurityContext(
            name=name.canonicalize(gssapi.MechType.kerberos), creds=credentials, usage="initiate"
        )
        response: bytes | None = None
        while not context.complete:
            response = yield context.step(response) or b"", True
        offered = context.unwrap(response).message
        if len(offered) != len(_NO_SECURITY_LAYER) or not offered[0] & _NO_SECURITY_LAYER[0]:
            raise refused_login("the broker requires a security layer of Kerberos, which Kafka does not have")
        yield context.wrap(_NO_SECURITY_LAYER, False).message, True
