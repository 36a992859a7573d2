"""Files of the repository, and those that differ from a commit, as git reports them."""

from __future__ import annotations

import subprocess
from pathlib import Path

_MAIN_BRANCHES = ("main", "master", "origin/HEAD")


class GitError(Exception):
    """Git cannot tell the files; the message is one line for the terminal."""


def changed_files(root: Path, revision: str | None = None) -> tuple[str, tuple[str, ...]]:
    """Return the commit, and what differs from it: tracked files, and new ones that git does not ignore.

    A renamed file is there with its old and its new path. By default, the commit is the one where the branch left the
    main branch; on the main branch that is its last one.
    """
    commit = _git(root, "rev-parse", "--verify", "--end-of-options", f"{revision or _default(root)}^{{commit}}").strip()
    differing = _git(root, "diff", "--name-only", "--no-renames", "--relative", "-z", commit)
    new = _git(root, "ls-files", "--others", "--exclude-standard", "-z")
    return commit, tuple(sorted({*_paths(differing), *_paths(new)}))


def repository_files(root: Path) -> tuple[str, ...]:
    """Return all files that git tracks or would add, as far as they exist."""
    listed = _paths(_git(root, "ls-files", "--cached", "--others", "--exclude-standard", "-z"))
    return tuple(path for path in sorted({*listed}) if (root / path).is_file())


def _default(root: Path) -> str:
    for branch in _MAIN_BRANCHES:
        try:
            return _git(root, "merge-base", "HEAD", branch).strip()
        except GitError:
            continue
    return "HEAD"


def _paths(listed: str) -> list[str]:
    return [path for path in listed.split("\0") if path]


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=root, capture_output=True, check=False)
    if done.returncode != 0:
        raise GitError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode(errors="surrogateescape")
