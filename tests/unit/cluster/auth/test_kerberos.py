"""Kerberos logins as Java's `Krb5LoginModule` is told about them."""

from __future__ import annotations

import os
import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mirror_lib.cluster.connection import Connection
from mirror_lib.errors import AuthenticationError, ConfigurationError, Where
from mirror_lib.features.kerberos import tickets as kerberos_tickets
from mirror_lib.features.kerberos.login import KerberosLogin
from mirror_lib.features.kerberos.tickets import TICKETS, Tickets
from tests.support.connections import connection_of

WHERE = Where(cluster="A")
MODULE = "com.sun.security.auth.module.Krb5LoginModule required"


def connect(options: str, **properties: str) -> Connection:
    usual = {"sasl_kerberos_service_name": "kafka", "sasl_jaas_config": f"{MODULE} {options};"}
    return connection_of(security_protocol="SASL_PLAINTEXT", sasl_mechanism="GSSAPI", **(usual | properties))


def login(options: str, **properties: str) -> KerberosLogin:
    found = connect(options, **properties).security.sasl
    assert isinstance(found, KerberosLogin)
    return found


class GSSError(Exception):
    """As package gssapi's."""


@dataclass
class Held:
    """A ticket."""

    name: str
    lifetime: int | None


class StandIn(ModuleType):
    """What of package gssapi is used, over caches that are known by their content."""

    NameType = SimpleNamespace(kerberos_principal=object())
    exceptions = SimpleNamespace(GSSError=GSSError)

    def __init__(self) -> None:
        super().__init__("gssapi")
        self.caches: dict[bytes, Held] = {}
        self.memory: dict[str, Held] = {}
        self.by_keytab: list[str] = []
        self.process_principal = "process@R"

    def Name(self, principal: str, name_type: object) -> str:  # noqa: N802  # as it is called there
        del name_type
        return principal

    def Credentials(  # noqa: N802  # as it is called there
        self, *, usage: str, name: str | None = None, store: dict[str, str] | None = None
    ) -> Credentials:
        assert usage == "initiate"
        # As MIT's default.
        cache = (store or {}).get("ccache") or os.environ.get("KRB5CCNAME", "KCM:me")
        if store is not None and "client_keytab" in store:
            assert name is not None
            self.by_keytab.append(name)
            self.memory[cache] = Held(name, 600)
        if cache.startswith("FILE:"):
            held = self.caches.get(Path(cache.removeprefix("FILE:")).read_bytes())
        else:
            held = Held(self.process_principal, 600) if cache.startswith("KCM:") else self.memory.get(cache)
        if held is None or (name is not None and held.name != name):
            raise GSSError("no credentials")
        return Credentials(self, held)


@dataclass
class Credentials:
    """As package gssapi's."""

    of: StandIn
    held: Held

    @property
    def name(self) -> str:
        return self.held.name

    @property
    def lifetime(self) -> int | None:
        return self.held.lifetime

    def inquire(self) -> None:
        if self.held.lifetime == 0:
            raise GSSError("expired")

    def store(self, *, store: dict[str, str], usage: str, overwrite: bool, set_default: bool) -> None:
        assert (usage, overwrite, set_default) == ("initiate", True, False)
        self.of.memory[store["ccache"]] = self.held


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


def test_given_the_service_in_the_login_module_then_it_counts_when_the_property_is_not_set(keytab: Path) -> None:
    options = f'useKeyTab=true keyTab="{keytab}" principal="me" serviceName="broker"'
    assert login(options, sasl_kerberos_service_name="").service == "broker"
    assert login(options).service == "kafka"


def test_what_of_keytab_and_ticket_cache_can_be_used_travels_as_in_java(keytab: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_bytes(b"ticket")
    in_cache = f'useTicketCache=true ticketCache="{tmp_path}/cache"'
    in_keytab = f'useKeyTab=true keyTab="{keytab}" principal="me"'
    for options, ticket, keys in (
        (f'useKeyTab=true keyTab="FILE:{keytab}" principal="me@REALM"', None, b"keys"),
        (in_cache, b"ticket", None),
        (f"{in_cache} {in_keytab}", b"ticket", b"keys"),
        # Without a cache file the keytab serves.
        (f'useTicketCache=true ticketCache="/nowhere/c" {in_keytab}', None, b"keys"),
        # Without a usable keytab the cache serves.
        (f'{in_cache} useKeyTab=true keyTab="/nowhere/k" principal="me"', b"ticket", None),
        (f'{in_cache} useKeyTab=true keyTab="{keytab}"', b"ticket", None),
    ):
        found = login(options)

        assert (found.ticket_cache, found.keytab) == (ticket, keys), options


_NOBODY = 65_534


def _cache(folder: Path, kind: str) -> Path:
    """A cache that another user could have made, or could change."""
    folder.mkdir()
    path, theirs = folder / "krb5cc_1000", kind not in ("own", "all may change it", "folder of all")
    if kind == "in a folder of another":
        folder.chmod(0o1777)
        (folder / "1000").mkdir()
        os.chown(folder / "1000", _NOBODY, _NOBODY)
        path = folder / "1000" / "cc"
    made = path
    if kind == "link":
        path.symlink_to(made := folder.parent / "target")
    if kind.startswith("folder"):
        made.mkdir()
        made.chmod(0o1777 if kind == "folder of all" else 0o755)
    else:
        made.write_bytes(b"ticket")
        made.chmod(0o666 if kind == "all may change it" else 0o600 if kind in ("own", "not shared") else 0o644)
    if kind in ("in a folder of all", "link"):
        folder.chmod(0o1777)
    if theirs:
        os.chown(path, _NOBODY, _NOBODY, follow_symlinks=False)
    return path


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize(
    ("kind", "refused"),
    [
        ("own", None),
        ("shared", None),
        ("not shared", "belongs to another user, who has not shared it"),
        ("in a folder of all", "belongs to another user, in a folder that all users may write"),
        ("link", "another user may have made this link"),
        ("all may change it", "all users may change it"),
        ("folder", "belongs to another user"),
        ("folder of all", "all users may change it"),
        ("in a folder of another", "belongs to another user, in a folder that all users may write"),
    ],
)
def test_a_ticket_cache_of_another_user_is_refused_however_it_is_named(
    kind: str, refused: str | None, keytab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = _cache(tmp_path / "shared", kind)
    if kind == "folder":
        path.chmod(0o700)
    in_keytab = f'useKeyTab=true keyTab="{keytab}" principal="me"'
    named = (
        [f"FILE:{path}", f"DIR:{path}", f"DIR::{path}"] if kind.startswith("folder") else [f"FILE:{path}", str(path)]
    )
    for more in ("", in_keytab):
        for name in named:
            monkeypatch.setattr(TICKETS, "process_cache", name)
            for options in (f'useTicketCache=true ticketCache="{name}" {more}', f"useTicketCache=true {more}"):
                if refused is None:
                    assert login(options).ticket_cache == b"ticket"
                    continue
                with pytest.raises(ConfigurationError, match=refused) as caught:
                    login(options)
                assert "KRB5CCNAME" in caught.value.action


def test_a_cache_that_is_no_file_is_not_read_from_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keytab: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("KCM:", "KEYRING:persistent:0", "MEMORY:x"):
        Path(name).write_bytes(b"ticket of whoever may write here")
        monkeypatch.setattr(TICKETS, "process_cache", name)

        assert login("useTicketCache=true").ticket_cache is None
        assert login(f'useTicketCache=true ticketCache="{name}" useKeyTab=true keyTab="{keytab}" principal="m"').keytab
        with pytest.raises(ConfigurationError, match="No such file"):
            login(f'useTicketCache=true ticketCache="{name}"')


class TestTickets:
    """With a stand-in for package gssapi, which the project's own environment does not have."""

    @pytest.fixture
    def realm(self, monkeypatch: pytest.MonkeyPatch) -> StandIn:
        standing_in = StandIn()
        monkeypatch.setitem(sys.modules, "gssapi", standing_in)
        monkeypatch.setenv("KRB5CCNAME", "KCM:me")
        return standing_in

    @pytest.fixture
    def tickets(self, realm: StandIn) -> Any:
        return Tickets()

    @pytest.mark.parametrize(
        ("held", "by_keytab"),
        [
            pytest.param(("me@R", 600), [], id="current"),
            pytest.param(("me@R", None), [], id="without an end"),
            pytest.param(None, ["me@R"], id="broken"),
            pytest.param(("other@R", 600), ["me@R"], id="of another"),
            pytest.param(("me@R", 0), ["me@R"], id="over"),
        ],
    )
    def test_given_both_then_a_current_ticket_of_the_cache_is_used_and_for_another_one_is_got_by_the_keytab(
        self, realm: StandIn, tickets: Any, held: tuple[str, int | None] | None, by_keytab: list[str]
    ) -> None:
        if held is not None:
            realm.caches[b"ticket"] = Held(*held)

        found = tickets.credentials(KerberosLogin("kafka", "me@R", b"keys", b"ticket"), WHERE)

        assert (found.name, realm.by_keytab) == ("me@R", by_keytab)

    def test_given_a_cache_only_then_its_failure_is_told(self, realm: StandIn, tickets: Any) -> None:
        with pytest.raises(AuthenticationError, match="Kerberos rejected me@R"):
            tickets.credentials(KerberosLogin("kafka", "me@R", ticket_cache=b"ticket"), WHERE)

    def test_given_a_fall_back_then_librdkafka_finds_the_ticket_got_by_the_keytab(
        self, realm: StandIn, tickets: Any
    ) -> None:
        tickets.offer_to_process(KerberosLogin("kafka", "me@R", b"keys", b"ticket"), WHERE)
        after_fall_back = os.environ["KRB5CCNAME"]
        tickets.offer_to_process(KerberosLogin("kafka", "me@R", b"keys"), WHERE)

        assert after_fall_back == os.environ["KRB5CCNAME"] != "KCM:me"

    @pytest.mark.parametrize("other", ["other@R", "other@S"])
    @pytest.mark.parametrize("process_first", [True, False])
    @pytest.mark.parametrize("named_by", ["the environment", "krb5.conf"])
    def test_given_the_processs_cache_and_one_of_ours_for_another_principal_then_librdkafka_cannot_have_both(
        self, realm: StandIn, other: str, process_first: bool, named_by: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if named_by == "krb5.conf":
            monkeypatch.delenv("KRB5CCNAME")
            monkeypatch.setattr(kerberos_tickets, "_default_cache", lambda: "KCM:me")
        tickets = Tickets()
        realm.process_principal = "me@R"
        logins = [KerberosLogin("kafka"), KerberosLogin("kafka", other, b"keys")]
        first, second = logins if process_first else reversed(logins)
        tickets.offer_to_process(first, WHERE)

        with pytest.raises(ConfigurationError, match=r"me@R.*other@|other@.*me@R"):
            tickets.offer_to_process(second, WHERE)

        assert os.environ.get("KRB5CCNAME", "KCM:me").startswith("KCM:" if process_first else "MEMORY:")
        assert [str(tickets.credentials(each, WHERE).name) for each in logins] == ["me@R", other]

    def test_given_the_processs_cache_and_one_of_ours_for_the_same_principal_then_both_log_in(
        self, realm: StandIn, tickets: Any
    ) -> None:
        realm.process_principal = "me@R"
        for each in (KerberosLogin("kafka"), KerberosLogin("kafka", "me@R", b"keys"), KerberosLogin("kafka")):
            tickets.offer_to_process(each, WHERE)

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
    def test_a_cache_that_another_user_has_made_on_the_executors_machine_is_refused_where_it_is_used(
        self, realm: StandIn, tickets: Any, tmp_path: Path
    ) -> None:
        path = tmp_path / "tmp" / "krb5cc_0"
        tickets.process_cache = f"FILE:{path}"
        realm.caches[b"ticket"] = Held("intruder@R", 600)
        _cache(path.parent, "in a folder of all").rename(path)

        with pytest.raises(ConfigurationError, match="belongs to another user"):
            tickets.credentials(KerberosLogin("kafka"), WHERE)

    def test_given_two_principals_of_different_realms_by_keytabs_then_both_log_in(
        self, realm: StandIn, tickets: Any
    ) -> None:
        tickets.offer_to_process(KerberosLogin("kafka", "me@R", b"keys"), WHERE)
        tickets.offer_to_process(KerberosLogin("kafka", "me@S", b"keys"), WHERE)
        with pytest.raises(ConfigurationError, match="both needed"):
            tickets.offer_to_process(KerberosLogin("kafka", "other@S", b"keys"), WHERE)


def test_given_an_unusable_login_then_the_error_says_why(subtests: pytest.Subtests) -> None:
    for options, message in (
        ('useKeyTab=true keyTab="/nowhere/k" principal="me"', "keyTab /nowhere/k: No such file"),
        ('useTicketCache=true ticketCache="/nowhere/c"', "ticketCache /nowhere/c: No such file"),
        ('useKeyTab=true keyTab="/nowhere/k"', "has no principal"),
    ):
        with subtests.test(options=options), pytest.raises(ConfigurationError, match=message):
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
