"""A confluent-kafka that speaks Kerberos: its wheels do not, so it is built here, once, beside the project's own.

Its C library, librdkafka, comes from an npm package that carries its source. Everything is pinned by version and hash.
Needs npm, a C compiler and Debian's libsasl2-dev, libkrb5-dev, libssl-dev, zlib1g-dev and libcurl4-openssl-dev.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from mirror_lib.features.demo.state import exclusive, jars_dir

_VERSION = "2.15.1"
_CARRIER = "@confluentinc/kafka-javascript@1.10.1"
_CARRIER_SHA512 = (
    "29578f5019f6d44a8254ff667f1cc4b8cdd26091c7105ed7fa2882d9ee374108"
    "034b211a92c2279821a8a13df0e6af9c340764482acaef58f42027eaa12a992f"
)
_SOURCE = "package/deps/librdkafka"
_REQUIREMENTS = f"""\
confluent-kafka=={_VERSION} --hash=sha256:99d1223020e27854e75981333983c5120d64762268f8afcc805fbd62e7de49aa
gssapi==1.12.0 --hash=sha256:0b48f17296f869db89221c3bde463fdff35152a4cb99ae4aaa42b0b64333fc6c
decorator==5.3.1 --hash=sha256:f47fe6fdbd2edd623ecfe36875d37aba411624e2670dd395dddae1358689bb3c
"""
_BUILD_SECONDS = 1_800.0

Tell = Callable[[str], None]


class KerberosClientError(RuntimeError):
    """The client could not be built; the message carries the end of what the failing program said."""


def kerberos_site(tell: Tell = lambda _: None) -> Path:
    """A folder for PYTHONPATH with confluent-kafka and gssapi; built when it is missing, which takes minutes.

    Raises:
        KerberosClientError: it could not be built.
    """
    home = jars_dir().parent / "kerberos" / f"{sys.implementation.cache_tag}-{_VERSION}"
    site = home / "site"
    if not site.is_dir():
        with exclusive(home.with_suffix(".lock"), lambda: tell("waiting for another build of the Kerberos client")):
            if not site.is_dir():
                tell("building a Kafka client that speaks Kerberos; this takes some minutes, once")
                _build(home, site, tell)
    return site


def with_kerberos(environment: Mapping[str, str], site: Path) -> dict[str, str]:
    """An environment in which Python takes the client from that folder."""
    paths = (str(site), environment.get("PYTHONPATH", ""))
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def _build(home: Path, site: Path, tell: Tell) -> None:
    home.mkdir(parents=True, exist_ok=True)
    prefix = home / "librdkafka"
    with tempfile.TemporaryDirectory(prefix="build-", dir=home) as folder:
        work = Path(folder)
        source = _fetch_source(work)
        shutil.rmtree(prefix, ignore_errors=True)
        tell("compiling librdkafka")
        # Without optimization it is compiled in a third of the time, and these tests copy a few records.
        smaller = ("--disable-optimization", "--disable-curl", "--disable-zstd", "--disable-lz4-ext")
        _run(["./configure", f"--prefix={prefix}", "--enable-gssapi", *smaller], source)
        # Its examples are not in the package.
        _run(["make", "-C", "src", f"-j{os.cpu_count() or 1}"], source)
        _run(["make", "-C", "src", "install"], source)
        tell("compiling confluent-kafka and gssapi")
        requirements = work / "requirements.txt"
        requirements.write_text(_REQUIREMENTS, encoding="ascii")
        built = work / "site"
        compiler = {
            "C_INCLUDE_PATH": str(prefix / "include"),
            "LIBRARY_PATH": str(prefix / "lib"),
            "LDFLAGS": f"-Wl,-rpath,{prefix / 'lib'}",
            "CFLAGS": "-O0 -g0",
        }
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        # Of the same version a wheel could lie in pip's cache, built against something else.
        chosen = ["--no-cache-dir", "--no-deps", "--no-binary", "confluent-kafka,gssapi", "--require-hashes"]
        _run([*pip, *chosen, "--target", str(built), "--requirement", str(requirements)], work, compiler)
        built.rename(site)


def _fetch_source(work: Path) -> Path:
    _run(["npm", "pack", "--silent", _CARRIER], work)
    (archive,) = work.glob("*.tgz")
    digest = hashlib.sha512(archive.read_bytes()).hexdigest()
    if digest != _CARRIER_SHA512:
        raise KerberosClientError(f"{_CARRIER} is not what it was: its SHA-512 is {digest}")
    with tarfile.open(archive) as packed:
        members = [member for member in packed.getmembers() if member.name.startswith(f"{_SOURCE}/")]
        # Pythons before 3.11.4, such as that of Debian 12, know no filters.
        packed.extraction_filter = getattr(tarfile, "data_filter", None)
        packed.extractall(work, members)
    return work / _SOURCE


def _run(command: list[str], folder: Path, more: Mapping[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **(more or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_BUILD_SECONDS,
            check=False,
        )
    except FileNotFoundError as error:
        raise KerberosClientError(f"{command[0]} is missing") from error
    if done.returncode:
        said = done.stdout.decode(errors="replace")[-4_000:]
        raise KerberosClientError(f"{' '.join(command)} failed:\n{said}")
