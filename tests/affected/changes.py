"""Files that differ between the working tree and a commit, as git reports them."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

_MAIN_BRANCHES = ("main", "master", "origin/HEAD")


class GitError(Exception):
    """The changes cannot be determined; the message is one line for the terminal."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What differs from a commit: tracked files, and new ones that git does not ignore.

    A renamed file is there with its old and its new path. Paths are relative to the root of the repository.
    """

    root: Path
    #: The commit, and how it was named.
    commit: str
    revision: str
    files: tuple[str, ...]

    def old_content(self, path: str) -> bytes | None:
        """Return the file as it is in the commit, None if it does not exist there."""
        shown = _git(self.root, "show", f"{self.commit}:./{path}")
        return shown.stdout if shown.returncode == 0 else None


def changes_since(root: Path, revision: str | None = None) -> Changes:
    """Return what differs from a revision; by default, from the commit where the branch left the main branch.

    Raises:
        GitError: The folder is no git checkout, or has no such revision.
    """
    if _git(root, "rev-parse", "--is-inside-work-tree").returncode != 0:
        raise GitError(f"{root} is not a git checkout, so there is nothing to compare with; ./run test runs all tests")
    named = revision or _default_revision(root)
    found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{named}^{{commit}}")
    if found.returncode != 0:
        raise GitError(f"git knows no revision {named!r}; name a commit, a branch or a tag")
    commit = found.stdout.decode().strip()
    differing = _paths(root, "diff", "--name-only", "--no-renames", "--relative", "-z", commit)
    new = _paths(root, "ls-files", "--others", "--exclude-standard", "-z")
    return Changes(root, commit, named, tuple(sorted({*differing, *new})))


def repository_files(root: Path) -> tuple[str, ...]:
    """Return all files that git tracks or would add, as far as they exist."""
    listed = _paths(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    return tuple(path for path in sorted(set(listed)) if (root / path).is_file())


def _default_revision(root: Path) -> str:
    """The merge base with the main branch if there are commits after it, otherwise HEAD."""
    head = _git(root, "rev-parse", "HEAD").stdout
    for branch in _MAIN_BRANCHES:
        base = _git(root, "merge-base", "HEAD", branch)
        if base.returncode == 0:
            return "HEAD" if base.stdout == head else base.stdout.decode().strip()
    return "HEAD"


def _paths(root: Path, *arguments: str) -> list[str]:
    listed = _git(root, *arguments)
    if listed.returncode != 0:
        raise GitError(f"git {arguments[0]} failed: {listed.stderr.decode(errors='replace').strip()}")
    return [path.decode(errors="surrogateescape") for path in listed.stdout.split(b"\0") if path]


def _git(root: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(("git", *arguments), cwd=root, capture_output=True, check=False)
    except FileNotFoundError:
        raise GitError("git is not installed, so there is nothing to compare with; ./run test runs all tests") from None
