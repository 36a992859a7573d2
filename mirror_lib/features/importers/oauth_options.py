"""Convert logins by Strimzi's OAuth library (`io.strimzi.kafka.oauth.client`) to those of Kafka's own clients. Pure.

Kafka's own login (KIP-768) supports client credentials and token files. The library has further grants, which are not
supported here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mirror_lib.features.importers.questions import Answers, Question

STRIMZI_HANDLER = "io.strimzi.kafka.oauth.client.JaasClientOauthLoginCallbackHandler"
#: Represents the file as which a secret is mounted: `${strimzisecretfile:namespace/name:key}`.
SECRET_FILE = "strimzisecretfile"

_SECRET_VARIABLE = "${strimzisecrets:"
_HANDLER = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"
_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_EXTENSION = "oauth.sasl.extension."
_TOKEN_FILE = "oauth.access.token.location"
#: Options of other grants, with a description.
_UNKNOWN = {
    "oauth.access.token": "an access token in the configuration",
    "oauth.refresh.token": "a refresh token",
    "oauth.password.grant.username": "a user's password (the password grant)",
    "oauth.password.grant.password": "a user's password (the password grant)",
    "oauth.client.assertion": "a client assertion",
    "oauth.client.assertion.location": "a client assertion",
    "oauth.audience": "an audience, which Kafka's own login does not support",
}
_SECONDS = {
    "oauth.connect.timeout.seconds": "sasl.login.connect.timeout.ms",
    "oauth.read.timeout.seconds": "sasl.login.read.timeout.ms",
}
#: Options of the library that are not supported, or that always apply.
_WITHOUT_EFFECT = frozenset(
    {
        "oauth.access.token.is.jwt",
        "oauth.max.token.expiry.seconds",
        "oauth.http.retries",
        "oauth.http.retry.pause.millis",
        "oauth.enable.metrics",
        "oauth.include.accept.header",
        "oauth.client.assertion.type",
        "oauth.ssl.truststore.password",
        "oauth.ssl.truststore.type",
    }
)


@dataclass(frozen=True, slots=True)
class NativeLogin:
    """Settings of Kafka's clients without a prefix, and notes for the reader."""

    settings: Mapping[str, str] = field(repr=False)
    notes: tuple[str, ...] = ()


def strimzi_oauth(options: Mapping[str, str], where: str, alias: str, answers: Answers) -> NativeLogin:
    """Return the same login by Kafka's own client; without settings if there is none, or while that is a question.

    Args:
        options: of the login module, such as `oauth.client.id`.
        where: the place that was read, for display.
        alias: of the cluster.
        answers: to questions about unsupported options.
    """
    options = {name: value for name, value in options.items() if value or name.startswith("oauth.ssl.")}
    others = sorted({_UNKNOWN[name] for name in options if name in _UNKNOWN})
    location = options.get(_TOKEN_FILE)
    if location is None and not options.get("oauth.token.endpoint.uri"):
        others = others or ["no token endpoint"]
    if others:
        answers.ask(
            Question(
                f"login.{alias}",
                f"{where} logs in with {' and '.join(others)}, which is not supported here.",
                (("by-hand", "skip the login, and write another one into the new file (docs/security.md)"),),
            )
        )
        return NativeLogin({}, (f"{where}: its login was skipped, because it logs in with {' and '.join(others)}.",))
    notes: list[str] = []
    settings = {"sasl.login.callback.handler.class": _HANDLER}
    jaas: dict[str, str] = {}
    if location is not None:
        settings["sasl.oauthbearer.token.endpoint.url"] = f"file:{location}"
        notes.append(f"{where}: the file {location} must be on every machine that runs tasks.")
    else:
        settings["sasl.oauthbearer.token.endpoint.url"] = options["oauth.token.endpoint.uri"]
        jaas |= _rename_options(options, {"oauth.client.id": "clientId", "oauth.client.secret": "clientSecret"})
        jaas |= _rename_options(options, {"oauth.scope": "scope"})
        jaas |= _trust(options, where, notes)
    jaas |= {
        f"extension_{name.removeprefix(_EXTENSION)}": value
        for name, value in options.items()
        if name.startswith(_EXTENSION)
    }
    for name, native in _SECONDS.items():
        if options.get(name, "").isdecimal():
            settings[native] = f"{options[name]}000"
    dropped = sorted(name for name in options if name in _WITHOUT_EFFECT and options[name])
    if dropped:
        notes.append(f"{where}: {', '.join(dropped)} of Strimzi's OAuth library have no counterpart and are skipped.")
    texts = " ".join(f'{name}="{_escape(value)}"' for name, value in jaas.items())
    settings["sasl.jaas.config"] = f"{_MODULE} required {texts};".replace("  ;", ";").replace(" ;", ";")
    return NativeLogin(settings, tuple(notes))


def _trust(options: Mapping[str, str], where: str, notes: list[str]) -> dict[str, str]:
    """Return the trust settings for the token endpoint: inside of JAAS a certificate can only be a file."""
    found = _rename_options(
        options, {"oauth.ssl.endpoint.identification.algorithm": "ssl.endpoint.identification.algorithm"}
    )
    certificates = options.get("oauth.ssl.truststore.certificates", "").split("\n")
    if certificates[0].startswith(_SECRET_VARIABLE):
        found["ssl.truststore.location"] = certificates[0].replace(_SECRET_VARIABLE, f"${{{SECRET_FILE}:")
        found["ssl.truststore.type"] = "PEM"
        if len(certificates) > 1:
            notes.append(
                f"{where}: only the first of its tlsTrustedCertificates is used for the token endpoint. Add the "
                "others to the same file."
            )
    elif options.get("oauth.ssl.truststore.location"):
        found["ssl.truststore.location"] = options["oauth.ssl.truststore.location"]
        found |= _rename_options(options, {"oauth.ssl.truststore.password": "ssl.truststore.password"})
    return found


def _rename_options(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    return {new: options[old] for old, new in names.items() if old in options}


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
