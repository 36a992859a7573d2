"""Java's names of TLS versions and cipher suites. The pairs of names are those of `openssl ciphers -stdname`."""

from __future__ import annotations

import ssl

import pytest

from mirror_lib.config.security.tls import TLS13_SUITES, TlsVersions, TlsVersionsError, openssl_name, tls_versions

ALL13 = ",".join(TLS13_SUITES)
OLDER = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


def test_a_suite_of_java_has_another_name_in_openssl_or_is_not_spoken(subtests: pytest.Subtests) -> None:
    for java, openssl in [
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_DHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "DHE-RSA-CHACHA20-POLY1305"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("TLS_RSA_WITH_AES_256_CBC_SHA256", "AES256-SHA256"),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", "AES128-SHA"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "ECDHE-ECDSA-AES128-SHA"),
        ("TLS_ECDHE_ECDSA_WITH_AES_128_CCM", "ECDHE-ECDSA-AES128-CCM"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_CCM_8", "ECDHE-ECDSA-AES256-CCM8"),
    ]:
        with subtests.test(java):
            assert openssl_name(java) == openssl
            # OpenSSL takes it, at the lowest security level at least.
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).set_ciphers(f"{openssl}:@SECLEVEL=0")

    for suite in [
        "TLS_RSA_WITH_RC4_128_SHA",
        "SSL_RSA_WITH_3DES_EDE_CBC_SHA",
        "TLS_RSA_WITH_NULL_SHA256",
        "TLS_DH_anon_X",
        "",
        "A",
    ]:
        with subtests.test(suite), pytest.raises(TlsVersionsError, match=f"ssl.cipher.suites: {suite} is unknown"):
            openssl_name(suite)


def test_versions_and_suites_together_say_what_may_be_spoken_or_are_refused(subtests: pytest.Subtests) -> None:
    for protocols, suites, expected in [
        (None, None, TlsVersions()),
        ("TLSv1.2,TLSv1.3", "", TlsVersions()),
        ("TLSv1, TLSv1.1, TLSv1.2", None, TlsVersions(tls13=False)),
        ("TLSv1.3", None, TlsVersions(tls12=False)),
        # Java ends with the versions that have a suite.
        (None, OLDER, TlsVersions(tls13=False, ciphers=("ECDHE-ECDSA-AES128-GCM-SHA256",))),
        (None, ALL13, TlsVersions(tls12=False)),
        (None, f"{ALL13},{OLDER}", TlsVersions(ciphers=("ECDHE-ECDSA-AES128-GCM-SHA256",))),
        ("TLSv1.2", f"TLS_AES_128_GCM_SHA256,{OLDER}", TlsVersions(True, False, ("ECDHE-ECDSA-AES128-GCM-SHA256",))),
        (None, f"{ALL13},TLS_EMPTY_RENEGOTIATION_INFO_SCSV", TlsVersions(tls12=False)),
    ]:
        assert tls_versions(protocols, suites) == expected, protocols

    for protocols, suites, message in [
        ("TLSv1.1", None, "neither TLSv1.2 nor TLSv1.3"),
        ("TLSv1.4", None, "TLSv1.4 is unknown"),
        ("TLSv1.2", ALL13, "no suite of the versions"),
        ("TLSv1.3", OLDER, "no suite of the versions"),
        (None, "TLS_AES_256_GCM_SHA384", "excludes TLS_AES_128_GCM_SHA256, TLS_CHACHA20_POLY1305_SHA256"),
    ]:
        with subtests.test(message), pytest.raises(TlsVersionsError, match=message):
            tls_versions(protocols, suites)
