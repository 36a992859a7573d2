"""Java client properties, as both Python clients get them. Names: Kafka's SslConfigs/SaslConfigs, CONFIGURATION.md of
librdkafka, and aiokafka's `AIOKafkaClient`."""

from __future__ import annotations

import pickle
import ssl
from collections.abc import Mapping
from pathlib import Path

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import ClientSettings
from mirror_lib.errors import ConfigurationError
from tests.support.security.pki import PASSWORD, Certified

ROOT = Certified.root("Root")
MIDDLE = ROOT.issue("Middle", authority=True)
CLIENT = MIDDLE.issue("client")
#: Of keytool; the key has the store's password.
JKS_KEYSTORE = str(Path(__file__).parent / "auth" / "data" / "keystore.jks")
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="s3cret";'
PLAIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}


def connect(properties: Mapping[str, str] | None = None, *, servers: str = "a:9092") -> Connection:
    return Connection.from_settings(
        ClientSettings(cluster="A", role="admin", properties={"bootstrap.servers": servers, **(properties or {})})
    )


def test_given_only_bootstrap_servers_then_both_clients_are_plaintext_with_javas_request_timeout() -> None:
    connection = connect(servers="a:9092, b:9093")

    native = connection.librdkafka()
    assert native["bootstrap.servers"] == "a:9092,b:9093"
    assert native["security.protocol"] == "PLAINTEXT"
    assert native["socket.timeout.ms"] == 30_000
    assert connection.aiokafka() == {
        "bootstrap_servers": ["a:9092", "b:9093"],
        "client_id": "mirror-admin",
        "request_timeout_ms": 30_000,
        "security_protocol": "PLAINTEXT",
    }
    assert connection.cluster == "A"


def test_given_client_id_and_timeout_then_both_clients_have_them() -> None:
    connection = connect({"client.id": "me", "request.timeout.ms": "600000"})
    assert (connection.librdkafka()["client.id"], connection.aiokafka()["client_id"]) == ("me", "me")
    assert connection.aiokafka()["request_timeout_ms"] == 600_000
    # librdkafka takes no more.
    assert connection.librdkafka()["socket.timeout.ms"] == 300_000


def test_given_names_that_tune_java_clients_then_they_are_ignored() -> None:
    tuned = connect({"fetch.max.bytes": "1", "linger.ms": "5", "ssl.truststore.location": "/nowhere"})
    assert tuned == connect()


def test_given_any_address_that_java_takes_then_it_is_taken() -> None:
    for servers, expected in (
        ("PLAINTEXT://a:1", ("a:1",)),
        ("[::1]:9092", ("[::1]:9092",)),
        ("a.b-c:1,,b:2,", ("a.b-c:1", "b:2")),
    ):
        assert connect(servers=servers).bootstrap_servers == expected, servers


def test_given_a_wrong_address_or_timeout_then_the_error_names_the_property(subtests: pytest.Subtests) -> None:
    for servers in ("", " , ", "a", "a:", "a:b", "a:70000", "a:0", ":9092", "a b:1"):
        with subtests.test(servers=servers), pytest.raises(ConfigurationError, match=r"cluster A: bootstrap\.servers"):
            connect(servers=servers)
    for value in ("x", "-1"):
        with subtests.test(value=value), pytest.raises(ConfigurationError, match=r"request\.timeout\.ms"):
            connect({"request.timeout.ms": value})


def test_given_an_unknown_protocol_then_the_known_ones_are_listed() -> None:
    with pytest.raises(ConfigurationError, match="PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"):
        connect({"security.protocol": "TLS"})


def test_given_a_protocol_in_lower_case_then_it_is_taken_as_mm2_does() -> None:
    assert connect({"security.protocol": "sasl_plaintext", **{k: v for k, v in PLAIN.items() if "sasl" in k}})


class TestTls:
    def test_given_stores_then_both_clients_get_their_content_and_no_file_is_needed_later(self, tmp_path: Path) -> None:
        trust, key = tmp_path / "trust.p12", tmp_path / "key.p12"
        trust.write_bytes(ROOT.truststore())
        key.write_bytes(CLIENT.keystore())
        connection = connect(
            {
                "security.protocol": "SSL",
                "ssl.truststore.location": str(trust),
                "ssl.truststore.password": PASSWORD,
                "ssl.keystore.location": str(key),
                "ssl.keystore.password": PASSWORD,
            }
        )
        trust.unlink()
        key.unlink()

        there = pickle.loads(pickle.dumps(connection))

        native = there.librdkafka()
        assert native["ssl.ca.pem"] == ROOT.pem
        assert native["ssl.certificate.pem"] == CLIENT.chain_pem
        assert "PRIVATE KEY" in native["ssl.key.pem"]
        assert native["ssl.endpoint.identification.algorithm"] == "https"
        context = there.aiokafka()["ssl_context"]
        assert [held["subject"] for held in context.get_ca_certs()] == [((("commonName", "Root"),),)]
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)

    def test_given_pem_strings_then_they_are_the_material(self) -> None:
        connection = connect(
            {
                "security.protocol": "SSL",
                "ssl.truststore.type": "PEM",
                "ssl.truststore.certificates": ROOT.pem.replace("\n", " "),
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": CLIENT.key_pem("pw"),
                "ssl.keystore.certificate.chain": CLIENT.chain_pem,
                "ssl.key.password": "pw",
            }
        )
        assert connection.librdkafka()["ssl.ca.pem"] == ROOT.pem
        assert connection.librdkafka()["ssl.certificate.pem"] == CLIENT.chain_pem
        assert "ssl_context" in connection.aiokafka()

    def test_given_an_empty_identification_algorithm_then_hosts_are_not_checked_but_certificates_are(self) -> None:
        connection = connect({"security.protocol": "SSL", "ssl.endpoint.identification.algorithm": ""})
        assert connection.librdkafka()["ssl.endpoint.identification.algorithm"] == "none"
        context = connection.aiokafka()["ssl_context"]
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)

    def test_given_no_truststore_then_the_systems_authorities_are_trusted(self) -> None:
        assert "ssl.ca.pem" not in connect({"security.protocol": "SSL"}).librdkafka()

    def test_given_one_version_of_tls_then_records_take_no_other_and_administration_nothing_older(self) -> None:
        connection = connect({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.3"})
        assert connection.aiokafka()["ssl_context"].minimum_version is ssl.TLSVersion.TLSv1_3
        # librdkafka has no setting for versions: it is left without a suite of TLS 1.2 that could be agreed on.
        assert connection.librdkafka()["ssl.cipher.suites"].startswith("PSK-")
        connection = connect({"security.protocol": "SSL", "ssl.enabled.protocols": "TLSv1.2"})
        assert connection.aiokafka()["ssl_context"].maximum_version is ssl.TLSVersion.TLSv1_2

    def test_given_cipher_suites_by_javas_names_then_both_clients_offer_those_by_openssls(self) -> None:
        suites = "TLS_AES_128_GCM_SHA256,TLS_AES_256_GCM_SHA384,TLS_CHACHA20_POLY1305_SHA256"
        connection = connect(
            {
                "security.protocol": "SSL",
                "ssl.cipher.suites": f"{suites}, TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
            }
        )
        assert connection.librdkafka()["ssl.cipher.suites"] == "ECDHE-RSA-AES256-GCM-SHA384"
        offered = {cipher["name"] for cipher in connection.aiokafka()["ssl_context"].get_ciphers()}
        assert offered == {*suites.split(","), "ECDHE-RSA-AES256-GCM-SHA384"}

    def test_given_a_setting_for_a_part_that_the_protocol_has_not_then_it_is_not_looked_at(self) -> None:
        assert connect({"ssl.engine.factory.class": "com.example.Engine", "sasl.login.class": "x"}) == connect()

    def test_given_unusable_material_then_the_error_names_the_property(self, subtests: pytest.Subtests) -> None:
        for properties, message in (
            ({"ssl.truststore.location": "/nowhere/t.jks"}, r"ssl\.truststore\.location=/nowhere/t\.jks: No such file"),
            ({"ssl.keystore.location": "/nowhere/k.p12"}, r"ssl\.keystore\.location=/nowhere/k\.p12: No such file"),
            ({"ssl.truststore.certificates": ""}, r"ssl\.truststore\.certificates is empty"),
            ({"ssl.truststore.certificates": " \n"}, r"ssl\.truststore\.certificates is empty"),
            ({"ssl.truststore.location": " "}, r"ssl\.truststore\.location is empty"),
            ({"ssl.keystore.location": ""}, r"ssl\.keystore\.location is empty"),
            ({"ssl.keystore.key": ""}, r"ssl\.keystore\.key is empty"),
            ({"ssl.keystore.key": "x", "ssl.keystore.certificate.chain": ""}, r"ssl\.keystore\.certificate\.chain is "),
            (
                {"ssl.truststore.certificates": "supports none of them"},
                r"ssl\.truststore\.certificates: it contains no certificates",
            ),
            ({"ssl.truststore.certificates": "x", "ssl.truststore.location": "y"}, "are mutually exclusive"),
            ({"ssl.keystore.key": "x", "ssl.keystore.location": "y"}, "are mutually exclusive"),
            ({"ssl.keystore.key": CLIENT.key_pem()}, "no PEM certificate"),
            (
                {
                    "ssl.keystore.location": JKS_KEYSTORE,
                    "ssl.keystore.password": "changeit",
                    "ssl.key.password": "wr0ng",
                },
                r"ssl\.keystore\.location=.*keystore\.jks: .*wrong ssl\.key\.password",
            ),
            ({"ssl.endpoint.identification.algorithm": "ldaps"}, "ldaps is unknown"),
            ({"ssl.enabled.protocols": "TLSv1.1"}, r"ssl\.enabled\.protocols has neither TLSv1\.2 nor TLSv1\.3"),
            ({"ssl.cipher.suites": "TLS_RSA_WITH_RC4_128_SHA"}, r"ssl\.cipher\.suites: TLS_RSA_WITH_RC4_128_SHA"),
            ({"ssl.keystore.type": "BCFKS", "ssl.keystore.location": "k"}, r"ssl\.keystore\.type: BCFKS stores"),
            ({"ssl.engine.factory.class": "com.example.Engine"}, r"ssl\.engine\.factory\.class: the Java class"),
        ):
            with subtests.test(properties=properties), pytest.raises(ConfigurationError, match=message):
                connect({"security.protocol": "SSL", **properties})

    def test_given_a_wrong_store_password_then_it_is_not_repeated(self, tmp_path: Path) -> None:
        trust = tmp_path / "trust.p12"
        trust.write_bytes(ROOT.truststore())
        wrong = {"ssl.truststore.location": str(trust), "ssl.truststore.password": "wr0ng"}
        with pytest.raises(ConfigurationError, match="wrong password") as refusal:
            connect({"security.protocol": "SSL", **wrong})
        assert "wr0ng" not in str(refusal.value)


class TestSasl:
    def test_given_a_password_mechanism_then_both_clients_log_in_with_it(self, subtests: pytest.Subtests) -> None:
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"):
            with subtests.test(mechanism=mechanism):
                connection = connect({**PLAIN, "sasl.mechanism": mechanism})
                native, raw = connection.librdkafka(), connection.aiokafka()
                login = (mechanism, "alice", "s3cret")
                assert (native["sasl.mechanism"], native["sasl.username"], native["sasl.password"]) == login
                assert (raw["sasl_mechanism"], raw["sasl_plain_username"], raw["sasl_plain_password"]) == login

    def test_given_sasl_ssl_then_tls_comes_with_it(self) -> None:
        connection = connect({**PLAIN, "security.protocol": "SASL_SSL"})
        assert connection.librdkafka()["security.protocol"] == "SASL_SSL"
        assert connection.aiokafka()["ssl_context"].check_hostname

    def test_given_unusable_credentials_then_the_error_says_why_without_secrets(
        self, subtests: pytest.Subtests
    ) -> None:
        for properties, message in (
            ({"sasl.mechanism": "DIGEST-MD5"}, "DIGEST-MD5 is not supported"),
            ({"sasl.jaas.config": ""}, r"sasl\.jaas\.config is not set"),
            ({"sasl.jaas.config": 'X required username="alice";'}, "is missing password"),
            ({"sasl.jaas.config": "X required;"}, "is missing username and password"),
            ({"sasl.jaas.config": 'X required password="s3cret'}, r"sasl\.jaas\.config cannot be read"),
            ({"sasl.jaas.config": 'X required tokenauth="true" username="a" password="s3cret";'}, "delegation token"),
            ({"sasl.mechanism": "OAUTHBEARER"}, r"sasl\.oauthbearer\.token\.endpoint\.url is not set"),
            (
                {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "https://idp"},
                "is missing clientId and clientSecret",
            ),
            (
                {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "ftp://idp"},
                r"token\.endpoint\.url starts with ftp",
            ),
            (
                {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.endpoint.url": "file:///nowhere/token"},
                r"file:///nowhere/token: No such file",
            ),
            ({"sasl.mechanism": "GSSAPI"}, r"sasl\.kerberos\.service\.name is not set"),
            ({"sasl.login.class": "com.example.Login"}, r"sasl\.login\.class: the Java class com\.example\.Login"),
            ({"security.providers": "com.example.Provider"}, r"security\.providers: Java providers"),
        ):
            with subtests.test(message=message):
                with pytest.raises(ConfigurationError, match=message) as refusal:
                    connect({**PLAIN, **properties})
                assert "s3cret" not in str(refusal.value)


def test_given_secrets_then_the_repr_shows_none_and_pickling_keeps_them() -> None:
    connection = connect(
        {
            **PLAIN,
            "security.protocol": "SASL_SSL",
            "ssl.keystore.key": CLIENT.key_pem(),
            "ssl.keystore.certificate.chain": CLIENT.pem,
        }
    )
    assert "s3cret" not in repr(connection)
    assert "PRIVATE KEY" not in repr(connection)
    assert pickle.loads(pickle.dumps(connection)) == connection
