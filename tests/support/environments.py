"""Python environments that hold the built wheel, for tests of installations."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

_PROJECT = Path(__file__).resolve().parents[2]
_BUILD_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Environment:
    """A virtual environment with the wheel; everything else comes from the one that runs the tests."""

    folder: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Where the wheel is installed."""
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.folder), "platbase": str(self.folder)}))

    @property
    def _starts(self) -> Path:
        return self.folder / "starts"

    def started(self) -> list[str]:
        """The command lines of all processes that used this interpreter, but for those it forked."""
        return self._starts.read_text().splitlines() if self._starts.exists() else []


def build_wheel(folder: Path) -> Path:
    """Build the project's wheel as `pip wheel` would, with the build tool of this environment."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=_PROJECT,
        check=True,
        capture_output=True,
        timeout=_BUILD_SECONDS,
    )
    (wheel,) = folder.glob("*.whl")
    return wheel


def make_environment(folder: Path, wheel: Path) -> Environment:
    """A new environment in which the wheel is installed and the project's own folder is not on the path."""
    venv.create(folder, symlinks=True, with_pip=False)
    made = Environment(folder)
    subprocess.run(
        [
            str(Path(sys.executable).with_name("uv")),
            *("pip", "install", "--quiet", "--offline", "--no-deps", "--no-config"),
            *("--python", str(made.python), str(wheel)),
        ],
        check=True,
        timeout=_BUILD_SECONDS,
        env={**os.environ, "UV_CACHE_DIR": str(folder / "cache")},
    )
    # Folders that a .pth file names are searched, but .pth files in them are not read: no editable installation there.
    (made.packages / "shared.pth").write_text(sysconfig.get_path("purelib") + "\n")
    (made.packages / "starts.pth").write_text(
        f"import sys; open({str(made._starts)!r}, 'a').write(' '.join(sys.orig_argv) + chr(10))\n"
    )
    return made
