"""Fetch Kafka's jars without Maven, by Apache Ivy, which PySpark ships.

A set of jars is one folder. It is renamed into place when it is complete, so an existing folder can be used.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from xml.sax.saxutils import quoteattr

from mirror_lib.errors import ConfigurationError, MirrorError
from mirror_lib.features.demo.jar_digests import check_jars, known_jars
from mirror_lib.features.demo.state import exclusive, jars_dir
from mirror_lib.spark.java import find_java

KAFKA_VERSION = "4.3.1"
#: Path of the user's own Ivy settings file, for machines that only reach a mirror of the public repositories.
IVY_SETTINGS_VARIABLE = "MIRROR_IVY_SETTINGS"


class JarsUnavailableError(MirrorError):
    """The jars could not be fetched."""

    reason = "jars-unavailable"
    retriable = True


@dataclass(frozen=True, slots=True)
class Artifact:
    """A jar by its repository coordinates, with its runtime dependencies."""

    organisation: str
    module: str
    version: str

    def __str__(self) -> str:
        return f"{self.organisation}:{self.module}:{self.version}"


@dataclass(frozen=True, slots=True)
class JarSet:
    """Jars that are fetched together into the folder `name`."""

    name: str
    version: str
    artifacts: tuple[Artifact, ...]

    def is_complete(self, folder: Path) -> bool:
        """Return True if the folder holds the set; only named artifacts are checked, the rename guarantees the rest."""
        wanted = [artifact for artifact in self.artifacts if artifact not in (_LOG4J2_BINDING, _RELOAD4J_BINDING)]
        return all((folder / f"{artifact.module}-{artifact.version}.jar").is_file() for artifact in wanted)


@dataclass(frozen=True, slots=True)
class FetchProgress:
    """The progress of a fetch: modules found while `total` is None, then jars downloaded of `total`."""

    jar_set: str
    done: int
    total: int | None
    what: str


Report = Callable[[FetchProgress], None]

_KAFKA = "org.apache.kafka"
#: Kafka logs through slf4j and its distribution adds the binding, which no Kafka artifact depends on.
_LOG4J2_BINDING = Artifact("org.apache.logging.log4j", "log4j-slf4j-impl", "2.25.4")
_RELOAD4J_BINDING = Artifact("org.slf4j", "slf4j-reload4j", "1.7.36")


def kafka_broker(version: str = KAFKA_VERSION) -> JarSet:
    """Return a broker and its command line tools."""
    return JarSet(version, version, (Artifact(_KAFKA, "kafka_2.13", version), _log_binding(version)))


def mirror_maker(version: str = KAFKA_VERSION) -> JarSet:
    """Return MirrorMaker 2 itself (`org.apache.kafka.connect.mirror.MirrorMaker`)."""
    artifacts = tuple(Artifact(_KAFKA, module, version) for module in ("connect-mirror", "connect-runtime"))
    return JarSet(f"{version}-mirror-maker", version, (*artifacts, _log_binding(version)))


def mirror_client(version: str = KAFKA_VERSION) -> JarSet:
    """Return MirrorMaker 2's Java client (`RemoteClusterUtils`), which must be able to read this project's topics."""
    return JarSet(
        f"{version}-mirror-client", version, (Artifact(_KAFKA, "connect-mirror-client", version), _log_binding(version))
    )


def uses_log4j2(version: str) -> bool:
    """Return True for Kafka since 4.0, which logs by Log4j 2 (KIP-653), before that by reload4j, the fixed Log4j 1."""
    return int(version.partition(".")[0]) >= 4


def _log_binding(version: str) -> Artifact:
    return _LOG4J2_BINDING if uses_log4j2(version) else _RELOAD4J_BINDING


def fetch(jar_set: JarSet, *, into: Path | None = None, report: Report = lambda _: None) -> Path:
    """Make sure that a set of jars is on this machine; of several processes, one fetches and the others wait.

    Args:
        jar_set: what to fetch.
        into: the folder of all sets, by default the shared one of `jars_dir()`.
        report: called with progress; not at all if the jars exist.

    Returns:
        The folder of the jars.

    Raises:
        ConfigurationError: Java or PySpark is missing.
        JarsUnavailableError: Ivy could not fetch them.
    """
    parent = jars_dir() if into is None else into
    folder = parent / jar_set.name
    if jar_set.is_complete(folder):
        return folder

    def report_wait() -> None:
        report(FetchProgress(jar_set.name, 0, None, "waiting for another process that fetches them"))

    with exclusive(parent / f".{jar_set.name}.lock", report_wait):
        if not jar_set.is_complete(folder):
            _fetch_to(folder, jar_set, report)
    return folder


def classpath(folder: Path) -> str:
    """Return the `-cp` argument for all jars of a folder."""
    return f"{folder}{os.sep}*"


def pyspark_jars() -> Path:
    """Return the folder of PySpark's own jars, found without importing PySpark.

    Raises:
        ConfigurationError: PySpark is not installed, or only its client is, which has no jars.
    """
    spec = importlib.util.find_spec("pyspark")
    places = [] if spec is None else list(spec.submodule_search_locations or ())
    for place in places:
        folder = Path(place) / "jars"
        if any(folder.glob("ivy-*.jar")):
            return folder
    raise ConfigurationError("PySpark is not installed with its jars.", action="Run ./run setup in the project.")


def _fetch_to(folder: Path, jar_set: JarSet, report: Report) -> None:
    with tempfile.TemporaryDirectory(prefix=f".{jar_set.name}.", dir=folder.parent) as name:
        work = Path(name)
        (work / "ivy.xml").write_text(ivy_module(jar_set.artifacts), encoding="utf-8")
        _run_ivy(jar_set, work, report)
        if not jar_set.is_complete(work / "jars"):
            raise JarsUnavailableError(f"Ivy ended well but did not deliver all of {jar_set.name}.", action=_ACTION)
        _refuse_other_jars(jar_set, work / "jars")
        if folder.exists():
            # Jars of an earlier, incomplete set; a running JVM keeps the files that it has open.
            shutil.rmtree(folder)
        (work / "jars").rename(folder)


def _refuse_other_jars(jar_set: JarSet, folder: Path) -> None:
    """Raise for jars that differ from those that this project first used.

    For unknown versions of Kafka, only the jars with a known digest are compared.

    Raises:
        JarsUnavailableError: a digest differs, or is missing.
    """
    known = known_jars()
    named = [f"{each.module}-{each.version}.jar" for each in jar_set.artifacts if each.organisation == _KAFKA]
    is_known = any(name in known for name in named)
    checked = check_jars(known, folder, refuse_unknown=is_known)
    if checked.problems:
        raise JarsUnavailableError(
            f"the jars of {jar_set.name} were fetched and are not used: {'; '.join(checked.problems[:5])}.",
            action="Ask who keeps the repository that Ivy fetches from; nothing of it was installed.",
        )


_ACTION = "Check that this machine reaches the public Java repositories, then try again."


def _run_ivy(jar_set: JarSet, work: Path, report: Report) -> None:
    settings = os.environ.get(IVY_SETTINGS_VARIABLE)
    command = [
        *(str(find_java()), "-cp", classpath(pyspark_jars()), "org.apache.ivy.Main"),
        *(("-settings", settings) if settings else ("-m2compatible",)),
        # A separate cache: Ivy fails on a local Maven cache that holds descriptions without jars.
        *("-cache", str(work / "cache"), "-confs", "default", "-ivy", str(work / "ivy.xml")),
        *("-retrieve", f"{work / 'jars'}/[artifact]-[revision].[ext]"),
    ]
    log = IvyLog(jar_set.name, report)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as ivy:
        assert ivy.stdout is not None
        for line in ivy.stdout:
            log.read(line)
    if ivy.returncode != 0:
        detail = "; ".join(log.problems[:5]) or f"exit code {ivy.returncode}"
        raise JarsUnavailableError(f"Kafka's jars ({jar_set.name}) could not be fetched: {detail}.", action=_ACTION)


def ivy_module(artifacts: Iterable[Artifact]) -> str:
    """Return the Ivy module description that depends on the artifacts at run time (`default` of a Maven module)."""
    dependencies = "".join(
        f"<dependency org={quoteattr(artifact.organisation)} name={quoteattr(artifact.module)}"
        f' rev={quoteattr(artifact.version)} conf="default->default"/>'
        for artifact in artifacts
    )
    return (
        '<ivy-module version="2.0"><info organisation="local" module="jars"/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>\n"
    )


_FOUND = re.compile(r"^\tfound (\S+) in ")
_DOWNLOADED = re.compile(r"^\t\[SUCCESSFUL ] (\S+?)!(\S+)")
#: An unresolved module, a failed download, or an error of the HTTP client.
_PROBLEM = re.compile(r"^\t(?:\t:: (\S+#\S+: .+)|\[FAILED *] (.+)|HttpClientHandler: (.+?) url=.*)$")


@dataclass(slots=True)
class IvyLog:
    """Parses Ivy's output, line by line, into progress."""

    jar_set: str
    report: Report
    found: list[str] = field(default_factory=list)
    downloaded: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def read(self, line: str) -> None:
        """Parse one line of Ivy's output."""
        if match := _FOUND.match(line):
            self.found.append(match[1])
            self.report(FetchProgress(self.jar_set, len(self.found), None, match[1]))
        elif match := _DOWNLOADED.match(line):
            self.downloaded.append(match[2])
            self.report(FetchProgress(self.jar_set, len(self.downloaded), len(self.found), match[2]))
        elif match := _PROBLEM.match(line):
            problem = next(part for part in match.groups() if part is not None)
            if problem not in self.problems:
                self.problems.append(problem)
