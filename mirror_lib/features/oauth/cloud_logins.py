"""Logins to cloud services: maps a Java client's properties to the service's tokens."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mirror_lib.cluster.auth.jaas import JaasEntry
from mirror_lib.config.security.cloud_classes import (
    AWS_MSK_IAM,
    AZURE_LOGIN_HANDLERS,
    GOOGLE_LOGIN_HANDLER,
    MSK_LOGIN_HANDLER,
)
from mirror_lib.errors import ConfigurationError, Where
from mirror_lib.features.oauth.azure_tokens import AzureToken
from mirror_lib.features.oauth.cloud_hosts import AMAZON, AZURE, GOOGLE, CloudHosts
from mirror_lib.features.oauth.google_tokens import GoogleToken
from mirror_lib.features.oauth.msk_tokens import DEFAULT_SESSION_NAME, MskIamToken, StaticKeys
from mirror_lib.features.oauth.oauth_tokens import TokenSource

_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
#: A label of a host name that is a region, such as eu-central-1 or us-gov-west-1.
_REGION = re.compile(
    r"(?:^|\.)((?:[a-z]{2}|us-gov|us-iso[a-z]?|eu-isoe|eusc-de)-"
    r"(?:north|south|east|west|central|northeast|northwest|southeast|southwest)-[0-9]{1,2})(?=\.|$)"
)
#: `GcpLoginCallbackHandler` reads it: the principal if the credentials do not contain one.
_GOOGLE_PRINCIPAL = "GOOGLE_MANAGED_KAFKA_AUTH_PRINCIPAL"


class CloudLogin(NamedTuple):
    """The source of a cloud service's tokens, and the hosts that may get them."""

    source: TokenSource
    hosts: CloudHosts


def cloud_login(mechanism: str, properties: Mapping[str, str], jaas: JaasEntry, where: Where) -> CloudLogin | None:
    """Return the login of a cloud service; None if the properties use no such service.

    Raises:
        ConfigurationError: a property is missing, or is not supported, or a bootstrap server may not get a token.
    """
    service = _service(mechanism, properties)
    if service is None:
        return None
    servers = _hosts(properties)
    hosts = service.with_operators()
    hosts.refuse_others(servers, properties.get("security.protocol", "").strip().upper(), where)
    if service is AMAZON:
        return CloudLogin(_msk(servers, jaas.options, where), hosts)
    if service is GOOGLE:
        return CloudLogin(GoogleToken(os.environ.get(_GOOGLE_PRINCIPAL) or None), hosts)
    return CloudLogin(_azure(servers, jaas.options, where), hosts)


def _service(mechanism: str, properties: Mapping[str, str]) -> CloudHosts | None:
    handler = properties.get("sasl.login.callback.handler.class", "").strip()
    if mechanism == AWS_MSK_IAM or (mechanism == "OAUTHBEARER" and handler == MSK_LOGIN_HANDLER):
        return AMAZON
    if mechanism == "OAUTHBEARER" and handler == GOOGLE_LOGIN_HANDLER:
        return GOOGLE
    if mechanism == "OAUTHBEARER" and handler in AZURE_LOGIN_HANDLERS:
        return AZURE
    return None


def region_of(hosts: Sequence[str]) -> str | None:
    """Return the AWS region in the first host name that contains one."""
    found = (_REGION.search(host.lower()) for host in hosts)
    return next((match.group(1) for match in found if match is not None), None)


def _hosts(properties: Mapping[str, str]) -> list[str]:
    servers = (part.strip() for part in properties.get("bootstrap.servers", "").split(","))
    return [server.rpartition("://")[2].rpartition(":")[0] for server in servers if server]


def _msk(hosts: Sequence[str], options: Mapping[str, str], where: Where) -> MskIamToken:
    region = region_of(hosts) or next(filter(None, map(os.environ.get, _REGION_VARIABLES)), None)
    if region is None:
        raise ConfigurationError(
            f"the AWS region of {', '.join(hosts)} is unknown: the host names contain none, and "
            f"{' and '.join(_REGION_VARIABLES)} are not set.",
            where=where,
            action="Set the environment variable AWS_REGION where runs are planned.",
        )
    pair = options.get("awsRoleAccessKeyId"), options.get("awsRoleSecretAccessKey")
    if any(pair) and not all(pair):
        raise ConfigurationError(
            "sasl.jaas.config has only one of awsRoleAccessKeyId and awsRoleSecretAccessKey.",
            where=where,
            action="Set both, or none for the default credentials.",
        )
    keys = StaticKeys(pair[0], pair[1], options.get("awsRoleSessionToken")) if pair[0] and pair[1] else None
    return MskIamToken(
        region,
        profile=options.get("awsProfileName") or None,
        role_arn=options.get("awsRoleArn") or None,
        role_session_name=options.get("awsRoleSessionName") or DEFAULT_SESSION_NAME,
        role_external_id=options.get("awsRoleExternalId") or None,
        role_keys=keys,
        sts_region=options.get("awsStsRegion") or None,
        # As in Java: exactly this text.
        log_identity=options.get("awsDebugCreds") == "true",
    )


def _azure(hosts: Sequence[str], options: Mapping[str, str], where: Where) -> AzureToken:
    if "azure.credential.client-secret" in options:
        raise ConfigurationError(
            "sasl.jaas.config contains azure.credential.client-secret, which this login does not use.",
            where=where,
            action="Remove sasl.login.callback.handler.class, and set clientId, clientSecret and "
            "scope=https://NAMESPACE.servicebus.windows.net/.default in sasl.jaas.config with "
            "sasl.oauthbearer.token.endpoint.url=https://login.microsoftonline.com/TENANT/oauth2/v2.0/token.",
        )
    if not hosts:
        raise ConfigurationError(
            "bootstrap.servers is not set.", where=where, action="Set it to NAMESPACE.servicebus.windows.net:9093."
        )
    return AzureToken(f"https://{hosts[0]}/.default", options.get("azure.credential.client-id") or None)
