"""Find a Java that can run Kafka and Spark, with a clear error if there is none."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from mirror_lib.errors import ConfigurationError

#: Spark 4 and Kafka 4 brokers are compiled for Java 17 (KIP-1013).
MINIMUM_JAVA = 17
_ACTION = "Install Java 17 or newer, on Debian with: apt-get install openjdk-17-jre-headless (or set JAVA_HOME)."
_VERSION = re.compile(r'version "(\d+)(?:\.(\d+))?')


def parse_java_version(text: str) -> int | None:
    """Return the feature release in the output of `java -version`: 17 for `17.0.15`, 8 for `1.8.0_392`, None if
    missing.
    """
    found = _VERSION.search(text)
    if found is None:
        return None
    first, second = int(found[1]), found[2]
    return int(second) if first == 1 and second is not None else first


def find_java() -> Path:
    """Return the `java` program of JAVA_HOME, else of the PATH.

    Raises:
        ConfigurationError: there is none, or it is older than Java 17.
    """
    return _check(os.environ.get("JAVA_HOME", ""), os.environ.get("PATH", ""))


@cache
def _check(java_home: str, path: str) -> Path:
    found = str(Path(java_home) / "bin" / "java") if java_home else shutil.which("java", path=path)
    if found is None:
        raise ConfigurationError("Java is not installed.", action=_ACTION)
    try:
        completed = subprocess.run([found, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigurationError(f"Java does not run ({found}: {error}).", action=_ACTION) from error
    release = parse_java_version(completed.stderr + completed.stdout)
    if release is None or release < MINIMUM_JAVA:
        shown = "of an unknown version" if release is None else f"Java {release}"
        raise ConfigurationError(f"{found} is {shown}, which is too old.", action=_ACTION)
    return Path(found)
