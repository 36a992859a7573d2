"""Secrets in texts, URLs, settings and pasted keys are not shown."""

from __future__ import annotations

import pytest

from mirror_lib.cluster.client_properties import _bootstrap_servers
from mirror_lib.config.file.problems import describe
from mirror_lib.config.loader import InvalidConfigurationError, load
from mirror_lib.config.model import Provenance
from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.config.secrets.masking import masked_text, printable_value
from mirror_lib.errors import NOWHERE, ConfigurationError
from tests.support.config_files import ConfigFile


def test_texts_and_urls_lose_their_passwords_and_nothing_else() -> None:
    for text, expected in [
        ("postgresql+psycopg://me:pa:ss@host/db", "postgresql+psycopg://me:[hidden]@host/db"),
        ("postgresql://me@host/db?password=x&a=b", "postgresql://[hidden]@host/db?[hidden]"),
        ("postgresql://h/db?sslmode=require&x=1&port=1", "postgresql://h/db?sslmode=require&[hidden]"),
        ("sqlite:///ledger.sqlite3", "sqlite:///ledger.sqlite3"),
        ('org.x.ScramLoginModule required username="a" password="b";', "[hidden]"),
        ("host1:9092,host2:9092", "host1:9092,host2:9092"),
    ]:
        assert masked_text(text) == expected, text

    for url in [
        "https://h:8081/path?subject=a&version=1",
        "hdfs://h/env.tar.gz#environment",
        "postgresql://h/db?sslmode=require",
        "spark://a:7077,b:7077",
        "http://[::1]:80/",
        "User:a@EXAMPLE.COM=User:b/host@EXAMPLE.ORG",
        "(?:orders|payments#?).*",
        "anna@example.com",
        "orders:3@1234, A.pay_ments:0@1",
        "User:CN=a,O=b",
        "git@example.com:org/repo",
        "https://h/a%20b?subject=a",
        "a;b;c",
        "keyTab=/etc/a",
        "sslkey=/etc/a",
        "compass=x",
        "tokens-.*,password-resets",
        "x%252540",
        "Server=h,1433;Database=d;Encrypt=yes",
    ]:
        assert masked_text(url) == url, url


SECRET = "S3CRET"


def test_no_form_of_a_url_shows_its_secret() -> None:
    for url in [
        "http://u:a/S3CRET@h",
        "http://S3CRET@h",
        "http://S3CRET@h/path?a=b",
        "http://u:S3CRET@h",
        "http://u:a@S3CRET@h:80/p",
        "http://u:1/S3CRET@h",
        "http://u:a?S3CRET@h",
        "http://u:a#S3CRET@h",
        "http://:S3CRET@h",
        "https://h/p?api-key=S3CRET",
        "https://h/p?apikey=S3CRET&a=b",
        "https://h/p?a=b&X-Amz-Signature=S3CRET",
        "https://h/p?sig=S3CRET",
        "https://h/p?Authorization=S3CRET",
        "https://h/p#token=S3CRET",
        "https://h/p#a=b&access_token=S3CRET",
        "sc://h:15002/;token=S3CRET;user_id=me",
        "jdbc:postgresql://h/db?user=me&password=S3CRET",
        "see https://u:S3CRET@h, or 'http://u:S3CRET@h2'.",
        "airflow+x://u:p%40S3CRET@h",
        "https://h/?pw=S3CRET",
        "https://h/?assertion=S3CRET",
        "https://h/?S3CRET",
        "https://h/?S3CRET=",
        "https://h/p;S3CRET",
        "https://h/p#S3CRET",
        "https://h/?version=1&password=a&S3CRET",
        "https://h/?version=a S3CRET",
        "https://h/?%70assword=S3CRET",
        'https://h/?pw=a"S3CRET',
        "postgresql://me:a\"b S3CRET 'c<`d@h/db",
        "postgresql://me:a\nS3CRET@h/db",
        "http://u:S3CRET://b@h",
        "u:S3CRET://b@h:9092",
        "u:a S3CRET@h:9092",
        "u:S3CRET@h:9092, http://h2",
        "h:9092?password=S3CRET",
        "http:/u:S3CRET@h",
        "//S3CRET@h",
        "https://S3CRET:x@h",
        "jdbc:oracle:thin:u/S3CRET@h:1521",
        "jdbc:sqlserver://h;user=a;pwd=S3CRET",
        "a@b, User:a@b=c:S3CRET@h",
        'com.x.Login required user="a" pw="S3CRET";',
        "postgresql://me:p@S3CRET@h/db",
        "postgresql://me:p@a/S3CRET@h",
        "see postgresql://me:p@S3CRET@h.",
        "h:1433;user=sa;password=S3CRET",
        "h;pwd=S3CRET",
        "h:1433;PASSWD = S3CRET",
        "Server=h;Database=d;User Id=u;Password=S3CRET;",
        "Server=tcp:h,1433;Password=p@S3CRET",
        "Server=h;Password='a;b=S3CRET'",
        "host=h user=u password='a S3CRET' dbname=d",
        "Endpoint=sb://h/;SharedAccessKeyName=a;SharedAccessKey=S3CRET=",
        "AccountName=a;AccountKey=S3CRET==;EndpointSuffix=x",
        "User:S3CRET@h:9092",
        "User:a@EXAMPLE.COM, User:S3CRET@h:9092",
        "Group:a/S3CRET@10.0.0.1:9092",
        "me:12S3CRET@34",
        "password%3DS3CRET",
        "p%61ssword=S3CRET",
        "p%2561ssword=S3CRET",
        "h%3Bpwd%3DS3CRET",
        "postgresql%3A%2F%2Fme%3AS3CRET%40h",
        "me%253AS3CRET%2540h%253A9092",
        '{"password": "S3CRET"}',
        "{'client_secret' : 'S3CRET'}",
        "secret: S3CRET",
        "api-key=S3CRET",
        "Authorization: Basic S3CRET",
        'username="u" password="S3CRET";',
        "username=u password='S3CRET'",
        "username=u password\t=\tS3CRET",
        "PlainLoginModule required username=u password=S3CRET",
        "basic.auth.user.info=u:S3CRET",
    ]:
        assert SECRET not in masked_text(url), url


def test_user_information_in_addresses_of_brokers_is_never_shown(file: ConfigFile) -> None:
    for servers in (
        "S3CRET@h:9092",
        "me:S3CRET@h:9092",
        "me:S3CRET,x@h:9092",
        "h:9092?pw=S3CRET",
        "S3CRET://a@h:1",
        "h:1;pwd=a@S3CRET",
    ):
        assert SECRET not in printable_value("A.bootstrap.servers", Provenance(value=servers))

        problems = file.problems(f"A.bootstrap.servers = {servers}\n")
        assert problems
        assert SECRET not in repr(problems), servers
        with pytest.raises(ConfigurationError) as caught:
            _bootstrap_servers(servers, NOWHERE)
        assert SECRET not in str(caught.value), servers


def test_masking_takes_linear_time() -> None:
    """Counted, not timed: a cubic expression would take hours for these texts."""
    for part in (
        "?pass",
        "&a",
        "://",
        "#",
        "?x",
        "&port=1",
        ".zip#",
        "@",
        "a:b@",
        "x" * 9 + "+",
        ";=",
        "required a",
        "LoginModule ",
        "User:a",
        "User:a@",
        "a:1@2",
        "password ",
        "pass",
        "%25",
        "%70wd",
    ):
        for text in (part * 40_000, "http://h/" + part * 40_000, "http://h/" + part * 40_000 + "@"):
            assert len(masked_text(text)) <= 2 * len(text)


@pytest.mark.parametrize(
    "text",
    [
        "http://h/" + "?pass" * 100_000,
        "http://h/" + "=?sas" * 100_000,
        "http://h/?" + "&key;token#" * 50_000,
        "http://h/" + "?" * 400_000,
        "a" * 400_000,
        "a.+-" * 100_000 + ":/",
        "a://@" * 100_000,
        "LoginModule " + " " * 400_000,
    ],
)
def test_a_text_made_to_backtrack_is_masked_too(text: str) -> None:
    assert SECRET not in masked_text(f"{text} http://u:{SECRET}@h/?token={SECRET}")


def test_values_of_secret_keys_and_of_providers_are_not_shown_others_are() -> None:
    for key in [
        "A.sasl.jaas.config",
        "ssl.keystore.password",
        "ssl.key.password",
        "value.converter.basic.auth.user.info",
        "aws.access.key",
        "ssl.keystore.key",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
    ]:
        assert is_secret(key), key
        assert printable_value(key, Provenance(value="x", key=key)) == "[hidden]", key

    assert not is_secret("sasl.oauthbearer.token.endpoint.url")
    assert printable_value("topics", Provenance(value=".*")) == ".*"

    assert printable_value("topics", Provenance(value="secret", written="${env:T}")) == "${env:T}"

    assert "hush" not in repr(Provenance(value="hush", key="A.sasl.jaas.config", written='password="hush" ${env:X}'))


_KEY = ("MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcw", "ggSjAgEAAoIBAQC7VJTUt9Us8cKjMzEfYyji", "WA4R4/M2bS1G==")
_PEM = "\n".join(["-----BEGIN PRIVATE KEY-----", *_KEY, "-----END PRIVATE KEY-----"])


def test_a_key_over_several_lines_is_one_mistake_and_one_whose_lines_are_joined_is_fine(file: ConfigFile) -> None:
    for before in ("A.ssl.keystore.key = ", "A.ssl.keystore.key =\n", ""):
        with pytest.raises(InvalidConfigurationError) as caught:
            load(file.write(f"{before}{_PEM}\nnonsense = 1\n"))

        lines = [problem.line for problem in caught.value.problems]
        shown = repr((str(caught.value), caught.value.attributes()))
        assert lines == [5 + before.count("\n"), 10 + before.count("\n")], before
        assert not [piece for piece in _KEY if piece.rstrip("=") in shown], before
    joined = _PEM.replace("\n", "\\n\\\n  ")
    assert file.problems(f"A.ssl.keystore.key = {joined}\nB.client.id = x\n") == []


def test_no_text_of_a_file_forges_another_problem(file: ConfigFile) -> None:
    """Keys, aliases and values with line breaks, which escapes of a properties file make."""
    forged = "\\nerror: all is lost"
    for line in (
        f"clusters = A, B{forged}",
        f"A.secu{forged.replace(':', '')}.protocol = x",
        f"A.security.protocol = {forged}",
        f"A->B.topics = ({forged}",
        f"A->B.tasks.max = \\u001b[2J{forged}",
        f"A->B.mirror.transforms = x{forged}",
        f"A->B.replication.policy.class = a{forged}",
        f"config.providers = p{forged}",
        f"topics = ${{env:a{forged}}}",
    ):
        problems = file.problems(f"{line}\n")
        assert problems, line
        assert all(text.isprintable() for each in problems for text in (each.message, each.suggestion or "")), line
        assert "\nerror: all" not in describe(problems[0])
