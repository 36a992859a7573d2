from __future__ import annotations

import pytest

from mirror_lib.config.masking import masked_text, shown
from mirror_lib.config.model import Provenance
from mirror_lib.config.secret_keys import is_secret


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("postgresql+psycopg://me:pa:ss@host/db", "postgresql+psycopg://me:[hidden]@host/db"),
        ("postgresql://me@host/db?password=x&a=b", "postgresql://me@host/db?password=[hidden]&a=b"),
        ("sqlite:///ledger.sqlite3", "sqlite:///ledger.sqlite3"),
        ('org.x.ScramLoginModule required username="a" password="b";', "[hidden]"),
        ("host1:9092,host2:9092", "host1:9092,host2:9092"),
    ],
)
def test_texts_lose_their_passwords(text: str, expected: str) -> None:
    assert masked_text(text) == expected


@pytest.mark.parametrize(
    "key",
    [
        "A.sasl.jaas.config",
        "ssl.keystore.password",
        "ssl.key.password",
        "ssl.keystore.key",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.assertion.private.key.passphrase",
    ],
)
def test_secret_keys(key: str) -> None:
    assert is_secret(key)
    assert shown(key, Provenance(value="x", key=key)) == "[hidden]"


def test_what_stands_in_the_file_is_not_shown_by_an_accident() -> None:
    assert "hush" not in repr(Provenance(value="hush", key="A.sasl.jaas.config", written='password="hush" ${env:X}'))


def test_other_keys_are_shown() -> None:
    assert not is_secret("sasl.oauthbearer.token.endpoint.url")
    assert shown("topics", Provenance(value=".*")) == ".*"


def test_what_a_provider_returned_is_not_shown() -> None:
    assert shown("topics", Provenance(value="secret", written="${env:T}")) == "${env:T}"
