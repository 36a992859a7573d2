"""What the operator lets a configuration file name, from the environment or Airflow's configuration, never the file.

Without these limits the author of a file reads, through this program, what the user of its processes may read. One of
them is set without the operator: tokens of the machine's identity are sent to the cloud's own hosts only.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable
from pathlib import Path

from mirror_lib.limited_files import read_limited

#: Folders and files, separated by colons, with all files that a configuration file may name.
PATHS_VARIABLE = "MIRROR_ALLOWED_PATHS"
#: Names of config providers, separated by commas: `env`, `file`, `directory`, `airflow`, or `none`.
PROVIDERS_VARIABLE = "MIRROR_ALLOWED_PROVIDERS"
#: Regular expression of the names of variables that the provider `env` may read.
NAMES_VARIABLE = "MIRROR_ALLOWED_VARIABLES"
#: Hosts, separated by commas, that get tokens of the machine's identity in a cloud in addition to the service's own:
#: names, `*.SUFFIX`, or `*` for all.
CLOUD_HOSTS_VARIABLE = "MIRROR_CLOUD_TOKEN_HOSTS"
#: Section of Airflow's configuration; its options are the names of the variables, as in `allowed_paths`.
AIRFLOW_SECTION = "mirror"
#: Parameters of PostgreSQL's URLs that name files.
URL_FILES = frozenset(
    ("passfile", "servicefile", "sslcert", "sslcrl", "sslcrldir", "sslkey", "sslkeylogfile", "sslrootcert")
)


def take_limits(option: Callable[[str, str], str | None]) -> None:
    """Take limits from Airflow's configuration that the environment does not set; processes started here inherit them.

    Args:
        option: returns an option of a section, None if it is not set.
    """
    for variable in (PATHS_VARIABLE, PROVIDERS_VARIABLE, NAMES_VARIABLE, CLOUD_HOSTS_VARIABLE):
        text = option(AIRFLOW_SECTION, variable.removeprefix("MIRROR_").lower())
        if text and not os.environ.get(variable):
            os.environ[variable] = text


def allowed_path(path: Path) -> Path:
    """Return the path of a file that a configuration file names, with its links followed.

    Raises:
        PermissionError: the operator does not allow it.
    """
    folders = os.environ.get(PATHS_VARIABLE, "").strip()
    if not folders:
        return path
    real = Path(os.path.realpath(path))
    if not any(real.is_relative_to(os.path.realpath(each)) for each in folders.split(os.pathsep) if each):
        raise PermissionError(errno.EACCES, f"it is outside of the folders that {PATHS_VARIABLE} allows", str(path))
    return real


def read_named(path: Path, *largest: int) -> bytes:
    """Return the content of a file that a configuration file names.

    Args:
        largest: bytes, unless the usual number.

    Raises:
        OSError: it cannot be read, is too large, or the operator does not allow it.
    """
    return read_limited(allowed_path(path), *largest)


def is_provider_allowed(name: str) -> bool:
    """Return True if the operator allows a config provider."""
    allowed = os.environ.get(PROVIDERS_VARIABLE, "").strip()
    return not allowed or name in {each.strip() for each in allowed.split(",")}


def is_variable_allowed(name: str) -> bool:
    """Return True if the operator allows a file to read an environment variable.

    Raises:
        re.error: the operator's expression is none.
    """
    allowed = os.environ.get(NAMES_VARIABLE, "").strip()
    return not allowed or re.fullmatch(allowed, name) is not None


def cloud_token_hosts() -> tuple[str, ...]:
    """Return the further hosts that get tokens of the machine's identity in a cloud."""
    named = os.environ.get(CLOUD_HOSTS_VARIABLE, "").split(",")
    return tuple(each.strip() for each in named if each.strip())
