"""What logins by Kerberos add to the core."""

from mirror_lib.feature import Feature, Hook

FEATURE = Feature(
    name="kerberos",
    summary="Logins by Kerberos (`sasl.mechanism=GSSAPI`).",
    hooks={Hook.KERBEROS_LOGIN: "mirror_lib.features.kerberos.login:KerberosLogins"},
)
