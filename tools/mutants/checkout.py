"""Checkouts of the project: the code of one commit, with the tests of the same or of another one."""

from __future__ import annotations

import subprocess
from pathlib import Path

#: Folders of the product: where faults are made.
PRODUCT = ("mirror_lib", "spark_jobs", "dags", "plugins")


class CheckoutError(Exception):
    """git could not make it; the message is one line for the terminal."""


def commit_of(root: Path, revision: str) -> str:
    """Return the full name of a commit.

    Raises:
        CheckoutError: there is no such commit.
    """
    return _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")


def product_differs(root: Path) -> bool:
    """Return True if the working tree holds product code that is not committed."""
    return bool(_git(root, "status", "--porcelain", "--", *PRODUCT))


def make_checkout(root: Path, folder: Path, product: str, tests: str) -> None:
    """Make a clone with the product code of one commit and everything else of another.

    Raises:
        CheckoutError: git fails.
    """
    if not (folder / ".git").is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        _git(root, "clone", "--quiet", "--shared", "--no-checkout", str(root), str(folder))
    _git(folder, "fetch", "--quiet", "origin")
    _git(folder, "checkout", "--quiet", "--force", "--detach", tests)
    _git(folder, "clean", "--quiet", "-fd")
    if product != tests:
        _git(folder, "rm", "--quiet", "-r", "--force", "--", *PRODUCT)
        _git(folder, "checkout", "--quiet", product, "--", *PRODUCT)


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(("git", *arguments), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CheckoutError(f"git {' '.join(arguments)} failed: {done.stderr.strip() or 'no such commit'}")
    return done.stdout.strip()
