"""Tokens for Amazon MSK with IAM: presigned requests, created by Amazon's own signer (extra `aws`).

Options and their order are those of `MSKCredentialProvider` of aws-msk-iam-auth.
"""

from __future__ import annotations

import logging
import math
import re
import time
from dataclasses import dataclass, field
from typing import Any

from mirror_lib.errors import AuthenticationError, MirrorError, TransientError, Where
from mirror_lib.features.oauth.cloud_libraries import load_library
from mirror_lib.features.oauth.oauth_tokens import Token

DEFAULT_SESSION_NAME = "aws-msk-iam-auth"
_PACKAGE, _EXTRA = "aws-msk-iam-sasl-signer-python", "aws"
#: An error code of AWS. Any other text of a response might repeat a secret.
_CODE = re.compile(r"[A-Za-z0-9.]{1,80}")
#: Minimum remaining lifetime in seconds of credentials that botocore renews: `_mandatory_refresh_timeout`.
_LEAST_LIFE = 600.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StaticKeys:
    """An access key with which a role is assumed."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class MskIamToken:
    """A token signed with the credentials of a profile, an assumed role or AWS's default chain, in this order."""

    region: str
    profile: str | None = None
    role_arn: str | None = None
    role_session_name: str = DEFAULT_SESSION_NAME
    role_external_id: str | None = None
    role_keys: StaticKeys | None = None
    #: The region of STS; None uses the cluster's.
    sts_region: str | None = None
    log_identity: bool = False

    def fetch(self, where: Where) -> Token:
        """As `TokenSource.fetch`.

        Raises:
            ConfigurationError: the extra `aws` is not installed.
        """
        load_library("aws_msk_iam_sasl_signer", _PACKAGE, _EXTRA, where)
        from aws_msk_iam_sasl_signer import MSKAuthTokenProvider
        from botocore.exceptions import BotoCoreError, ClientError

        began = time.time()
        try:
            credentials, ends = self._credentials(where)
            signed, expires_ms = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(
                self.region, _provider(credentials)
            )
        except (BotoCoreError, ClientError) as error:
            raise self._error(error, where) from None
        if self.log_identity:
            self._log_identity(credentials)
        return Token(signed, began, min(expires_ms / 1000, ends), credentials.access_key)

    def _credentials(self, where: Where) -> tuple[Any, float]:
        """The current credentials, and their expiry if known (epoch seconds)."""
        from botocore.exceptions import BotoCoreError, ClientError

        named = [
            (kind, load)
            for kind, name, load in (
                (f"profile {self.profile}", self.profile, self._of_profile),
                (f"role {self.role_arn}", self.role_arn, self._of_role),
            )
            if name
        ]
        for kind, load in named:
            try:
                if (found := load()) is not None:
                    return found
            except (BotoCoreError, ClientError) as error:
                failure = self._error(error, where)
                if isinstance(failure, TransientError):
                    # Java's chain would continue with another identity.
                    raise failure from None
                _log.warning("cluster %s: %s returns no credentials: %s", where.cluster, kind, failure.what)
        found = _frozen(_session().get_credentials())
        if found is None:
            raise AuthenticationError(
                f"no AWS credentials were found{''.join(f', nor any of {kind}' for kind, _ in named)}.",
                where=where,
                action="Set awsProfileName or awsRoleArn in sasl.jaas.config, or provide credentials by the "
                "environment, a profile, a web identity, or the role of the machine: where runs are planned and "
                "on Spark's executors.",
            )
        return found

    def _of_profile(self) -> tuple[Any, float] | None:
        return _frozen(_session(self.profile).get_credentials())

    def _of_role(self) -> tuple[Any, float]:
        from botocore.credentials import ReadOnlyCredentials

        keys = self.role_keys
        given = (
            {}
            if keys is None
            else {
                "aws_access_key_id": keys.access_key_id,
                "aws_secret_access_key": keys.secret_access_key,
                "aws_session_token": keys.session_token,
            }
        )
        request = {"RoleArn": self.role_arn, "RoleSessionName": self.role_session_name}
        # As in Java: an external id is used only with the default credentials.
        if self.role_external_id and keys is None:
            request["ExternalId"] = self.role_external_id
        assumed = self._sts(**given).assume_role(**request)["Credentials"]
        return (
            ReadOnlyCredentials(assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"], None),
            assumed["Expiration"].timestamp(),
        )

    def _sts(self, **keys: str | None) -> Any:
        return _session().create_client("sts", region_name=self.sts_region or self.region, **keys)

    def _log_identity(self, credentials: Any) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            response = self._sts(
                aws_access_key_id=credentials.access_key,
                aws_secret_access_key=credentials.secret_key,
                aws_session_token=credentials.token,
            ).get_caller_identity()
        except (BotoCoreError, ClientError) as error:
            _log.warning("awsDebugCreds: the identity of the AWS credentials is unknown: %s", _code(error))
        else:
            _log.info("awsDebugCreds: the AWS credentials are those of %s", response.get("Arn"))

    def _error(self, error: Exception, where: Where) -> MirrorError:
        from botocore.exceptions import ConnectionError as NotConnected
        from botocore.exceptions import HTTPClientError

        if isinstance(error, HTTPClientError | NotConnected) or _status(error) >= 500:
            return TransientError(
                f"AWS does not respond to the credentials request: {_code(error)}.",
                where=where,
                action="Check that STS, or the machine's metadata service, is reachable from here and from Spark's "
                "executors; awsStsRegion in sasl.jaas.config sets STS's region.",
            )
        return AuthenticationError(
            f"AWS returned no credentials for this login: {_code(error)}.",
            where=where,
            action="Check awsProfileName and awsRoleArn in sasl.jaas.config, the role's trust policy, and the "
            "credentials of the machine.",
        )


def _session(profile: str | None = None) -> Any:
    from botocore.session import Session

    return Session(profile=profile) if profile else Session()


def _frozen(credentials: Any) -> tuple[Any, float] | None:
    from botocore.credentials import RefreshableCredentials

    if credentials is None:
        return None
    frozen = credentials.get_frozen_credentials()
    if not frozen.access_key or not frozen.secret_key:
        return None
    return frozen, time.time() + _LEAST_LIFE if isinstance(credentials, RefreshableCredentials) else math.inf


def _provider(credentials: Any) -> Any:
    """Credentials in the form that the signer accepts from callers."""
    from botocore.credentials import CredentialProvider

    class Given(CredentialProvider):  # type: ignore[misc]
        def load(self) -> Any:
            return credentials

    return Given()


def _response(error: Exception) -> dict[str, Any]:
    response = getattr(error, "response", None)
    return response if isinstance(response, dict) else {}


def _status(error: Exception) -> int:
    """The HTTP status of an error response, else 0."""
    return int(_response(error).get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _code(error: Exception) -> str:
    """AWS's code of an error; else its class name."""
    code = _response(error).get("Error", {}).get("Code")
    return code if isinstance(code, str) and _CODE.fullmatch(code) else type(error).__name__
