"""Which of a client's properties ask for a cloud service's tokens. Forms: README of aws/aws-msk-iam-auth."""

from __future__ import annotations

import asyncio
import pickle
from pathlib import Path

import pytest
from aiokafka.errors import AuthenticationFailedError
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from mirror_lib.cli.main import app
from mirror_lib.cluster.auth.sasl import PasswordLogin
from mirror_lib.cluster.connection import Connection
from mirror_lib.config.loader import load_flow
from mirror_lib.config.model import ClientSettings
from mirror_lib.config.security.cloud_classes import AZURE_LOGIN_HANDLERS, GOOGLE_LOGIN_HANDLER, MSK_LOGIN_HANDLER
from mirror_lib.errors import NOWHERE, ConfigurationError
from mirror_lib.features.oauth.azure_tokens import AzureToken
from mirror_lib.features.oauth.cloud_logins import region_of
from mirror_lib.features.oauth.google_tokens import GoogleToken
from mirror_lib.features.oauth.login import OAuthLogin
from mirror_lib.features.oauth.msk_tokens import MskIamToken, StaticKeys
from mirror_lib.features.oauth.token_exchange import TokenAuthenticator, TokenProvider
from tests.support.connections import connection_of

SERVERLESS = "boot-1a2b.c3.kafka-serverless.us-east-1.amazonaws.com:9098"
MSK = "software.amazon.msk.auth.iam.IAMLoginModule required"
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
#: Of the list of AWS's endpoints.
REGIONS = (
    *("us-east-1", "us-west-2", "eu-central-1", "eu-west-3", "ap-southeast-4", "ap-northeast-1", "sa-east-1"),
    *("me-central-1", "af-south-1", "il-central-1", "ca-west-1", "mx-central-1", "cn-north-1", "cn-northwest-1"),
    *("us-gov-west-1", "us-iso-east-1", "us-isob-east-1"),
)


@pytest.fixture(autouse=True)
def no_region(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "GOOGLE_MANAGED_KAFKA_AUTH_PRINCIPAL"):
        monkeypatch.delenv(name, raising=False)


def login(servers: str = SERVERLESS, **properties: str) -> OAuthLogin:
    """As a client's properties name it; `_` stands for `.`."""
    connection = connection_of(servers, security_protocol="SASL_SSL", **properties)
    assert "s3cret" not in repr(connection)
    found = pickle.loads(pickle.dumps(connection)).security.sasl
    assert isinstance(found, OAuthLogin)
    return found


def msk(options: str = "", servers: str = SERVERLESS) -> MskIamToken:
    source = login(
        servers,
        sasl_mechanism="AWS_MSK_IAM",
        sasl_jaas_config=f"{MSK} {options};",
        sasl_client_callback_handler_class="software.amazon.msk.auth.iam.IAMClientCallbackHandler",
    ).source
    assert isinstance(source, MskIamToken)
    return source


def test_both_clients_speak_oauthbearer_to_msk() -> None:
    given = login(sasl_mechanism="AWS_MSK_IAM", sasl_jaas_config=f"{MSK};")
    assert given == login(
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config=f"{OAUTH};",
        sasl_login_callback_handler_class=MSK_LOGIN_HANDLER,
    )
    assert given.mechanism == "OAUTHBEARER"


def test_all_options_of_the_login_module_are_taken() -> None:
    assert msk() == MskIamToken("us-east-1")
    assert msk('awsProfileName="dev" awsDebugCreds=true') == MskIamToken("us-east-1", profile="dev", log_identity=True)
    role = 'awsRoleArn="arn:aws:iam::1:role/m" awsRoleSessionName="producer" awsStsRegion="us-west-2"'
    named = {"role_arn": "arn:aws:iam::1:role/m", "role_session_name": "producer", "sts_region": "us-west-2"}
    assert msk(role) == MskIamToken("us-east-1", **named)  # type: ignore[arg-type]
    assert msk(f'{role} awsRoleExternalId="x"').role_external_id == "x"
    keys = 'awsRoleAccessKeyId="A" awsRoleSecretAccessKey="s3cret" awsRoleSessionToken="s3cret-too"'
    assert msk(f"{role} {keys}").role_keys == StaticKeys("A", "s3cret", "s3cret-too")


def test_given_half_a_key_then_the_error_says_so_without_it() -> None:
    with pytest.raises(ConfigurationError, match="only one of awsRoleAccessKeyId and awsRoleSecretAccessKey") as half:
        msk('awsRoleArn="r" awsRoleSecretAccessKey="s3cret"')
    assert "s3cret" not in str(half.value)


@given(
    region=st.sampled_from(REGIONS),
    before=st.sampled_from(["b-1.x.c1.kafka.", "boot-ab.c1.kafka-serverless.", "vpce-0a-kafka.", ""]),
    after=st.sampled_from([".amazonaws.com", ".amazonaws.com.cn", ".private", ""]),
)
def test_the_region_is_that_of_the_host_name(region: str, before: str, after: str) -> None:
    assert region_of([f"{before}{region}{after}"]) == region


@given(
    st.lists(st.sampled_from(["kafka", "my-kafka-1", "broker-west", "east-1", "10", "b-1", "localhost"]), min_size=1)
)
def test_other_host_names_have_no_region(labels: list[str]) -> None:
    assert region_of([".".join(labels)]) is None


def test_given_no_region_in_the_host_name_then_the_environment_says_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MIRROR_CLOUD_TOKEN_HOSTS", "kafka.internal, b")
    with pytest.raises(ConfigurationError, match=r"AWS region of kafka\.internal, b is unknown") as unknown:
        msk(servers="kafka.internal:9098,b:1")
    assert "AWS_REGION" in unknown.value.action

    monkeypatch.setenv("AWS_REGION", "eu-west-1")

    assert msk(servers="kafka.internal:9098").region == "eu-west-1"
    assert msk().region == "us-east-1"


FILE = r"""
clusters = A, B
A.bootstrap.servers = boot-1a2b.c3.kafka-serverless.us-east-1.amazonaws.com:9098
A.security.protocol = SASL_SSL
A.sasl.mechanism = AWS_MSK_IAM
A.sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="dev" \
    awsRoleArn="arn:aws:iam::1:role/m" awsRoleSecretAccessKey="s3cret" awsRoleAccessKeyId="AKIA" awsDebugCreds=true;
A.sasl.client.callback.handler.class = software.amazon.msk.auth.iam.IAMClientCallbackHandler
A.consumer.sasl.jaas.config = software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="reader";
B.bootstrap.servers = ns.servicebus.windows.net:9093
B.security.protocol = SASL_SSL
B.sasl.mechanism = PLAIN
B.sasl.jaas.config = org.apache.kafka.common.security.plain.PlainLoginModule required username="$ConnectionString" \
    password="Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=s3cret+/a#b!%25=";
A->B.enabled = true
A->B.topics = orders
"""


def test_a_file_of_mirror_maker_2_is_taken_as_it_is_and_shows_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "mirror.properties"
    path.write_text(FILE, encoding="ascii")
    flow = load_flow(path, "A->B")[1]

    def source(settings: ClientSettings) -> object:
        found = Connection.from_settings(settings).security.sasl
        assert isinstance(found, OAuthLogin)
        return found.source

    keys = StaticKeys("AKIA", "s3cret")
    role = MskIamToken("us-east-1", profile="dev", role_arn="arn:aws:iam::1:role/m", role_keys=keys, log_identity=True)
    assert source(flow.clients.source_admin) == role
    assert source(flow.clients.data_consumer) == MskIamToken("us-east-1", profile="reader")
    assert Connection.from_settings(flow.clients.target_admin).security.sasl == PasswordLogin(
        "PLAIN",
        "$ConnectionString",
        "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey=s3cret+/a#b!%25=",
    )
    for command in (["check", str(path)], ["show", str(path), "--flow", "A->B"]):
        for form in ([], ["--json"]):
            said = CliRunner().invoke(app, ["config", *command, *form])
            assert said.exit_code == 0, said.output
            assert "s3cret" not in said.output


_GOOGLE_HOST = "bootstrap.mirror.us-central1.managedkafka.project-1.cloud.goog"
_BY_SERVICE: dict[str, tuple[str, dict[str, str]]] = {
    "amazon": (SERVERLESS, {"sasl_mechanism": "AWS_MSK_IAM", "sasl_jaas_config": f"{MSK};"}),
    "amazon, with OAUTHBEARER": (
        "b-1.demo.abcde1.c2.kafka.us-east-1.amazonaws.com:9198",
        {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_jaas_config": f"{OAUTH};",
            "sasl_login_callback_handler_class": MSK_LOGIN_HANDLER,
        },
    ),
    "google": (
        f"{_GOOGLE_HOST}:9092",
        {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_jaas_config": f"{OAUTH};",
            "sasl_login_callback_handler_class": GOOGLE_LOGIN_HANDLER,
        },
    ),
    "azure": (
        "ns.servicebus.windows.net:9093",
        {
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_jaas_config": f"{OAUTH};",
            "sasl_login_callback_handler_class": min(AZURE_LOGIN_HANDLERS),
        },
    ),
}


@pytest.mark.parametrize("service", _BY_SERVICE)
def test_tokens_of_the_machine_go_to_hosts_of_the_service_only(
    service: str, monkeypatch: pytest.MonkeyPatch, subtests: pytest.Subtests
) -> None:
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    own, properties = _BY_SERVICE[service]
    if service == "google":
        assert login("bootstrap-nol2m.c0aad26f.europe-west1.managedkafka.s.cloud.goog:9092", **properties).source
    for servers in (own, own.upper(), own.replace(":", ".:"), f"{own}, {own}"):
        assert login(servers, **properties).source

    host, _, port = own.partition(":")
    others = [
        *("kafka.example.com:9092", "10.0.0.1:9092", "[::1]:9092", "management.azure.com:443", "localhost:9092"),
        *(f"{host}.example.com:{port}", f"x{host.replace('.', '-')}:{port}", f"{host[:-1]}:{port}"),
        *("ec2-1-2-3-4.compute-1.amazonaws.com:9098", "mine.elb.us-east-1.amazonaws.com:9098"),
        *("kafka.us-east-1.amazonaws.com.example.com:9098", "vault.azure.net:443", "storage.googleapis.com:443"),
        "vpce-0a.vpce-svc-0b.us-east-1.vpce.amazonaws.com:9098",
        # Every customer's own names, at any address.
        *("me.endpoints.managedkafka.x.com.cloud.goog:9092", "me.endpoints.us-east1.managedkafka.com.cloud.goog:9092"),
    ]
    for servers in (*others, f"{own},evil.example.com:9092", f"evil.example.com:9092,{own}"):
        with subtests.test(servers), pytest.raises(ConfigurationError, match="gets no token") as refused:
            login(servers, **properties)
        assert "MIRROR_CLOUD_TOKEN_HOSTS=" in refused.value.action


def test_the_operator_allows_further_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    servers, properties = "broker1.kafka.example.com:9092", _BY_SERVICE["google"][1]
    for allowed in ("broker1.kafka.example.com", "x, *.Example.com ", "*"):
        monkeypatch.setenv("MIRROR_CLOUD_TOKEN_HOSTS", allowed)
        assert login(servers, **properties).source
    for allowed in ("", "example.com", "kafka.example.com", "*example.com", "*.broker1.kafka.example.com", "*."):
        monkeypatch.setenv("MIRROR_CLOUD_TOKEN_HOSTS", allowed)
        with pytest.raises(ConfigurationError):
            login(servers, **properties)


def test_a_host_that_another_broker_names_and_a_connection_without_tls_get_no_token() -> None:
    servers, properties = _BY_SERVICE["google"]
    hosts = login(servers, **properties).hosts
    assert hosts is not None
    provider = TokenProvider(GoogleToken(None), (), NOWHERE, hosts)
    with pytest.raises(AuthenticationFailedError, match=r"evil\.example\.com gets no token"):
        asyncio.run(TokenAuthenticator(provider, "evil.example.com").step(None))

    with pytest.raises(ConfigurationError, match="without TLS"):
        connection_of(servers, security_protocol="SASL_PLAINTEXT", **properties)


def test_google_needs_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    def source() -> object:
        return login(
            f"{_GOOGLE_HOST}:9092",
            sasl_mechanism="OAUTHBEARER",
            sasl_jaas_config=f"{OAUTH};",
            sasl_login_callback_handler_class=GOOGLE_LOGIN_HANDLER,
        ).source

    assert source() == GoogleToken(None)
    monkeypatch.setenv("GOOGLE_MANAGED_KAFKA_AUTH_PRINCIPAL", "me@x")
    assert source() == GoogleToken("me@x")


def test_azure_asks_for_the_namespace(subtests: pytest.Subtests) -> None:
    def source(handler: str, options: str = "") -> object:
        return login(
            "ns.servicebus.windows.net:9093",
            sasl_mechanism="OAUTHBEARER",
            sasl_jaas_config=f"{OAUTH} {options};",
            sasl_login_callback_handler_class=handler,
        ).source

    scope = "https://ns.servicebus.windows.net/.default"
    for handler in sorted(AZURE_LOGIN_HANDLERS):
        with subtests.test(handler=handler):
            assert source(handler) == AzureToken(scope)
            assert source(handler, 'azure.credential.client-id="app"') == AzureToken(scope, "app")
            with pytest.raises(ConfigurationError, match="client-secret, which this login does not use") as not_used:
                source(handler, 'azure.credential.client-secret="s3cret"')
            assert "s3cret" not in str(not_used.value)
