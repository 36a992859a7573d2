"""Secrets in texts, URLs, settings and pasted keys are not shown."""

from __future__ import annotations

import pytest

from mirror_lib.config.loader import InvalidConfigurationError, load
from mirror_lib.config.model import Provenance
from mirror_lib.config.secrets.keys import is_secret
from mirror_lib.config.secrets.masking import masked_text, printable_value
from tests.support.config_files import ConfigFile


def test_texts_and_urls_lose_their_passwords_and_nothing_else() -> None:
    for text, expected in [
        ("postgresql+psycopg://me:pa:ss@host/db", "postgresql+psycopg://me:[hidden]@host/db"),
        ("postgresql://me@host/db?password=x&a=b", "postgresql://[hidden]@host/db?password=[hidden]&a=b"),
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
        "mailto:me@h",
        "http://[::1]:80/",
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
    ]:
        assert SECRET not in masked_text(url), url


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
