"""`FilterAndMask.java`, compiled and added to MirrorMaker's jars: Connect has no transform that parses bytes."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

from mirror_lib.features.demo.jars import fetch, mirror_maker
from mirror_lib.spark.java import find_java
from tools.bench.errors import BenchError

#: Class name in MirrorMaker's settings.
CLASS = "FilterAndMask"
_SOURCE = Path(__file__).with_name(f"{CLASS}.java")
_JAR = "bench-filter-and-mask.jar"
#: How Connect finds its plugins (`java.util.ServiceLoader`; KIP-898).
_SERVICE = "META-INF/services/org.apache.kafka.connect.transforms.Transformation"
#: The compiler as a module of the JVM that runs it: only a JDK has it.
_COMPILER = "jdk.compiler"
_SECONDS = 120.0
#: Maximum number of lines of the compiler's output.
_LINES = 5


def has_compiler() -> bool:
    """Return True if the Java of this machine is a JDK.

    Raises:
        ConfigurationError: there is no Java.
    """
    listed = subprocess.run([find_java(), "--list-modules"], capture_output=True, text=True, timeout=_SECONDS)
    return any(line.partition("@")[0] == _COMPILER for line in listed.stdout.splitlines())


def jars_with_transform(folder: Path) -> Path:
    """Make a folder with links to MirrorMaker's jars, and the compiled transform.

    Raises:
        BenchError: the transform cannot be compiled.
        JarsUnavailableError: MirrorMaker could not be fetched.
    """
    jars, classes = fetch(mirror_maker()), folder / "classes"
    made = folder / "jars"
    for each in (classes, made):
        each.mkdir(parents=True)
    found = sorted(jars.glob("*.jar"))
    # Started like this, the compiler does not expand `*` for all jars of a folder.
    options = ("-cp", os.pathsep.join(map(str, found)), "-d", str(classes), str(_SOURCE))
    command = (str(find_java()), "-m", f"{_COMPILER}/com.sun.tools.javac.Main", *options)
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()[:_LINES]
        raise BenchError(f"{_SOURCE.name} cannot be compiled: {' '.join(said)}")
    for jar in found:
        (made / jar.name).symlink_to(jar.resolve())
    with zipfile.ZipFile(made / _JAR, "w") as archive:
        archive.writestr(_SERVICE, f"{CLASS}\n")
        for compiled in classes.glob("*.class"):
            archive.write(compiled, compiled.name)
    return made
