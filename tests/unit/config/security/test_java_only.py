"""Security settings that only Java can follow. Defaults: SslConfigs, SaslConfigs and SecurityConfig of Kafka 4.3."""

from __future__ import annotations

from mirror_lib.config.security.java_only import java_only_problem

KAFKA = "org.apache.kafka.common.security"


def test_what_only_java_can_do_is_told_with_what_to_do_instead() -> None:
    for name, value in [
        ("sasl.login.class", "com.example.Login"),
        ("sasl.login.callback.handler.class", "software.amazon.msk.auth.iam.IAMClientCallbackHandler"),
        ("sasl.client.callback.handler.class", "com.example.Handler"),
        ("sasl.oauthbearer.jwt.retriever.class", f"{KAFKA}.oauthbearer.JwtBearerJwtRetriever"),
        ("sasl.oauthbearer.jwt.validator.class", "com.example.Validator"),
        ("sasl.oauthbearer.assertion.private.key.file", "/etc/key.pem"),
        ("sasl.oauthbearer.assertion.file", "/etc/assertion"),
        ("ssl.engine.factory.class", "com.example.Factory"),
        ("ssl.provider", "BCJSSE"),
        ("security.providers", "com.example.Creator"),
        ("ssl.keymanager.algorithm", "IbmX509"),
        ("ssl.trustmanager.algorithm", "Custom"),
        ("ssl.keystore.type", "JCEKS"),
        ("ssl.truststore.type", "BCFKS"),
        ("ssl.protocol", "SSLv3"),
    ]:
        problem = java_only_problem(name, value)
        assert problem is not None, name
        assert problem.what, name
        assert problem.action, name


def test_what_says_no_more_than_javas_default_is_nothing_to_complain_of() -> None:
    for name, value in [
        ("sasl.login.callback.handler.class", f"{KAFKA}.oauthbearer.OAuthBearerLoginCallbackHandler"),
        ("sasl.login.callback.handler.class", f"{KAFKA}.oauthbearer.secured.OAuthBearerLoginCallbackHandler"),
        # docs/clouds.md: no Java is needed for these.
        ("sasl.client.callback.handler.class", "software.amazon.msk.auth.iam.IAMClientCallbackHandler"),
        ("sasl.login.callback.handler.class", "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"),
        ("sasl.login.callback.handler.class", "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"),
        ("sasl.oauthbearer.jwt.retriever.class", f"{KAFKA}.oauthbearer.DefaultJwtRetriever"),
        ("sasl.oauthbearer.jwt.validator.class", f"{KAFKA}.oauthbearer.DefaultJwtValidator"),
        # An assertion's details mean nothing without its file.
        ("sasl.oauthbearer.assertion.algorithm", "RS256"),
        ("ssl.engine.factory.class", f"{KAFKA}.ssl.DefaultSslEngineFactory"),
        ("ssl.keymanager.algorithm", "SunX509"),
        ("ssl.trustmanager.algorithm", "PKIX"),
        ("ssl.keystore.type", "jks"),
        ("ssl.truststore.type", "PEM"),
        ("ssl.protocol", "TLSv1.3"),
        ("ssl.provider", ""),
        ("security.providers", " "),
        ("ssl.secure.random.implementation", "SHA1PRNG"),
    ]:
        assert java_only_problem(name, value) is None, name
