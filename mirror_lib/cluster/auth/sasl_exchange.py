"""OAUTHBEARER, GSSAPI and SCRAM on aiokafka's connections, as Kafka's brokers expect them.

aiokafka treats a rejected token as accepted (it sends a token and ignores the response), supports one Kerberos identity
per process, and computes any number of SCRAM's iterations. Importing this module patches its connections: logins with
an `OwnExchange`, and those that use SCRAM, use their own code. Separate from `sasl`, so that reading a configuration
does not load aiokafka.
"""

from __future__ import annotations

from typing import Any, Protocol

from aiokafka.abc import AbstractTokenProvider
from aiokafka.conn import AIOKafkaConnection, ScramAuthenticator
from aiokafka.errors import AuthenticationFailedError

from mirror_lib.errors import AuthenticationError
from mirror_lib.outside_limits import SCRAM_FEWEST_ITERATIONS, SCRAM_MOST_ITERATIONS

#: The bytes to send, and whether a response follows; None at the end.
Step = tuple[bytes, bool] | None


class Authenticator(Protocol):
    """The client's side of one exchange, as aiokafka drives it."""

    async def step(self, payload: bytes | None) -> Step:
        """The next message, for the broker's response.

        Raises:
            AuthenticationFailedError: there is none; its cause is the project's error.
        """
        ...


class OwnExchange:
    """Parameters of a login whose exchange is not aiokafka's."""

    def authenticator(self, host: str) -> Authenticator:
        """The exchange with a broker."""
        raise NotImplementedError


class OwnTokens(AbstractTokenProvider, OwnExchange):  # type: ignore[misc]
    """Tokens, of a type that aiokafka accepts."""


def refused_login(error: object) -> Exception:
    """An error as aiokafka's background tasks handle it; they know only their own."""
    refused: Exception = AuthenticationFailedError(str(error))
    return refused


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


def _exchange(parameters: Any, connection: Any, aiokafkas: Any) -> Any:
    if isinstance(parameters, OwnExchange):
        return parameters.authenticator(connection.host)
    return aiokafkas(connection)


def _oauth(connection: Any) -> Any:
    # As aiokafka's own method reads it.
    return _exchange(connection._sasl_oauth_token_provider, connection, _AIOKAFKA_OAUTH)  # noqa: SLF001


def _gssapi(connection: Any) -> Any:
    # As aiokafka's own method reads it.
    return _exchange(connection._sasl_kerberos_service_name, connection, _AIOKAFKA_GSSAPI)  # noqa: SLF001


_AIOKAFKA_OAUTH, _AIOKAFKA_GSSAPI = AIOKafkaConnection.authenticator_oauth, AIOKafkaConnection.authenticator_gssapi
AIOKafkaConnection.authenticator_oauth, AIOKafkaConnection.authenticator_gssapi = _oauth, _gssapi
AIOKafkaConnection.authenticator_scram = _scram
