"""Tokens of Microsoft Entra ID for Azure Event Hubs, from the default Azure credential (extra `azure`).

For managed identities and workload identities. Client credentials need no extra: `sasl.oauthbearer.token.endpoint.url`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from mirror_lib.errors import AuthenticationError, TransientError, Where
from mirror_lib.features.oauth.cloud_libraries import load_library
from mirror_lib.features.oauth.oauth_tokens import Token, as_token


@dataclass(frozen=True, slots=True)
class AzureToken:
    """A token of the machine's default Azure credential."""

    #: The namespace's scope, such as https://NAMESPACE.servicebus.windows.net/.default.
    scope: str
    #: Of a user-assigned managed identity, or of a workload identity.
    client_id: str | None = None

    def fetch(self, where: Where) -> Token:
        """As `TokenSource.fetch`.

        Raises:
            ConfigurationError: the extra `azure` is not installed.
        """
        load_library("azure.identity", "azure-identity", "azure", where)
        from azure.core.exceptions import AzureError, ClientAuthenticationError
        from azure.identity import DefaultAzureCredential

        client = (
            {}
            if self.client_id is None
            else {
                "managed_identity_client_id": self.client_id,
                "workload_identity_client_id": self.client_id,
            }
        )
        try:
            with DefaultAzureCredential(**client) as credential:
                given = credential.get_token(self.scope)
        except ClientAuthenticationError as error:
            raise AuthenticationError(
                # Its text may repeat the request or the response.
                f"Entra ID returned no token for {self.scope}: {type(error).__name__}.",
                where=where,
                action="Check the managed identity or workload identity of the machine, or the variables AZURE_*, "
                "where runs are planned and on Spark's executors.",
            ) from None
        except (AzureError, ValueError) as error:
            raise TransientError(
                f"Entra ID does not respond to the token request for {self.scope}: {type(error).__name__}.",
                where=where,
                action="Check that the identity endpoint is reachable from here and from Spark's executors.",
            ) from None
        expires = {"expires_in": given.expires_on - time.time()}
        return as_token(given.token, where, "Entra ID", "sub", expires)
