"""OAUTHBEARER, GSSAPI and SCRAM on aiokafka's connections, as Kafka's brokers expect them.

aiokafka treats a rejected token as accepted (it sends a token and ignores the response), supports one Kerberos identity
per process, and computes any number of SCRAM's iterations. Importing this module patches its connections: those with a
`TokenProvider` or a `KerberosService`, and those that use SCRAM, use this code. Separate from `sasl`, so that reading a
configuration does not load aiokafka.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any, Self

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, ScramAuthenticator
from aiokafka.errors import AuthenticationFailedError

from mirror_lib.cluster.auth.cloud_hosts import CloudHosts
from mirror_lib.cluster.auth.kerberos_tickets import KerberosIdentity, kerberos_error
from mirror_lib.cluster.auth.oauth_tokens import TokenSource, forget_token, token_of
from mirror_lib.errors import AuthenticationError, MirrorError, Where
from mirror_lib.outside_limits import SCRAM_FEWEST_ITERATIONS, SCRAM_MOST_ITERATIONS

#: The bytes to send, and whether a response follows; None at the end.
Step = tuple[bytes, bool] | None

#: RFC 4752: no security layer, so no message of any size.
_NO_SECURITY_LAYER = b"\x01\x00\x00\x00"


class TokenProvider(AbstractTokenProvider):  # type: ignore[misc]
    """Provides each new connection with a token that is fresh enough."""

    def __init__(
        self,
        source: TokenSource,
        extensions: tuple[tuple[str, str], ...],
        where: Where,
        hosts: CloudHosts | None = None,
    ) -> None:
        self._source = source
        self._hosts = hosts
        self._extensions = extensions
        self._where = where

    async def token(self, host: str = "") -> str:
        """The token.

        Args:
            host: of the broker that gets it; it may be from another broker's metadata.

        Raises:
            AuthenticationFailedError: there is none; its cause is the project's error.
        """
        loop = asyncio.get_running_loop()
        try:
            if self._hosts is not None:
                self._hosts.refuse_others([host], "", self._where)
            token = await loop.run_in_executor(None, token_of, self._source, self._where)
        except MirrorError as error:
            # aiokafka's background tasks handle only its own errors.
            raise AuthenticationFailedError(str(error)) from error
        return token.value

    def extensions(self) -> dict[str, str]:
        """SASL extensions (KIP-342)."""
        return dict(self._extensions)

    def drop_token(self, token: str) -> None:
        """Drop the token that a broker has rejected: the next connection gets a new one."""
        forget_token(self._source, token)


class TokenAuthenticator:
    """The client's side of one exchange (RFC 7628), as aiokafka drives it."""

    def __init__(self, provider: TokenProvider, host: str) -> None:
        self._provider = provider
        self._host = host
        self._sent: str | None = None

    async def step(self, payload: bytes | None) -> Step:
        """The next message, for the broker's response."""
        if self._sent is None:
            self._sent = await self._provider.token(self._host)
            pairs = {"auth": f"Bearer {self._sent}", **self._provider.extensions()}
            extensions = "\x01".join(f"{name}={value}" for name, value in pairs.items())
            return f"n,,\x01{extensions}\x01\x01".encode(), True
        if not payload:
            return None
        # A response with content is a rejection; the broker returns its error after an acknowledgement.
        self._provider.drop_token(self._sent)
        return b"\x01", True


class KerberosService(str):
    """The brokers' service name, with the login for it."""

    login: KerberosIdentity
    where: Where

    @classmethod
    def of(cls, login: KerberosIdentity, where: Where) -> Self:
        """The service name of a login."""
        service = cls(login.service)
        service.login, service.where = login, where
        return service


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
            raise AuthenticationFailedError(str(error)) from kerberos_error(error, login, where)
        except MirrorError as error:
            raise AuthenticationFailedError(str(error)) from error

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
            raise AuthenticationFailedError(
                "the broker requires a security layer of Kerberos, which Kafka does not have"
            )
        yield context.wrap(_NO_SECURITY_LAYER, False).message, True


class BoundedScram(ScramAuthenticator):  # type: ignore[misc]
    """The client's side of SCRAM (RFC 5802). A broker chooses the number of iterations, without knowing the password.

    With few of them, an impostor can guess the password offline from the client's proof; billions never end.
    """

    def process_server_first_message(self, server_first: str) -> None:
        """As in aiokafka, within the limits.

        Raises:
            AuthenticationFailedError: the number is outside of them; its cause is the project's error.
        """
        iterations = int(dict(pair.split("=", 1) for pair in server_first.split(","))["i"])
        if not SCRAM_FEWEST_ITERATIONS <= iterations <= SCRAM_MOST_ITERATIONS:
            error = AuthenticationError(
                f"the broker asks for {iterations} iterations of SCRAM, which must be {SCRAM_FEWEST_ITERATIONS:,} to "
                f"{SCRAM_MOST_ITERATIONS:,}: no proof of the password was sent.",
                action="Check that this is the broker, and use security.protocol=SASL_SSL. If it is, set the password "
                "again: kafka-configs.sh --alter --add-config 'SCRAM-SHA-512=[iterations=8192,password=...]'.",
            )
            raise AuthenticationFailedError(str(error)) from error
        super().process_server_first_message(server_first)

    def _step(self, payload: bytes | None) -> Step:
        try:
            found: Step = super()._step(payload)
        except (ValueError, KeyError) as error:
            raise AuthenticationFailedError(f"the broker's message is not SCRAM: {type(error).__name__}") from error
        return found


def _scram(connection: Any) -> BoundedScram:
    return BoundedScram(
        loop=connection._loop,  # noqa: SLF001  # as aiokafka's own method reads them
        sasl_plain_password=connection._sasl_plain_password,  # noqa: SLF001
        sasl_plain_username=connection._sasl_plain_username,  # noqa: SLF001
        sasl_mechanism=connection._sasl_mechanism,  # noqa: SLF001
    )


def _oauth(connection: Any) -> Any:
    provider = connection._sasl_oauth_token_provider  # noqa: SLF001  # as aiokafka's own method reads it
    if isinstance(provider, TokenProvider):
        return TokenAuthenticator(provider, connection.host)
    return _AIOKAFKA_OAUTH(connection)


def _gssapi(connection: Any) -> Any:
    service = connection._sasl_kerberos_service_name  # noqa: SLF001  # as aiokafka's own method reads it
    if isinstance(service, KerberosService):
        return KerberosAuthenticator(service, connection.host)
    return _AIOKAFKA_GSSAPI(connection)


_AIOKAFKA_OAUTH, _AIOKAFKA_GSSAPI = AIOKafkaConnection.authenticator_oauth, AIOKafkaConnection.authenticator_gssapi
AIOKafkaConnection.authenticator_oauth, AIOKafkaConnection.authenticator_gssapi = _oauth, _gssapi
AIOKafkaConnection.authenticator_scram = _scram
