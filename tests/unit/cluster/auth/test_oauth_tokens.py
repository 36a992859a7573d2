"""Tokens for OAUTHBEARER, from a real token endpoint on this machine. Request and answer: RFC 6749 sections 4.4 and 5,
Java's `ClientCredentialsJwtRetriever`."""

from __future__ import annotations

import base64
import json
import pickle
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, Queue

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient

from mirror_lib.cluster.admin.librdkafka_errors import ClientErrors
from mirror_lib.cluster.connection import Connection
from mirror_lib.errors import AuthenticationError, ConfigurationError, MirrorError, TransientError, Where
from mirror_lib.features.demo.ports import LOOPBACK, free_ports
from mirror_lib.features.oauth import oauth_tokens
from mirror_lib.features.oauth.login import OAuthLogin
from mirror_lib.features.oauth.oauth_tokens import (
    ClientCredentials,
    Token,
    TokenSource,
    forget_token,
    jwt_claims,
    token_of,
)
from tests.support.connections import connection_of
from tests.support.security.pki import PASSWORD, Certified
from tests.support.security.token_endpoint import TokenEndpoint

CLIENT, SECRET = "me", "s3cret+/="
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
WHERE = Where(cluster="A")
NO_NUMBERS = ("NaN", "Infinity", "-Infinity", "1e999", '"1e12"', "true", "null", "[]", "9" * 400)


@pytest.fixture
def endpoint() -> Iterator[TokenEndpoint]:
    with TokenEndpoint({CLIENT: SECRET}) as running:
        yield running


def login(options: str, **properties: str) -> OAuthLogin:
    """As a client's properties name it; `_` stands for `.`."""
    connection = connection_of(
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="OAUTHBEARER",
        sasl_jaas_config=f"{MODULE} {options};",
        **properties,
    )
    assert "s3cret" not in repr(connection)
    found = pickle.loads(pickle.dumps(connection)).security.sasl
    assert isinstance(found, OAuthLogin)
    return found


def by_credentials(endpoint: TokenEndpoint, options: str = "", **properties: str) -> OAuthLogin:
    named = f'clientId="{CLIENT}" clientSecret="{SECRET}" {options}'
    return login(named, **{"sasl_oauthbearer_token_endpoint_url": endpoint.url, **properties})


def unsigned(claims: str) -> str:
    """A token whose claims are this text."""
    return f"e30.{base64.urlsafe_b64encode(claims.encode()).rstrip(b'=').decode()}."


def ending(end: str) -> str:
    """A token with this end, as JSON text."""
    return unsigned(f'{{"exp": {end}}}')


def answered(token: str, seconds: str = "null") -> str:
    """The endpoint's answer with a token that lasts so many seconds, both as JSON text."""
    return f'{{"access_token": "{token}", "expires_in": {seconds}}}'


def fetch(source: TokenSource) -> Token:
    return source.fetch(WHERE)


class TestClientCredentials:
    def test_given_id_and_secret_then_they_are_exchanged_for_a_token(self, endpoint: TokenEndpoint) -> None:
        token = fetch(by_credentials(endpoint, 'scope="kafka all"').source)

        assert jwt_claims(token.value)["sub"] == CLIENT
        assert token.principal == CLIENT
        assert token.ends == jwt_claims(token.value)["exp"]
        (asked,) = endpoint.asked
        assert asked.form == {"grant_type": "client_credentials", "scope": "kafka all"}
        assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"

    def test_given_no_http_client_then_the_file_is_refused_with_the_extra_to_install(
        self, endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "httpx", None)

        with pytest.raises(ConfigurationError) as error:
            by_credentials(endpoint)

        assert "httpx, which is not installed" in error.value.what
        assert "batch-mirror[oauth]" in (error.value.action or "")

    def test_given_no_http_client_on_an_executor_then_it_names_the_extra_to_install(
        self, endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        planned = by_credentials(endpoint, sasl_login_retry_backoff_max_ms="1")
        monkeypatch.setitem(sys.modules, "httpx", None)

        with pytest.raises(MirrorError, match=re.escape("httpx is not installed (batch-mirror[oauth])")):
            fetch(planned.source)

    def test_given_the_properties_of_kip_1139_then_they_count_before_the_login_module(
        self, endpoint: TokenEndpoint
    ) -> None:
        source = login(
            'clientId="other" clientSecret="other" scope="other"',
            sasl_oauthbearer_token_endpoint_url=endpoint.url,
            sasl_oauthbearer_client_credentials_client_id=CLIENT,
            sasl_oauthbearer_client_credentials_client_secret=SECRET,
            sasl_oauthbearer_scope="kafka",
        ).source

        assert fetch(source).principal == CLIENT
        assert endpoint.asked[0].form["scope"] == "kafka"

    def test_given_header_urlencode_then_id_and_secret_are_encoded(self, endpoint: TokenEndpoint) -> None:
        endpoint.clients[CLIENT] = "s3cret%2B%2F%3D"
        assert fetch(by_credentials(endpoint, sasl_oauthbearer_header_urlencode="true").source).principal == CLIENT

    def test_given_another_claim_for_the_subject_then_it_names_the_principal(self, endpoint: TokenEndpoint) -> None:
        endpoint.behaviour.answer = {"access_token": endpoint.token(CLIENT, azp="robot")}
        assert fetch(by_credentials(endpoint, sasl_oauthbearer_sub_claim_name="azp").source).principal == "robot"

    def test_given_a_wrong_secret_then_the_error_names_the_client_and_never_the_secret(
        self, endpoint: TokenEndpoint
    ) -> None:
        endpoint.clients[CLIENT] = "another"
        with pytest.raises(AuthenticationError, match=r"cluster A: .*/token rejected client me: HTTP 401") as refusal:
            fetch(by_credentials(endpoint).source)
        assert "(invalid_client)" in str(refusal.value)
        assert "s3cret" not in str(refusal.value)

    def test_given_a_passing_failure_then_it_is_asked_again_after_a_pause_that_doubles(
        self, endpoint: TokenEndpoint, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        pauses: list[float] = []
        monkeypatch.setattr("mirror_lib.features.oauth.oauth_tokens.time.sleep", pauses.append)
        endpoint.behaviour.failures += [503, 429]
        assert fetch(by_credentials(endpoint).source).principal == CLIENT
        assert len(endpoint.asked) == 3
        # Kafka's default of sasl.login.retry.backoff.ms.
        assert pauses == [0.1, 0.2]

    def test_given_a_failure_that_does_not_pass_then_the_error_says_that_it_may(self, endpoint: TokenEndpoint) -> None:
        endpoint.behaviour.failures += [503] * 20
        with pytest.raises(TransientError, match="HTTP 503"):
            fetch(by_credentials(endpoint, sasl_login_retry_backoff_max_ms="300").source)

    def test_given_nobody_at_the_endpoint_then_the_error_may_pass(self) -> None:
        (port,) = free_ports(1)
        nowhere = f"http://{LOOPBACK}:{port}/token?key=s3cret"
        source = login(
            'clientId="me" clientSecret="x"',
            sasl_oauthbearer_token_endpoint_url=nowhere,
            sasl_login_retry_backoff_max_ms="100",
        ).source
        with pytest.raises(TransientError, match=rf"http://{LOOPBACK}:{port}/token cannot be reached") as failure:
            fetch(source)
        assert "s3cret" not in str(failure.value)

    def test_given_a_secret_in_the_host_of_the_url_then_it_is_refused_and_not_repeated(
        self, subtests: pytest.Subtests
    ) -> None:
        for url in (
            "https://svc:s3cret@idp/token",
            "http://s3cret@idp/token",
            "https://[s3cret/token",
            "https://s3cret℀/t",
        ):
            with subtests.test(url=url):
                with pytest.raises(ConfigurationError, match=r"sasl\.oauthbearer\.token\.endpoint\.url") as refusal:
                    login('clientId="me" clientSecret="x"', sasl_oauthbearer_token_endpoint_url=url)
                assert "s3cret" not in str(refusal.value)
                assert refusal.value.__suppress_context__ or refusal.value.__context__ is None

    def test_given_an_url_that_cannot_be_asked_then_the_error_does_not_repeat_it(
        self, subtests: pytest.Subtests
    ) -> None:
        for rest in (":s3cret/token", "/token?key=s3cret key", "/token?key=s3cret\u00e9"):
            with subtests.test(rest=rest):
                source = login(
                    'clientId="me" clientSecret="x"', sasl_oauthbearer_token_endpoint_url=f"http://{LOOPBACK}{rest}"
                ).source
                with pytest.raises(
                    ConfigurationError, match=r"sasl\.oauthbearer\.token\.endpoint\.url is not a valid URL"
                ) as refusal:
                    fetch(source)
                assert "s3cret" not in str(refusal.value)
                assert refusal.value.__suppress_context__

    def test_given_a_redirect_then_the_secret_is_not_carried_elsewhere(self, endpoint: TokenEndpoint) -> None:
        endpoint.behaviour.redirect = f"{endpoint.url}/elsewhere"
        with pytest.raises(AuthenticationError, match="HTTP 307"):
            fetch(by_credentials(endpoint).source)
        assert len(endpoint.asked) == 1

    def test_given_an_answer_that_is_no_current_token_then_it_is_refused(
        self, endpoint: TokenEndpoint, subtests: pytest.Subtests
    ) -> None:
        for raw, message in (
            ("{}", "has no access_token"),
            ('{"access_token": ""}', "has no access_token"),
            # JSON without a bottom.
            ("[" * 100_000, "has no access_token"),
            ('{"access_token": "opaque"}', "not a JSON Web Token with a numeric exp claim"),
            *((answered(ending(end)), "numeric exp claim|has no access_token") for end in NO_NUMBERS),
            *((answered("opaque", end), "numeric exp claim|has no access_token") for end in NO_NUMBERS),
            *((answered(ending(end)), "expired") for end in ("-1e300", "-1", "0", "-" + "9" * 300)),
            # A control character ends the token's field in the SASL message: what follows would count as a field.
            (answered("a.b.c\\u0001auth=x", "60"), "RFC 6750"),
            *((answered(value, "60"), "RFC 6750") for value in ("two words", "a\\nb", "\\u00e9", "=", "a=b")),
        ):
            with subtests.test(raw=raw[:200]):
                endpoint.behaviour.raw = raw
                with pytest.raises(AuthenticationError, match=message):
                    fetch(by_credentials(endpoint).source)

    def test_given_a_token_that_is_over_then_the_error_says_so(self, endpoint: TokenEndpoint) -> None:
        endpoint.behaviour.lifetime_seconds = -60
        with pytest.raises(AuthenticationError, match=r"expired 6\d s ago.*check the clocks"):
            fetch(by_credentials(endpoint).source)

    def test_given_an_end_far_away_then_the_token_is_fetched_anew_within_a_day(self, endpoint: TokenEndpoint) -> None:
        for end in ("1e300", "9" * 300, "99999999999"):
            endpoint.behaviour.raw = answered(ending(end))
            assert fetch(by_credentials(endpoint).source).fresh_until < time.time() + 86_400, end
        # Of an opaque one the end comes with it.
        endpoint.behaviour.raw = answered("opaque", "60")
        assert 50 < fetch(by_credentials(endpoint).source).ends - time.time() <= 60

    def test_given_an_endpoint_that_echoes_the_secret_everywhere_then_the_error_does_not(
        self, endpoint: TokenEndpoint, subtests: pytest.Subtests
    ) -> None:
        for status in (400, 401, 403, 503):
            with subtests.test(status=status):
                echo = f"{CLIENT}:{SECRET} " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
                endpoint.behaviour.status = status
                endpoint.behaviour.answer = {"error": echo, "error_description": echo, "error_uri": echo}
                with pytest.raises(MirrorError, match=f"HTTP {status}[.]") as refusal:
                    fetch(by_credentials(endpoint, sasl_login_retry_backoff_max_ms="100").source)
                shown = "".join(traceback.format_exception(refusal.value)) + repr(refusal.value)
                assert not [each for each in echo.split() if each in shown]

    def test_given_an_answer_without_an_end_then_the_timeout_ends_it(self, endpoint: TokenEndpoint) -> None:
        endpoint.behaviour.drip = True
        source = by_credentials(
            endpoint, sasl_login_read_timeout_ms="300", sasl_login_retry_backoff_max_ms="100"
        ).source
        with pytest.raises(TransientError, match=r"no complete response within 0.3 s"):
            fetch(source)

    def test_given_librdkafka_when_the_endpoint_echoes_the_secret_then_its_error_does_not(
        self, endpoint: TokenEndpoint
    ) -> None:
        """librdkafka's own text ends with the response's body."""
        options = by_credentials(endpoint).librdkafka(WHERE)
        endpoint.clients.clear()
        heard: Queue[KafkaError] = Queue()
        protocol = {"bootstrap.servers": f"{LOOPBACK}:1", "security.protocol": "SASL_PLAINTEXT"}
        client = AdminClient({**protocol, **options, "error_cb": heard.put})
        deadline, error = time.monotonic() + 60, None
        while error is None or SECRET not in error.str():
            assert time.monotonic() < deadline, f"librdkafka repeats no secret: {error}"
            client.poll(0.1)
            with suppress(Empty):
                error = heard.get_nowait()

        noted = ClientErrors(Connection("A", (f"{LOOPBACK}:1",)))
        noted.note(error)

        with pytest.raises(AuthenticationError, match="Failed to acquire SASL OAUTHBEARER token") as refusal:
            noted.raise_refusal()
        assert SECRET not in str(refusal.value)


class TestTrust:
    def test_given_the_endpoints_authority_among_the_jaas_options_then_it_is_trusted_as_in_java(
        self, tmp_path: Path
    ) -> None:
        root = Certified.root("Identity")
        store = tmp_path / "trust.p12"
        store.write_bytes(root.truststore())
        with TokenEndpoint({CLIENT: SECRET}, root.issue("idp", addresses=(LOOPBACK,))) as endpoint:
            options = f'ssl.truststore.location="{store}" ssl.truststore.password="{PASSWORD}"'
            found = by_credentials(endpoint, options)
            store.unlink()
            assert fetch(found.source).principal == CLIENT

    def test_given_an_authority_for_the_brokers_only_then_the_endpoint_is_not_trusted(self) -> None:
        root = Certified.root("Identity")
        with TokenEndpoint({CLIENT: SECRET}, root.issue("idp", addresses=(LOOPBACK,))) as endpoint:
            found = by_credentials(endpoint, ssl_truststore_certificates=root.pem)
            with pytest.raises(AuthenticationError, match=r"is not trusted: .*ssl\.truststore\.location"):
                fetch(found.source)

    def test_given_a_bad_store_among_the_jaas_options_then_the_error_says_where_it_stands(
        self, endpoint: TokenEndpoint
    ) -> None:
        with pytest.raises(
            ConfigurationError, match=r"sasl\.jaas\.config: ssl\.truststore\.location=/no: No such file"
        ):
            by_credentials(
                endpoint,
                'ssl.truststore.location="/no"',
                sasl_oauthbearer_token_endpoint_url=endpoint.url.replace("http:", "https:"),
            )


@dataclass(frozen=True, eq=False)
class OutOfReach:
    """An endpoint that lets whoever asks wait, and then fails."""

    asked: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    may_fail: threading.Event = field(default_factory=threading.Event)

    def fetch(self, where: Where) -> Token:
        self.asked.release()
        self.may_fail.wait(30)
        raise TransientError("out of reach.", where=where)


def wait_until_queued(threads: int) -> None:
    """Until so many threads have come to the place where they wait for one another."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        frames = [frame for top in sys._current_frames().values() for frame, _ in traceback.walk_stack(top)]
        places = [frame for frame in frames if frame.f_code is oauth_tokens._Tokens.get.__code__]
        if len([frame for frame in places if "arrived" in frame.f_locals]) == threads:
            return
        time.sleep(0.01)
    raise AssertionError(f"there are not {threads} threads")


class TestSharing:
    def test_given_several_clients_in_a_process_then_the_endpoint_is_asked_once(self, endpoint: TokenEndpoint) -> None:
        first, second = by_credentials(endpoint).source, by_credentials(endpoint).source
        assert token_of(first, WHERE) == token_of(second, WHERE)
        assert len(endpoint.asked) == 1

    def test_given_three_quarters_of_its_life_are_over_then_a_token_is_renewed(self) -> None:
        token = Token("x", began=1000.0, ends=1100.0, principal="me")
        assert token.fresh_until == 1075.0

    def test_given_a_token_that_was_refused_then_the_next_client_gets_another(self, endpoint: TokenEndpoint) -> None:
        source = by_credentials(endpoint).source
        token_of(source, WHERE)
        forget_token(source)
        token_of(source, WHERE)
        assert len(endpoint.asked) == 2

    def test_given_an_older_token_that_is_refused_then_the_fresh_one_stays(self, endpoint: TokenEndpoint) -> None:
        source = by_credentials(endpoint).source
        endpoint.behaviour.answer = {"access_token": endpoint.token(CLIENT, jti="older")}
        older = token_of(source, WHERE)
        forget_token(source, older.value)
        endpoint.behaviour.answer = {"access_token": endpoint.token(CLIENT, jti="fresh")}
        fresh = token_of(source, WHERE)

        forget_token(source, older.value)

        assert token_of(source, WHERE) is fresh

    def test_given_a_failure_then_those_who_waited_meanwhile_share_it(self) -> None:
        source = OutOfReach()
        with ThreadPoolExecutor(2) as pool:
            first = pool.submit(token_of, source, Where(cluster="A"))
            source.asked.acquire()
            second = pool.submit(token_of, source, Where(cluster="B"))
            wait_until_queued(2)
            source.may_fail.set()

            with pytest.raises(TransientError, match="cluster A: out of reach"):
                first.result(timeout=30)
            with pytest.raises(TransientError, match="cluster B: out of reach"):
                second.result(timeout=30)

        assert not source.asked.acquire(blocking=False)

    def test_given_a_failure_then_whoever_comes_later_asks_again(self, endpoint: TokenEndpoint) -> None:
        endpoint.clients.clear()
        source = by_credentials(endpoint).source
        with pytest.raises(AuthenticationError):
            token_of(source, WHERE)

        endpoint.clients[CLIENT] = SECRET

        assert token_of(source, WHERE).principal == CLIENT

    def test_given_librdkafka_then_it_is_told_where_the_same_tokens_are(self, endpoint: TokenEndpoint) -> None:
        found = by_credentials(endpoint, 'scope="kafka" extension_logicalCluster="lkc-1" extension_b="2"')
        assert found.librdkafka(WHERE) == {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.method": "oidc",
            "sasl.oauthbearer.token.endpoint.url": endpoint.url,
            "sasl.oauthbearer.client.id": CLIENT,
            "sasl.oauthbearer.client.secret": SECRET,
            "sasl.oauthbearer.sub.claim.name": "sub",
            "sasl.oauthbearer.scope": "kafka",
            "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,b=2",
        }

    def test_given_the_endpoints_authority_then_librdkafka_trusts_it_unless_the_name_is_not_to_be_checked(self) -> None:
        root = Certified.root("Identity")
        pem = root.pem.replace("\n", " ")
        unchecked = ' ssl.endpoint.identification.algorithm=""'
        for more, addresses, ca, ours in (("", (LOOPBACK,), root.pem, False), (unchecked, (), None, True)):
            with TokenEndpoint({CLIENT: SECRET}, root.issue("idp", addresses=addresses)) as endpoint:
                given = by_credentials(endpoint, f'ssl.truststore.certificates="{pem}"{more}').librdkafka(WHERE)
            assert (given.get("https.ca.pem"), "oauth_cb" in given) == (ca, ours)

    def test_given_what_librdkafka_cannot_say_then_it_is_given_our_tokens(self, endpoint: TokenEndpoint) -> None:
        found = by_credentials(endpoint, 'extension_a="1,2"')
        given = found.librdkafka(WHERE)
        token = token_of(found.source, WHERE)
        assert given.keys() == {"sasl.mechanism", "oauth_cb"}
        assert given["oauth_cb"]("") == (token.value, token.ends, CLIENT, {"a": "1,2"})

    def test_given_no_token_then_no_client_of_librdkafka_is_made(self, endpoint: TokenEndpoint) -> None:
        endpoint.clients.clear()
        with pytest.raises(AuthenticationError, match="rejected client me"):
            by_credentials(endpoint).librdkafka(WHERE)


class TestTokenFiles:
    def test_given_a_file_then_what_stands_in_it_now_is_the_token_and_without_it_what_stood_there_first(
        self, endpoint: TokenEndpoint, tmp_path: Path
    ) -> None:
        path = tmp_path / "token"
        path.write_text(endpoint.token("first") + "\n", encoding="ascii")
        source = login("", sasl_oauthbearer_token_endpoint_url=path.as_uri()).source
        path.write_text(endpoint.token("second"), encoding="ascii")
        assert fetch(source).principal == "second"
        # As on a machine that has no such file.
        path.unlink()
        assert fetch(source).principal == "first"


class TestUnsecuredTokens:
    def test_given_claims_in_the_login_module_then_the_token_has_them_and_no_signature(self) -> None:
        """KIP-255: the first character of a list claim separates its members."""
        found = login(
            'unsecuredLoginStringClaim_sub="thor" unsecuredLoginNumberClaim_n="3" unsecuredLoginListClaim_l=",a,b" '
            'unsecuredLoginLifetimeSeconds="60" unsecuredLoginExtension_traceId="123"'
        )

        token = fetch(found.source)

        header, _, signature = token.value.split(".")
        claims = jwt_claims(token.value)
        assert json.loads(base64.urlsafe_b64decode(header + "==")) == {"alg": "none"}
        assert signature == ""
        assert (claims["sub"], claims["n"], claims["l"]) == ("thor", 3, ["a", "b"])
        assert claims["exp"] - claims["iat"] == 60
        assert (token.principal, found.extensions) == ("thor", (("traceId", "123"),))

    def test_given_no_name_for_the_user_then_the_error_says_which_option_lacks(self) -> None:
        with pytest.raises(ConfigurationError, match="is missing unsecuredLoginStringClaim_sub"):
            login('unsecuredLoginNumberClaim_n="3"')


def test_given_an_extension_that_sasl_does_not_allow_then_it_is_refused(
    endpoint: TokenEndpoint, subtests: pytest.Subtests
) -> None:
    for extension in ('extension_auth="x"', 'extension_a1="x"', 'extension_a=""'):
        with (
            subtests.test(extension=extension),
            pytest.raises(ConfigurationError, match="is not a valid SASL extension"),
        ):
            by_credentials(endpoint, extension)


def test_given_times_in_milliseconds_then_the_longest_timeout_counts_and_no_pause_floods(
    endpoint: TokenEndpoint,
) -> None:
    timeouts = {"sasl_login_connect_timeout_ms": "1500", "sasl_login_read_timeout_ms": "2500"}
    source = by_credentials(endpoint, sasl_login_retry_backoff_ms="0", **timeouts).source
    assert isinstance(source, ClientCredentials)
    assert (source.timeout, source.backoff) == (2.5, 0.05)
    with pytest.raises(ConfigurationError, match=r"sasl\.login\.read\.timeout\.ms=soon is not a number"):
        by_credentials(endpoint, sasl_login_read_timeout_ms="soon")
