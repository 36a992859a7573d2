"""Config providers and variables (KIP-297, KIP-421 and `ConfigTransformer`)."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from mirror_lib.config.loader import InvalidConfigurationError, load
from mirror_lib.config.secrets.providers import (
    DirectoryProvider,
    EnvironmentProvider,
    FileProvider,
    ProviderError,
    Resolver,
    make_providers,
)
from mirror_lib.errors import LedgerError
from mirror_lib.ledger.database import Database
from mirror_lib.operator_limits import read_named, take_limits
from mirror_lib.outside_limits import FILE_BYTES
from tests.support.terminal import invoke

_NOT_READ = r"cannot be read: (Not a regular file|Is a directory)"
_NOT_FILES = ("pipe", "link", "socket", "replaced")
_PACKAGE = "org.apache.kafka.common.config.provider"


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    (tmp_path / "secrets.properties").write_text("password = s3cret\nuser=me\n")
    (tmp_path / "token").write_text("abc\n")
    (tmp_path / "inner").mkdir()
    return tmp_path


def test_environment_variables_are_limited_by_the_whole_name() -> None:
    provider = EnvironmentProvider({"allowlist.pattern": "MIRROR_.*"}, {"MIRROR_A": "1", "OLD_MIRROR_A": "2"})
    assert provider.get("", "MIRROR_A") == "1"
    assert provider.get("", "OLD_MIRROR_A") is None
    with pytest.raises(ProviderError):
        provider.get("/x", "MIRROR_A")
    with pytest.raises(ProviderError):
        EnvironmentProvider({"allowlist.pattern": "("}, {})


def test_files_give_their_keys(secrets: Path) -> None:
    provider = FileProvider({})
    assert provider.get(str(secrets / "secrets.properties"), "password") == "s3cret"
    assert provider.get(str(secrets / "secrets.properties"), "other") is None
    assert provider.get("", "password") is None
    with pytest.raises(ProviderError, match="cannot be read"):
        provider.get(str(secrets / "none"), "password")


def test_a_file_with_a_byte_order_mark_is_a_failure_where_java_would_misread_its_first_key(secrets: Path) -> None:
    provider = FileProvider({})
    file = secrets / "marked.properties"
    file.write_bytes("password = s3cret\n".encode("utf-8-sig"))
    with pytest.raises(ProviderError, match=r"byte order mark .* without BOM"):
        provider.get(str(file), "password")
    file.write_bytes("# by hand\npassword = s3cret\n".encode("utf-8-sig"))
    assert FileProvider({}).get(str(file), "password") == "s3cret"


def test_folders_give_whole_files_and_only_their_own(secrets: Path) -> None:
    provider = DirectoryProvider({})
    assert provider.get(str(secrets), "token") == "abc\n"
    assert provider.get(str(secrets / "inner"), "../token") is None
    assert provider.get(str(secrets), "inner") is None
    with pytest.raises(ProviderError):
        provider.get(str(secrets / "token"), "x")


def test_allowed_paths_keep_out_other_files_also_by_dots(secrets: Path) -> None:
    provider = FileProvider({"allowed.paths": str(secrets / "inner")})
    assert provider.get(str(secrets / "inner" / ".." / "secrets.properties"), "password") is None
    with pytest.raises(ProviderError):
        FileProvider({"allowed.paths": "relative"})


def test_variables_are_replaced_once_and_failures_are_told_without_stopping(secrets: Path) -> None:
    resolver = Resolver({"env": EnvironmentProvider({}, {"A": "${env:B}", "B": "b"})})
    result = resolver.resolve("x ${env:A} ${env:B}${env:C} ${vault:p:k} $y")
    assert result.text == "x ${env:B} b${env:C} ${vault:p:k} $y"
    assert result.unknown == ("${env:C}", "${vault:p:k}")

    resolver = Resolver({"file": FileProvider({})})
    result = resolver.resolve(f"${{file:{secrets}/none:a}} ${{file:{secrets}/secrets.properties:user}}")
    assert result.text.endswith(" me")
    assert len(result.failures) == 1


@pytest.mark.parametrize("text", ["${" + ":" * 300_000, "${a:" * 100_000, "${a" * 100_000 + "}", ":${a" * 100_000])
def test_a_text_made_to_backtrack_has_no_variable(text: str) -> None:
    assert Resolver({}).resolve(text).text == text


def test_a_variable_of_a_known_provider_must_be_closed() -> None:
    for text in ["${env:PASSWOR", "x ${env:", "${env:A}${env:PASS"]:
        resolver = Resolver({"env": EnvironmentProvider({}, {"A": "${env:B"})})
        (failure,) = resolver.resolve(text).failures
        assert failure.startswith("${env: the closing } is missing"), text

    for text in ["${other:x", "pass${word", "${env:A}", "$env:A"]:
        resolver = Resolver({"env": EnvironmentProvider({}, {"A": "${env:B"})})
        assert resolver.resolve(text).failures == (), text


def test_providers_are_made_by_their_java_names() -> None:
    providers, wrong = make_providers(
        {
            "config.providers": "env, x, vault",
            "config.providers.env.class": f"{_PACKAGE}.EnvVarConfigProvider",
            "config.providers.env.param.allowlist.pattern": "NONE",
            "config.providers.vault.class": "com.example.Vault",
        }
    )
    assert set(providers) == {"env"}
    assert providers["env"].get("", "PATH") is None
    assert set(wrong) == {"config.providers", "config.providers.vault.class"}


def test_a_file_that_never_ends_is_not_read_to_its_end(tmp_path: Path) -> None:
    (tmp_path / "replaced").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        # Standard input of a task may be a pipe that nobody writes to.
        reading, writing = os.pipe()
        for path in ["/dev/zero", "/dev/full", "/dev/tty", f"/dev/fd/{reading}", *map(tmp_path.joinpath, _NOT_FILES)]:
            with pytest.raises(ProviderError, match=_NOT_READ):
                FileProvider({}).get(str(path), "key")
            assert DirectoryProvider({}).get(str(Path(path).parent), Path(path).name) is None, path
            with pytest.raises(InvalidConfigurationError, match=_NOT_READ):
                load(path)
            code, _, said = invoke("config", "import", path)
            assert code, path
            assert "Pass a regular file" in said, path
        os.close(reading)
        os.close(writing)
    # It looks like a file, and has all variables of this process.
    for provider, path, key in (
        (FileProvider({}), "/proc/self/environ", "HOME"),
        (DirectoryProvider({}), "/proc/self", "environ"),
    ):
        with pytest.raises(ProviderError, match=_NOT_READ):
            provider.get(path, key)
    (tmp_path / "large").write_bytes(bytes(FILE_BYTES + 1))
    with pytest.raises(ProviderError, match="File too large"):
        DirectoryProvider({}).get(str(tmp_path), "large")


def test_the_operator_limits_providers_files_and_variables_and_the_file_cannot(
    secrets: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "x.properties").write_text("password = theirs\n")
    (secrets / "link.properties").symlink_to(outside / "x.properties")
    (secrets / "way").symlink_to(outside)
    monkeypatch.setenv("MIRROR_ALLOWED_PATHS", f"/no/such:{secrets}")
    monkeypatch.setenv("MIRROR_ALLOWED_VARIABLES", "KAFKA_.*")
    file, folder = FileProvider({"allowed.paths": "/"}), DirectoryProvider({"allowed.paths": "/"})

    assert file.get(str(secrets / "secrets.properties"), "password") == "s3cret"
    assert folder.get(str(secrets), "token") == "abc\n"
    by_dots = secrets / "inner" / ".." / ".." / outside.name / "x.properties"
    for path in (outside / "x.properties", secrets / "link.properties", secrets / "way" / "x.properties", by_dots):
        with pytest.raises(ProviderError, match="MIRROR_ALLOWED_PATHS"):
            file.get(str(path), "password")
        with pytest.raises(OSError, match="MIRROR_ALLOWED_PATHS"):
            read_named(path)
    for where, key in ((outside, "x.properties"), (secrets / "way", "x.properties"), (secrets, "link.properties")):
        with pytest.raises(ProviderError, match="MIRROR_ALLOWED_PATHS"):
            folder.get(str(where), key)
    monkeypatch.chdir(secrets)
    for url in (
        f"sqlite:///{outside}/x",
        f"postgresql://h/d?sslrootcert={outside}/x",
        "postgresql://h/d?passfile=/x",
    ):
        with pytest.raises(LedgerError, match="MIRROR_ALLOWED_PATHS"):
            Database.open(url)
    # SQLite would open another file than the one that is checked.
    with pytest.raises(LedgerError, match="URI of SQLite"):
        Database.open(f"sqlite:///file:{secrets}/%252e%252e/x?uri=true")
    variables = EnvironmentProvider({"allowlist.pattern": ".*"}, {"KAFKA_A": "1", "AIRFLOW__CORE__FERNET_KEY": "2"})
    assert (variables.get("", "KAFKA_A"), variables.get("", "AIRFLOW__CORE__FERNET_KEY")) == ("1", None)

    declared = {"config.providers": "a, b", "config.providers.a.class": f"{_PACKAGE}.FileConfigProvider"}
    declared |= {"config.providers.b.class": f"{_PACKAGE}.EnvVarConfigProvider"}
    for allowed, made in (("env", {"b"}), (" file , env ", {"a", "b"}), ("none", set()), ("", {"a", "b"})):
        monkeypatch.setenv("MIRROR_ALLOWED_PROVIDERS", allowed)
        providers, wrong = make_providers(declared)
        assert set(providers) == made, allowed
        assert set(wrong) == {f"config.providers.{name}.class" for name in {"a", "b"} - made}


def test_limits_come_from_airflows_configuration_unless_the_environment_has_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MIRROR_ALLOWED_PATHS", "/of/the/environment")
    monkeypatch.setenv("MIRROR_ALLOWED_PROVIDERS", "")
    monkeypatch.delenv("MIRROR_ALLOWED_VARIABLES", raising=False)

    limits = {"allowed_paths": "/x", "allowed_providers": "env"}
    take_limits(lambda section, name: limits.get(name) if section == "mirror" else None)

    assert os.environ["MIRROR_ALLOWED_PATHS"] == "/of/the/environment"
    assert os.environ["MIRROR_ALLOWED_PROVIDERS"] == "env"
    assert "MIRROR_ALLOWED_VARIABLES" not in os.environ
