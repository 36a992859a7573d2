"""Container images by digest: `docker-compose.yaml` and `deploy/Dockerfile` name them by tags, which may move.

A digest comes from the registry that the operator trusts, so none is stored here: `./run pin` requests them and writes
them after the tags.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
FILES = (PROJECT / "docker-compose.yaml", PROJECT / "deploy" / "Dockerfile")
#: Built here; in no registry.
OWN = "batch-mirror"
_LINE = re.compile(
    r"^(?P<before>[ \t]*image:[ \t]*|FROM[ \t]+)(?P<name>[\w.\-/:]+?)(?P<tag>:[\w.\-]+)?"
    r"(?P<digest>@sha256:[0-9a-f]{64})?(?P<behind>[ \t].*)?$",
    re.MULTILINE,
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_ASK_SECONDS = 120.0

#: Name with tag -> digest.
Ask = Callable[[str], str]


class NoDigestError(Exception):
    """The registry returned no digest of an image."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image as a file names it."""

    #: With its tag.
    reference: str
    digest: str | None


def images(text: str) -> tuple[Image, ...]:
    """Return the external images that a compose file or a Dockerfile names, each once, in order."""
    found = [Image(_reference(match), (match["digest"] or "@")[1:] or None) for match in _LINE.finditer(text)]
    return tuple(dict.fromkeys(each for each in found if each.reference.partition(":")[0] != OWN))


def pinned(text: str, digests: Mapping[str, str]) -> str:
    """Return the text with a digest after each image that has one; nothing else changes.

    Args:
        digests: `sha256:...` by name with tag.

    Raises:
        ValueError: a digest is invalid.
    """
    for digest in digests.values():
        if _DIGEST.fullmatch(digest) is None:
            raise ValueError(f"{digest!r} is no digest")

    def with_digest(match: re.Match[str]) -> str:
        reference = _reference(match)
        if reference not in digests:
            return match[0]
        return f"{match['before']}{reference}@{digests[reference]}{match['behind'] or ''}"

    return _LINE.sub(with_digest, text)


def ask_docker(reference: str) -> str:
    """Request the digest by `docker buildx imagetools`, which pulls nothing.

    Raises:
        NoDigestError: there is no Docker, or no such image.
    """
    command = ["docker", "buildx", "imagetools", "inspect", "--format", "{{.Manifest.Digest}}", reference]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_ASK_SECONDS, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoDigestError(f"docker cannot be asked about {reference}: {type(error).__name__}") from error
    digest = done.stdout.strip()
    if done.returncode != 0 or _DIGEST.fullmatch(digest) is None:
        raise NoDigestError(f"docker gives no digest of {reference}: {done.stderr.strip()[:200]}")
    return digest


def pin(files: Mapping[Path, str], ask: Ask) -> dict[Path, str]:
    """Return the texts of files with all images pinned, with one request for each image.

    Raises:
        NoDigestError: for any image; then nothing is to be written.
    """
    digests = {each.reference: "" for text in files.values() for each in images(text)}
    for reference in digests:
        digests[reference] = ask(reference)
    return {path: pinned(text, digests) for path, text in files.items()}


def _reference(match: re.Match[str]) -> str:
    return match["name"] + (match["tag"] or "")
