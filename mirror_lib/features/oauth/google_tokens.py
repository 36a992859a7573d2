"""Tokens for Google Cloud's Managed Service for Apache Kafka, by application default credentials (extra `gcp`).

Format as in `GcpLoginCallbackHandler`: an access token in the place of a JSON Web Token's signature.
"""

from __future__ import annotations

import base64
import json
import time
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from mirror_lib.errors import AuthenticationError, TransientError, Where
from mirror_lib.features.oauth.cloud_libraries import load_library
from mirror_lib.features.oauth.oauth_tokens import Token

_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_HEADER = {"typ": "JWT", "alg": "GOOG_OAUTH2_TOKEN"}


@dataclass(frozen=True, slots=True)
class GoogleToken:
    """A token of the machine's application default credentials."""

    #: The token's principal; None for the credentials' service account.
    principal: str | None = None

    def fetch(self, where: Where) -> Token:
        """As `TokenSource.fetch`.

        Raises:
            ConfigurationError: the extra `gcp` is not installed.
        """
        load_library("google.auth.transport.requests", "google-auth", "gcp", where)
        import google.auth
        from google.auth.exceptions import GoogleAuthError, TransportError
        from google.auth.transport.requests import Request

        began = time.time()
        try:
            credentials, _ = google.auth.default(scopes=[_SCOPE])
            credentials.refresh(Request())
        except (GoogleAuthError, ValueError, OSError) as error:
            # Its text may repeat the request or the response.
            name = type(error).__name__
            if isinstance(error, TransportError) or getattr(error, "retryable", False):
                raise TransientError(
                    f"Google does not respond to the token request: {name}.",
                    where=where,
                    action="Check that Google's token endpoint, or the machine's metadata server, is reachable from "
                    "here and from Spark's executors.",
                ) from None
            raise AuthenticationError(
                f"Google returned no token for this login: {name}.",
                where=where,
                action="Check the application default credentials (GOOGLE_APPLICATION_CREDENTIALS, or the service "
                "account of the machine) where runs are planned and on Spark's executors.",
            ) from None
        principal = self.principal or _account(credentials)
        if principal is None:
            raise AuthenticationError(
                "Google's application default credentials contain no service account.",
                where=where,
                action="Use those of a service account, or set GOOGLE_MANAGED_KAFKA_AUTH_PRINCIPAL to the principal "
                "where runs are planned.",
            )
        ends = credentials.expiry.replace(tzinfo=UTC).timestamp()
        claims = {"iss": "Google", "iat": began, "exp": ends, "scope": "kafka", "sub": principal}
        parts = (json.dumps(_HEADER), json.dumps(claims), str(credentials.token))
        return Token(".".join(map(_base64url, parts)), began, ends, principal)


def _account(credentials: Any) -> str | None:
    account = getattr(credentials, "service_account_email", None)
    # The value is `default` until the machine's metadata is read.
    return account if isinstance(account, str) and "@" in account else None


def _base64url(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()
