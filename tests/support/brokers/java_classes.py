"""Java classes of tests inside brokers: compiled when the test runs, with the broker's own jars."""

from __future__ import annotations

import os
import subprocess
import zipfile
from pathlib import Path

from mirror_lib.spark.java import find_java


def jars_with(jars: Path, folder: Path, *sources: Path) -> Path:
    """Return a folder with links to a broker's jars, and with one more jar of these sources' classes."""
    classes, together = folder / "classes", folder / "jars"
    classes.mkdir(parents=True)
    together.mkdir()
    linked = sorted(jars.glob("*.jar"))
    # A JRE without a `javac` program has the compiler as a module; that one takes no wildcards.
    done = subprocess.run(
        [
            *(str(find_java()), "-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none"),
            *("-cp", os.pathsep.join(map(str, linked)), "-d", str(classes), *map(str, sources)),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    with zipfile.ZipFile(together / "of-tests.jar", "w") as jar:
        for path in sorted(classes.rglob("*.class")):
            jar.write(path, path.relative_to(classes))
    for path in linked:
        (together / path.name).symlink_to(path)
    return together
