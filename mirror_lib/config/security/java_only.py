"""Security properties of Java clients that only a Java process supports. Pure.

A value equal to Java's default is not a problem.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mirror_lib.config.security.cloud_classes import LOGIN_HANDLERS, MSK_CLIENT_HANDLER

_KAFKA = "org.apache.kafka.common.security."
_OAUTH_LOGIN = frozenset(
    {
        f"{_KAFKA}oauthbearer.OAuthBearerLoginCallbackHandler",
        # Its name before Kafka 4.0.
        f"{_KAFKA}oauthbearer.secured.OAuthBearerLoginCallbackHandler",
        f"{_KAFKA}oauthbearer.internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler",
        f"{_KAFKA}authenticator.AbstractLogin$DefaultLoginCallbackHandler",
        *LOGIN_HANDLERS,
    }
)
_LOGINS = frozenset(
    {
        f"{_KAFKA}authenticator.DefaultLogin",
        f"{_KAFKA}kerberos.KerberosLogin",
        f"{_KAFKA}oauthbearer.internals.OAuthBearerRefreshingLogin",
    }
)
_CLIENT_HANDLERS = frozenset(
    {
        f"{_KAFKA}authenticator.SaslClientCallbackHandler",
        f"{_KAFKA}oauthbearer.internals.OAuthBearerSaslClientCallbackHandler",
        f"{_KAFKA}scram.internals.ScramSaslClientCallbackHandler",
        MSK_CLIENT_HANDLER,
    }
)
_RETRIEVERS = frozenset(
    f"{_KAFKA}oauthbearer.{name}"
    for name in ("DefaultJwtRetriever", "ClientCredentialsJwtRetriever", "FileJwtRetriever")
)
_VALIDATORS = frozenset(f"{_KAFKA}oauthbearer.{name}" for name in ("DefaultJwtValidator", "ClientJwtValidator"))
_STORES = frozenset({"JKS", "PKCS12", "PEM"})
_CONVERT = "Convert the store: keytool -importkeystore -deststoretype PKCS12"
_NOT_OWN = "is not an algorithm of Java's own providers"
_ASSERTION = (
    "client assertions are not supported, only client credentials and token files",
    "Use clientId and clientSecret in sasl.jaas.config, or let another program write a token to a file and set "
    "sasl.oauthbearer.token.endpoint.url=file:/path",
)
#: Properties that Java reads only together with an assertion's key or file.
_ASSERTION_KEYS = frozenset(
    {
        "sasl.oauthbearer.assertion.file",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.assertion.template.file",
    }
)


@dataclass(frozen=True, slots=True)
class JavaOnly:
    """Why a value is not supported, to be read after the property's name, and what to do."""

    what: str
    action: str


def java_only_problem(name: str, value: str) -> JavaOnly | None:
    """Return the problem of a client's property that only Java supports; None if there is none."""
    text = value.strip()
    check = _CHECKS.get(name)
    if not text or check is None:
        return None
    found = check(text)
    return None if found is None else JavaOnly(*found)


_Check = Callable[[str], tuple[str, str] | None]


def _class(known: frozenset[str], instead: str) -> _Check:
    return lambda text: None if text in known else (f"the Java class {text} cannot run here", instead)


def _value(known: frozenset[str], what: str, instead: str) -> _Check:
    return lambda text: None if text.upper() in known else (f"{text} {what}", instead)


def _never(what: str, instead: str) -> _Check:
    return lambda _: (what, instead)


_CHECKS: dict[str, _Check] = {
    "sasl.login.class": _class(_LOGINS, "Remove it; sasl.jaas.config defines the login."),
    "sasl.login.callback.handler.class": _class(
        _OAUTH_LOGIN,
        "Log in with client credentials (clientId and clientSecret in sasl.jaas.config), or let another program "
        "write a token to a file and set sasl.oauthbearer.token.endpoint.url=file:/path; docs/clouds.md has the "
        "logins of AWS, Google Cloud and Azure.",
    ),
    "sasl.client.callback.handler.class": _class(
        _CLIENT_HANDLERS, "Remove it, and set the credentials in sasl.jaas.config."
    ),
    "sasl.oauthbearer.jwt.retriever.class": _class(
        _RETRIEVERS, "Remove it: client credentials and token files are supported."
    ),
    "sasl.oauthbearer.jwt.validator.class": _class(
        _VALIDATORS, "Remove it: brokers validate tokens, clients only need their expiry."
    ),
    **dict.fromkeys(_ASSERTION_KEYS, _never(*_ASSERTION)),
    "ssl.engine.factory.class": _class(
        frozenset({f"{_KAFKA}ssl.DefaultSslEngineFactory"}),
        "Set key and certificates with ssl.keystore.* and ssl.truststore.*.",
    ),
    "ssl.provider": _value(
        frozenset({"SUNJSSE"}), "is a Java provider; OpenSSL is used here", "Remove it, or leave it empty."
    ),
    "security.providers": _never("Java providers cannot run here; OpenSSL is used", "Remove it, or leave it empty."),
    "ssl.keymanager.algorithm": _value(frozenset({"SUNX509", "NEWSUNX509", "PKIX"}), _NOT_OWN, "Remove it."),
    "ssl.trustmanager.algorithm": _value(
        frozenset({"PKIX", "SUNX509", "X509", "SUNPKIX", "X.509"}),
        "is not an algorithm of Java's own providers",
        "Remove it.",
    ),
    "ssl.keystore.type": _value(_STORES, "stores are not supported", f"{_CONVERT}; JKS and PEM are supported too."),
    "ssl.truststore.type": _value(_STORES, "stores are not supported", f"{_CONVERT}; JKS and PEM are supported too."),
    "ssl.protocol": _value(
        frozenset({"TLS", "TLSV1", "TLSV1.1", "TLSV1.2", "TLSV1.3"}),
        "is not supported",
        "Remove it; ssl.enabled.protocols selects the versions.",
    ),
}
