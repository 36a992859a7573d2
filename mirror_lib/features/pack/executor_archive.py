"""The Python packages of Spark's executors as one archive: `spark.archives=mirror-environment.tar.gz#environment`.

An executor needs a small part of the packages installed here: the imports of the copy and the comparison, without
Airflow or SQL. The archive holds those distributions as they are installed, and a launcher, `bin/python`, that runs
them with the Python of the executor's machine, regardless of its path. Nothing is downloaded or built.
"""

from __future__ import annotations

import gzip
import importlib.util
import io
import json
import marshal
import sys
import sysconfig
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path, PurePosixPath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mirror_lib.errors import ConfigurationError
from mirror_lib.private_files import draft_of

#: Imports of tasks, as in the extra `executor` of `pyproject.toml`. PySpark is not included: executors have Spark's own
#: modules.
EXECUTOR_DISTRIBUTIONS = (
    "aiokafka",
    "confluent-kafka",
    "cramjam",
    "crc32c",
    "cryptography",
    "lazy-loader",
    "numpy",
    "pyarrow",
    "pydantic",
    "regex",
    "uvloop",
)
#: Packed if installed, each with its dependencies for its task: transforms, Kerberos, tokens, and docs/clouds.md.
_OPTIONAL_DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "aws-msk-iam-sasl-signer-python": (),
    "azure-identity": (),
    "fastavro": (),
    "google-auth": ("requests",),
    "gssapi": (),
    "httpx": (),
    "protobuf": (),
}
_OWN_PACKAGES = ("mirror_lib", "spark_jobs")
#: Path of the interpreter in Spark's settings, below the name after `#`.
LAUNCHER = "bin/python"
#: Folder of the unpacked environment, below the executors' own folder.
_ENVIRONMENT = "environment"
_CONTENTS = "environment.json"
# Only for compiling against a package or testing it.
_UNUSED_FOLDERS = {"__pycache__", "tests", "include"}
_UNUSED_SUFFIXES = {".pyc", ".pyi", ".pxd", ".pyx", ".pxi", ".h", ".hpp", ".cc", ".a"}
# A third of Arrow's bytes: its clients of Flight and S3, to which no other part of Arrow is linked.
_UNUSED_ARROW = ("libarrow_flight.", "_flight.", "libarrow_s3.", "_s3fs.")
#: Folder of the descriptions of AWS's services, of which only those for logins are packed.
_AWS_DATA = ("botocore", "data")
_USED_AWS_DATA = {"sts", "sso", "sso-oidc", "signin"}
# A higher level takes twice the time and saves a few percent.
_COMPRESSION = 5
_LAUNCHER_TEXT = """\
#!/bin/sh
# Runs Python {version} of this machine with the packages that lie beside this file.
root=$(cd "$(dirname "$0")/.." && pwd -P) || exit 1
for python in "$MIRROR_EXECUTOR_PYTHON" python{version} python3 /usr/local/bin/python{version} {packer}; do
    if "$python" -c 'import sys; sys.exit(sys.version_info[:2] != {version_info})' 2>/dev/null; then
        export PYTHONPATH="$root/{packages}${{PYTHONPATH:+:$PYTHONPATH}}"
        exec "$python" "$@"
    fi
done
echo "mirror: no Python {version} on this machine, for which these packages are made." \\
    "Install it, or name it by spark.executorEnv.MIRROR_EXECUTOR_PYTHON." >&2
exit 1
"""


@dataclass(frozen=True, slots=True)
class PackedFile:
    """One file of the archive."""

    #: Path below the archive's root.
    name: str
    source: Path


@dataclass(frozen=True, slots=True)
class PackedDistribution:
    """The packed files of an installed distribution."""

    name: str
    version: str
    files: tuple[PackedFile, ...]

    @property
    def bytes(self) -> int:
        """Size before compression."""
        return sum(file.source.stat().st_size for file in self.files)


@dataclass(frozen=True, slots=True)
class ExecutorEnvironment:
    """The content of the archive; nothing is written yet."""

    #: Such as `3.11`: compiled modules need the same version.
    python: str
    #: Such as `linux-x86_64`.
    platform: str
    #: This project's first, the others by name.
    distributions: tuple[PackedDistribution, ...]

    @property
    def files(self) -> int:
        """Number of files, without the launcher and the list of contents."""
        return sum(len(each.files) for each in self.distributions)


def executor_environment() -> ExecutorEnvironment:
    """The environment that executors need, from the packages installed here.

    Raises:
        ConfigurationError: a package is not installed, or its metadata does not list its files.
    """
    found = [_own(name) for name in _OWN_PACKAGES]
    optional = [
        each for name, more in _OPTIONAL_DISTRIBUTIONS.items() if _find(name) is not None for each in (name, *more)
    ]
    found += [_pack(each) for each in installed_distributions(EXECUTOR_DISTRIBUTIONS, optional)]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return ExecutorEnvironment(python=version, platform=sysconfig.get_platform(), distributions=tuple(found))


def environment_settings(archive: str) -> dict[str, str]:
    """Settings with which executors use a packed environment.

    Args:
        archive: its path here, or a URL that executors can read.
    """
    return {"spark.archives": f"{archive}#{_ENVIRONMENT}", "spark.pyspark.python": f"./{_ENVIRONMENT}/{LAUNCHER}"}


def write_archive(environment: ExecutorEnvironment, output: Path, *, packed: Callable[[], None] = lambda: None) -> None:
    """Write the archive; the same packages result in the same bytes.

    Args:
        environment: content of the archive.
        output: replaced when the archive is complete.
        packed: called after each file.

    Raises:
        ConfigurationError: the output cannot be written.
    """
    with ExitStack() as opened:
        try:
            output.parent.mkdir(parents=True, exist_ok=True)
            raw = opened.enter_context(opened.enter_context(draft_of(output)).open("xb"))
        except OSError as error:
            raise ConfigurationError(
                f"{output} cannot be written: {error.strerror}.", action="Set another path with --output."
            ) from error
        with gzip.GzipFile("", "wb", _COMPRESSION, raw, mtime=0) as compressed:
            _write(environment, compressed, packed)


def _write(environment: ExecutorEnvironment, output: gzip.GzipFile, packed: Callable[[], None]) -> None:
    with tarfile.open(fileobj=output, mode="w", format=tarfile.PAX_FORMAT) as archive:
        _add(archive, LAUNCHER, _launcher(environment.python).encode(), mode=0o755)
        _add(archive, _CONTENTS, _contents(environment).encode())
        for file in (file for each in environment.distributions for file in each.files):
            content = file.source.read_bytes()
            _add(archive, file.name, content)
            if file.source.suffix == ".py" and (compiled := _compile(content, file.name)) is not None:
                _add(archive, importlib.util.cache_from_source(file.name), compiled)
            packed()


def installed_distributions(names: Iterable[str], optional: Iterable[str] = ()) -> tuple[Distribution, ...]:
    """These distributions and all their dependencies on this machine, by name.

    Raises:
        ConfigurationError: one is missing that is not optional.
    """
    found: dict[str, Distribution] = {}
    todo = [*names, *(name for name in optional if _find(name) is not None)]
    while todo:
        name = canonicalize_name(todo.pop())
        if name in found:
            continue
        each = _find(name)
        if each is None:
            raise ConfigurationError(
                f"{name}, which executors need, is not installed.", action=f"Install it: pip install {name}."
            )
        found[name] = each
        for text in each.requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                todo.append(requirement.name)
    return tuple(found[name] for name in sorted(found))


def _find(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _own(package: str) -> PackedDistribution:
    """A package of this project, which may be a checkout that is not installed."""
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    if not places:
        raise ConfigurationError(
            f"the package {package} is not importable, so it cannot be packed.",
            action="Install this project (pip install batch-mirror) where the environment is packed.",
        )
    folder = Path(places[0])
    files = sorted(folder.rglob("*.py"))
    return PackedDistribution(
        package, "", tuple(_file(PurePosixPath(package, file.relative_to(folder).as_posix()), file) for file in files)
    )


def _pack(each: Distribution) -> PackedDistribution:
    if each.files is None:
        raise ConfigurationError(
            f"{each.name} does not list its files, so it cannot be packed.",
            action="Install it as a wheel, by pip or uv.",
        )
    files = [
        _file(file, Path(str(each.locate_file(file)))) for file in sorted(each.files, key=str) if _is_used(file.parts)
    ]
    return PackedDistribution(each.name, each.version, tuple(file for file in files if file.source.is_file()))


def _is_used(parts: Sequence[str]) -> bool:
    name = parts[-1]
    if parts[0] == ".." or _UNUSED_FOLDERS & set(parts):
        # Files outside of the folder of packages are programs, which start the Python of this machine.
        return False
    if parts[:2] == _AWS_DATA and len(parts) > 3 and parts[2] not in _USED_AWS_DATA:
        return False
    return Path(name).suffix not in _UNUSED_SUFFIXES and not (parts[0] == "pyarrow" and name.startswith(_UNUSED_ARROW))


def _file(name: PurePosixPath, source: Path) -> PackedFile:
    return PackedFile(str(_packages() / name), source)


def _packages() -> PurePosixPath:
    return PurePosixPath("lib", f"python{sys.version_info.major}.{sys.version_info.minor}", "site-packages")


def _launcher(version: str) -> str:
    # Executors with the same image have this interpreter, regardless of their PATH.
    packer = str(Path(getattr(sys, "_base_executable", sys.executable)))
    numbers = f"({version.replace('.', ', ')})"
    return _LAUNCHER_TEXT.format(version=version, version_info=numbers, packages=_packages(), packer=_quote(packer))


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _contents(environment: ExecutorEnvironment) -> str:
    names = {each.name: each.version for each in environment.distributions if each.version}
    document = {"python": environment.python, "platform": environment.platform, "distributions": names}
    return json.dumps(document, indent=2) + "\n"


def _compile(source: bytes, name: str) -> bytes | None:
    """The compiled module, valid regardless of the file's time after unpacking (PEP 552, unchecked hash)."""
    try:
        code = compile(source, name, "exec", dont_inherit=True, optimize=0)
    except (SyntaxError, ValueError):
        # Templates and syntax tests: importing them reports the error.
        return None
    flags = (0b01).to_bytes(4, "little")
    return importlib.util.MAGIC_NUMBER + flags + importlib.util.source_hash(source) + marshal.dumps(code)


def _add(archive: tarfile.TarFile, name: str, content: bytes, *, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))
