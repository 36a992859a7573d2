"""Logins of cloud services as files of MirrorMaker 2 have them, on a real broker that validates their tokens."""

from __future__ import annotations

import json
import logging
import sys
import traceback
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from mirror_lib.cluster.connection import Connection
from mirror_lib.config.model import ClientSettings
from mirror_lib.errors import AuthenticationError, ConfigurationError, MirrorError, TransientError, Where
from mirror_lib.features.demo.broker import FAST_START_JVM, KafkaCluster
from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from mirror_lib.features.oauth.login import OAuthLogin
from mirror_lib.features.oauth.oauth_tokens import Token, token_of
from tests.support.brokers.java_classes import jars_with
from tests.support.http_server import Reply, Request, json_reply, serving
from tests.support.security.logins import LET_IN, admin_client, forget_token_of, records_client, try_both
from tests.support.security.secure_cluster import SERVICE, SecureCluster
from tests.support.security.sts import Sts, sts
from tests.support.security.token_endpoint import TokenEndpoint

REGION = "eu-central-1"
#: Of the machine, of a profile, of a role that is assumed.
MACHINE, MACHINE_SECRET = "AKIAMACHINE", "machine/s3cret+"
PROFILE, PROFILE_SECRET = "AKIAPROFILE", "profile/s3cret+"
ROLE, ROLE_SECRET, ROLE_SESSION = "ASIAROLE", "role/s3cret+", "session/t0ken+=="
ROLE_ARN = "arn:aws:iam::123456789012:role/mirror"
GOOGLE_ACCOUNT, GOOGLE_TOKEN = "mirror@project.iam.gserviceaccount.com", "ya29.g00gle-secret"
SECRETS = (MACHINE_SECRET, PROFILE_SECRET, ROLE_SECRET, ROLE_SESSION, GOOGLE_TOKEN)
OAUTH = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
JAVA = Path(__file__).parents[2] / "support" / "security" / "CloudTokens.java"


@dataclass(frozen=True)
class Service:
    """The broker."""

    cluster: KafkaCluster

    def connection(self, properties: dict[str, str]) -> Connection:
        """As a client's properties have it."""
        servers = self.cluster.bootstrap_servers_of("CLOUD")
        given = {"bootstrap.servers": servers, "security.protocol": "SASL_PLAINTEXT", **properties}
        made = Connection.from_settings(ClientSettings(cluster="B", role="test", properties=given))
        forget_token_of(made)
        assert not any(secret in repr(made) for secret in SECRETS)
        return made

    def msk(self, options: str = "") -> Connection:
        """By `AWS_MSK_IAM`, as the documentation of aws-msk-iam-auth writes it."""
        return self.connection(
            {
                "sasl.mechanism": "AWS_MSK_IAM",
                "sasl.jaas.config": f"software.amazon.msk.auth.iam.IAMLoginModule required {options};",
                "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMClientCallbackHandler",
            }
        )


@pytest.fixture(scope="session")
def service(brokers_folder: Path, kafka_jars: Path) -> Iterator[Service]:
    prefix = "listener.name.cloud"
    flags = {
        "aws.region": REGION,
        f"aws.key.{MACHINE}": MACHINE_SECRET,
        f"aws.key.{PROFILE}": PROFILE_SECRET,
        f"aws.key.{ROLE}": ROLE_SECRET,
        f"aws.session.{ROLE}": ROLE_SESSION,
        f"google.{GOOGLE_TOKEN}": GOOGLE_ACCOUNT,
    }
    with KafkaCluster(
        "cloud",
        directory=brokers_folder / "cloud",
        jars=jars_with(kafka_jars, brokers_folder / "cloud-classes", JAVA),
        listeners={"PLAINTEXT": "PLAINTEXT", "CLOUD": "SASL_PLAINTEXT"},
        overrides={
            f"{prefix}.sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{prefix}.oauthbearer.sasl.jaas.config": f"{OAUTH} required;",
            f"{prefix}.oauthbearer.sasl.server.callback.handler.class": "CloudTokens",
        },
        jvm_flags=(*FAST_START_JVM, *(f"-Dtests.{name}={value}" for name, value in flags.items())),
    ) as cluster:
        yield Service(cluster)


@pytest.fixture
def role_service() -> Iterator[Sts]:
    with sts(ROLE, ROLE_SECRET, ROLE_SESSION) as running:
        yield running


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.MonkeyPatch:
    """Credentials of the machine, and one profile."""
    for name in ("AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", MACHINE)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", MACHINE_SECRET)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("MIRROR_CLOUD_TOKEN_HOSTS", LOOPBACK)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    profiles = tmp_path / "credentials"
    keys = f"aws_access_key_id = {PROFILE}\naws_secret_access_key = {PROFILE_SECRET}"
    profiles.write_text(f"[mirror]\n{keys}\n", encoding="ascii")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(profiles))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    return monkeypatch


class TestMsk:
    def test_given_credentials_of_the_machine_then_both_clients_are_let_in(self, service: Service) -> None:
        assert try_both(service.msk()) == LET_IN

    def test_given_a_profile_then_its_credentials_sign_in_both_forms_of_the_login(self, service: Service) -> None:
        oauthbearer = service.connection(
            {
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": f'{OAUTH} required awsProfileName="mirror";',
                "sasl.login.callback.handler.class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
            }
        )
        for connection in (oauthbearer, service.msk('awsProfileName="mirror"')):
            assert try_both(connection) == LET_IN
            assert _principal(connection) == PROFILE

    def test_given_a_role_then_it_is_assumed_once_for_both_clients(
        self, service: Service, role_service: Sts, machine: pytest.MonkeyPatch
    ) -> None:
        machine.setenv("AWS_ENDPOINT_URL_STS", role_service.url)
        options = f'awsRoleArn="{ROLE_ARN}" awsRoleSessionName="batch" awsStsRegion="eu-west-1" awsRoleExternalId="x1"'
        connection = service.msk(options)

        assert try_both(connection) == LET_IN
        assert _principal(connection) == ROLE
        (asked,) = role_service.asked
        assert (asked["RoleArn"], asked["RoleSessionName"], asked["ExternalId"]) == (ROLE_ARN, "batch", "x1")

    def test_given_a_role_whose_credentials_end_soon_then_the_token_ends_with_them(
        self, service: Service, role_service: Sts, machine: pytest.MonkeyPatch
    ) -> None:
        machine.setenv("AWS_ENDPOINT_URL_STS", role_service.url)
        role_service.lifetime_seconds = 60.0
        token = _token(service.msk(f'awsRoleArn="{ROLE_ARN}"'))
        # A signature alone lasts 900 s.
        assert token.ends - token.began < 120.0

    def test_given_awsdebugcreds_then_the_log_names_the_identity_and_no_secret(
        self,
        service: Service,
        role_service: Sts,
        machine: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        machine.setenv("AWS_ENDPOINT_URL_STS", role_service.url)
        caplog.set_level(logging.DEBUG)
        assert records_client(service.msk(f'awsRoleArn="{ROLE_ARN}" awsDebugCreds=true')) == [1]
        assert "assumed-role/mirror/batch" in caplog.text
        assert not any(secret in caplog.text for secret in SECRETS)
        token = _token(service.msk(f'awsRoleArn="{ROLE_ARN}"'))
        assert token.value not in caplog.text

    def test_given_a_role_that_is_refused_then_the_next_credentials_of_the_chain_sign_and_the_log_says_so(
        self,
        service: Service,
        role_service: Sts,
        machine: pytest.MonkeyPatch,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        machine.setenv("AWS_ENDPOINT_URL_STS", role_service.url)
        role_service.refusal = f"not with {MACHINE_SECRET}"
        connection = service.msk(f'awsRoleArn="{ROLE_ARN}"')
        assert records_client(connection) == [1]
        assert _principal(connection) == MACHINE
        assert (
            f"role {ROLE_ARN} returns no credentials: AWS returned no credentials for this login: AccessDenied"
            in caplog.text
        )
        assert MACHINE_SECRET not in caplog.text

    def test_given_no_credentials_at_all_then_both_clients_name_what_was_tried(
        self, service: Service, machine: pytest.MonkeyPatch
    ) -> None:
        machine.delenv("AWS_ACCESS_KEY_ID")
        machine.delenv("AWS_SECRET_ACCESS_KEY")
        for client in (records_client, admin_client):
            with pytest.raises(AuthenticationError, match="no AWS credentials were found, nor any of profile other"):
                client(service.msk('awsProfileName="other"'))

    @pytest.mark.parametrize("region", ["us-east-1", REGION])
    def test_given_a_secret_or_region_that_is_wrong_then_both_clients_say_so_without_it(
        self, service: Service, machine: pytest.MonkeyPatch, region: str
    ) -> None:
        machine.setenv("AWS_REGION", region)
        machine.setenv("AWS_SECRET_ACCESS_KEY", "wr0ng" if region == REGION else MACHINE_SECRET)
        for client in (records_client, admin_client):
            with pytest.raises(AuthenticationError, match=r"^cluster B: ") as refused:
                client(service.msk())
            shown = "".join(traceback.format_exception(refused.value))
            assert "wr0ng" not in shown
            assert MACHINE_SECRET not in shown

    def test_given_sts_that_does_not_answer_then_the_error_may_pass(
        self, service: Service, machine: pytest.MonkeyPatch
    ) -> None:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            machine.delenv(name)
        machine.setenv("AWS_ENDPOINT_URL_STS", f"http://{LOOPBACK}:{free_ports(1)[0]}")
        machine.setenv("AWS_MAX_ATTEMPTS", "1")
        keys = f'awsRoleAccessKeyId="{MACHINE}" awsRoleSecretAccessKey="{MACHINE_SECRET}"'
        with pytest.raises(TransientError, match="AWS does not respond to the credentials request") as silent:
            records_client(service.msk(f'awsRoleArn="{ROLE_ARN}" {keys}'))
        assert MACHINE_SECRET not in "".join(traceback.format_exception(silent.value))

    def test_given_no_extra_then_the_error_names_it(self, service: Service, machine: pytest.MonkeyPatch) -> None:
        machine.setitem(sys.modules, "aws_msk_iam_sasl_signer", None)
        with pytest.raises(ConfigurationError, match="aws-msk-iam-sasl-signer-python") as missing:
            records_client(service.msk())
        assert "batch-mirror[aws]" in missing.value.action


@pytest.fixture
def google(tmp_path: Path, machine: pytest.MonkeyPatch) -> Iterator[list[bytes]]:
    """Credentials of a service account, with Google's token endpoint on this machine; yields what it is asked."""
    asked: list[bytes] = []

    def answer(request: Request) -> Reply:
        asked.append(request.body)
        return json_reply({"access_token": GOOGLE_TOKEN, "expires_in": 3600, "token_type": "Bearer"})

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    with serving(answer) as url:
        account = {
            "type": "service_account",
            "client_email": GOOGLE_ACCOUNT,
            "private_key_id": "1",
            "private_key": key.decode(),
            "token_uri": f"{url}/token",
        }
        (tmp_path / "account.json").write_text(json.dumps(account), encoding="ascii")
        machine.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        machine.delenv("GOOGLE_MANAGED_KAFKA_AUTH_PRINCIPAL", raising=False)
        yield asked


class TestGoogle:
    PROPERTIES: ClassVar = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.jaas.config": f"{OAUTH} required;",
        "sasl.login.callback.handler.class": "com.google.cloud.hosted.kafka.auth.GcpLoginCallbackHandler",
    }

    def test_given_a_service_account_then_both_clients_are_let_in_by_one_token(
        self, service: Service, google: list[bytes], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        connection = service.connection(self.PROPERTIES)
        assert try_both(connection) == LET_IN
        assert _principal(connection) == GOOGLE_ACCOUNT
        assert len(google) == 1
        assert GOOGLE_TOKEN not in caplog.text

    def test_given_a_broker_that_names_others_then_these_get_no_token(
        self, service: Service, google: list[bytes], machine: pytest.MonkeyPatch
    ) -> None:
        del google
        machine.setenv("MIRROR_CLOUD_TOKEN_HOSTS", "localhost")
        named = service.cluster.bootstrap_servers_of("CLOUD").replace(LOOPBACK, "localhost")
        # The client for records asks the bootstrap server alone here.
        _, tried = try_both(service.connection(self.PROPERTIES | {"bootstrap.servers": named}))
        assert tried.error == "ConfigurationError"
        assert f"{LOOPBACK} gets no token" in tried.said

    def test_given_another_principal_then_the_broker_refuses_and_both_clients_say_so(
        self, service: Service, google: list[bytes], machine: pytest.MonkeyPatch
    ) -> None:
        machine.setenv("GOOGLE_MANAGED_KAFKA_AUTH_PRINCIPAL", "other@project.iam.gserviceaccount.com")
        for tried in try_both(service.connection(self.PROPERTIES)):
            assert tried.error == "AuthenticationError"
            assert GOOGLE_TOKEN not in tried.said

    def test_given_credentials_that_cannot_be_read_then_the_error_names_no_secret(
        self, service: Service, machine: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        broken = tmp_path / "account.json"
        broken.write_text('{"type": "service_account", "private_key": "s3cret"', encoding="ascii")
        machine.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(broken))
        with pytest.raises(AuthenticationError, match="Google returned no token for this login") as refused:
            records_client(service.connection(self.PROPERTIES))
        assert "s3cret" not in "".join(traceback.format_exception(refused.value))


class TestAzure:
    """The identity endpoint of Azure's own hosts; tokens are those of the test's identity provider."""

    @staticmethod
    def connection(guarded: SecureCluster, options: str = "") -> Connection:
        handler = "com.azure.spring.cloud.service.implementation.kafka.KafkaOAuth2AuthenticateCallbackHandler"
        return guarded.with_login("OAUTHBEARER", options, sasl_login_callback_handler_class=handler)

    @pytest.fixture
    def identity(self, tokens: TokenEndpoint, machine: pytest.MonkeyPatch) -> Iterator[list[tuple[str, str]]]:
        """A managed identity; yields path and header of each request."""
        asked: list[tuple[str, str]] = []

        def answer(request: Request) -> Reply:
            asked.append((request.path, request.headers["X-IDENTITY-HEADER"]))
            given = {"access_token": tokens.token(SERVICE), "expires_in": "600", "token_type": "Bearer"}
            return json_reply({**given, "expires_on": "4102444800", "resource": "r"})

        with serving(answer) as url:
            machine.setenv("IDENTITY_ENDPOINT", f"{url}/token")
            machine.setenv("IDENTITY_HEADER", "h3ader")
            machine.setenv("AZURE_TOKEN_CREDENTIALS", "ManagedIdentityCredential")
            yield asked

    def test_given_a_managed_identity_then_both_clients_are_let_in(
        self, guarded: SecureCluster, identity: list[tuple[str, str]], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        connection = self.connection(guarded, 'azure.credential.client-id="app"')
        forget_token_of(connection)
        assert try_both(connection) == LET_IN
        ((path, header),) = identity
        assert "client_id=app" in path
        assert f"resource=https://{LOOPBACK}" in urllib.parse.unquote(path)
        assert header not in caplog.text
        assert _token(connection).value not in caplog.text

    def test_given_no_identity_then_both_clients_say_so(
        self, guarded: SecureCluster, machine: pytest.MonkeyPatch
    ) -> None:
        machine.delenv("IDENTITY_ENDPOINT", raising=False)
        machine.setenv("AZURE_TOKEN_CREDENTIALS", "EnvironmentCredential")
        connection = self.connection(guarded)
        forget_token_of(connection)
        for client in (records_client, admin_client):
            with pytest.raises(MirrorError, match="Entra ID returned no token for https://"):
                client(connection)


def _token(connection: Connection) -> Token:
    assert isinstance(connection.security.sasl, OAuthLogin)
    return token_of(connection.security.sasl.source, Where(cluster="B"))


def _principal(connection: Connection) -> str:
    return _token(connection).principal
