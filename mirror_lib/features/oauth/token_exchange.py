"""OAUTHBEARER on aiokafka's connections, as Kafka's brokers expect it.

aiokafka treats a rejected token as accepted: it sends a token and ignores the response.
"""

from __future__ import annotations

import asyncio

from mirror_lib.cluster.auth.sasl_exchange import OwnTokens, Step, refused_login
from mirror_lib.errors import MirrorError, Where
from mirror_lib.features.oauth.cloud_hosts import CloudHosts
from mirror_lib.features.oauth.oauth_tokens import TokenSource, forget_token, token_of


class TokenProvider(OwnTokens):
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

    def authenticator(self, host: str) -> TokenAuthenticator:
        """As `OwnExchange.authenticator`."""
        return TokenAuthenticator(self, host)

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
            raise refused_login(error) from error
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
