"""What logins by tokens add to the core."""

from mirror_lib.feature import Feature, Hook

FEATURE = Feature(
    name="oauth",
    summary="Logins by tokens: of a token endpoint, a file, AWS, Google Cloud, Azure.",
    hooks={Hook.TOKEN_LOGIN: "mirror_lib.features.oauth.login:TokenLogins"},
    imports=("mirror_lib.features.http_client",),
)
