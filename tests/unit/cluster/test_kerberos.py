"""Kerberos logins as Java's `Krb5LoginModule` is told about them."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.cluster.kerberos import KerberosLogin
from mirror_lib.config.model import ClientSettings
from mirror_lib.errors import ConfigurationError

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


def connect(options: str, **properties: str) -> Connection:
    settings = {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "sasl.jaas.config": f"{MODULE} {options};",
        **{name.replace("_", "."): value for name, value in properties.items()},
    }
    return Connection.from_settings(ClientSettings(cluster="A", role="admin", properties=settings))


def login(options: str, **properties: str) -> KerberosLogin:
    found = connect(options, **properties).security.sasl
    assert isinstance(found, KerberosLogin)
    return found


@pytest.fixture
def keytab(tmp_path: Path) -> Path:
    path = tmp_path / "me.keytab"
    path.write_bytes(b"keys")
    return path


def test_given_a_keytab_then_its_content_travels_and_is_not_shown(keytab: Path) -> None:
    connection = connect(f'useKeyTab=true storeKey=true keyTab="{keytab}" principal="me@REALM"')
    keytab.unlink()

    there = pickle.loads(pickle.dumps(connection))

    assert there.security.sasl == KerberosLogin("kafka", "me@REALM", keytab=b"keys")
    assert "keys" not in repr(there)


def test_given_a_keytab_by_its_type_then_it_is_the_same(keytab: Path) -> None:
    assert login(f'useKeyTab=true keyTab="FILE:{keytab}" principal="me@REALM"').keytab == b"keys"


def test_given_the_service_in_the_login_module_then_it_counts_when_the_property_is_not_set(keytab: Path) -> None:
    options = f'useKeyTab=true keyTab="{keytab}" principal="me" serviceName="broker"'
    assert login(options, sasl_kerberos_service_name="").service == "broker"
    assert login(options).service == "kafka"


def test_given_a_ticket_cache_then_its_content_travels(tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"ticket")
    assert login(f'useTicketCache=true ticketCache="{tmp_path}/cache"').ticket_cache == b"ticket"


def test_given_both_then_the_ticket_cache_counts_as_in_java(keytab: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"ticket")
    both = f'useTicketCache=true ticketCache="{tmp_path}/cache" useKeyTab=true keyTab="{keytab}" principal="me"'
    assert (login(both).ticket_cache, login(both).keytab) == (b"ticket", None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ('useKeyTab=true keyTab="/nowhere/k" principal="me"', "keyTab /nowhere/k: No such file"),
        ('useTicketCache=true ticketCache="/nowhere/c"', "ticketCache /nowhere/c: No such file"),
        ('useKeyTab=true keyTab="/nowhere/k"', "does not give principal"),
    ],
)
def test_given_an_unusable_login_then_the_error_says_why(options: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        login(options)


def test_given_a_client_without_kerberos_then_the_error_says_what_to_install(keytab: Path) -> None:
    """The project's own environment: neither its wheel of confluent-kafka nor package gssapi is there for it."""
    connection = connect(f'useKeyTab=true keyTab="{keytab}" principal="me@REALM"')
    with pytest.raises(
        ConfigurationError, match=r"cluster A: .*confluent-kafka that was built with Kerberos.*docs/sec"
    ):
        connection.librdkafka()
    with pytest.raises(ConfigurationError, match=r"cluster A: .*needs the package gssapi.*docs/security\.md"):
        connection.aiokafka()
