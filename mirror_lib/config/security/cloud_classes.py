"""Java classes by which clients log in to cloud services, as files of MirrorMaker 2 name them. Pure.

Their logins are implemented without Java: `mirror_lib.features.oauth.cloud_logins` has the tokens.
"""

from __future__ import annotations

#: The SASL mechanism of Amazon MSK's login module; the brokers accept the same credentials by OAUTHBEARER.
AWS_MSK_IAM = "AWS_MSK_IAM"
#: Mechanisms that both clients support.
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", AWS_MSK_IAM)
#: `sasl.client.callback.handler.class` for `AWS_MSK_IAM`.
MSK_CLIENT_HANDLER = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
#: `sasl.login.callback.handler.class` for `OAUTHBEARER`.
MSK_LOGIN_HANDLER = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
GOOGLE_LOGIN_HANDLER = "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler"
AZURE_LOGIN_HANDLERS = frozenset(
    {
        "com.azure.spring.cloud.service.implementation.kafka.KafkaOAuth2AuthenticateCallbackHandler",
        # Its name before version 5.
        "com.azure.spring.cloud.service.kafka.KafkaOAuth2AuthenticateCallbackHandler",
    }
)
LOGIN_HANDLERS = frozenset({MSK_LOGIN_HANDLER, GOOGLE_LOGIN_HANDLER}) | AZURE_LOGIN_HANDLERS
