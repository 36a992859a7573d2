"""Selections in small git repositories, and the command that runs them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.affected.__main__ import Selection, select
from tests.affected.changes import changed_files


class Repository:
    """A git repository with two modules and their tests."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "--quiet", "--initial-branch=main")
        self.write("mirror_lib/a.py", "")
        self.write("mirror_lib/b.py", "import mirror_lib.a")
        self.write("tests/unit/test_a.py", "import mirror_lib.a")
        self.write("tests/unit/test_b.py", "import mirror_lib.b")
        self.write("tests/unit/test_docs.py", 'ROOT / "docs"')
        self.write("docs/page.md", "")
        self.write(".gitignore", "ignored/\n")
        self.commit()

    def git(self, *arguments: str) -> str:
        who = ("-c", "user.name=me", "-c", "user.email=me@example.org", "-c", "commit.gpgsign=false")
        done = subprocess.run(("git", *who, *arguments), cwd=self.root, capture_output=True, check=True, text=True)
        return done.stdout.strip()

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=change")
        return self.git("rev-parse", "HEAD")

    def select(self, revision: str | None = None) -> Selection:
        return select(self.root, changed_files(self.root, revision)[1])

    def selected(self, revision: str | None = None) -> set[str]:
        return {path.removeprefix("tests/unit/") for path in self.select(revision).chains}


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    return Repository(tmp_path)


def test_changed_new_and_deleted_files_count_committed_or_not(repository: Repository) -> None:
    assert repository.selected() == set()

    repository.write("mirror_lib/b.py", "# changed")
    repository.write("tests/unit/test_new.py", "")
    repository.write("tests/unit/ignored/test_ignored.py", "")
    assert repository.selected() == {"test_b.py", "test_new.py"}
    repository.commit()
    assert repository.selected() == set()
    assert repository.selected("HEAD~1") == {"test_b.py", "test_new.py"}

    (repository.root / "tests/unit/test_b.py").unlink()
    assert repository.selected() == set()
    # Who imported a renamed module by its old name is selected, too.
    repository.git("mv", "mirror_lib/a.py", "mirror_lib/c.py")
    assert repository.selected() == {"test_a.py"}


def test_a_syntax_error_selects_and_is_reported_whether_it_is_committed_or_not(repository: Repository) -> None:
    repository.write("mirror_lib/b.py", "def f(:")
    repository.commit()

    assert repository.selected() == {"test_b.py"}
    assert "mirror_lib/b.py has a syntax error" in next(repository.select().summary())


def test_the_configuration_of_pytest_selects_everything(repository: Repository) -> None:
    repository.write("pyproject.toml", "")

    assert [*repository.select().summary()] == [
        "3 of 3 test files (unit 3, integration 0, e2e 0); ./run test runs them all"
    ]


def test_a_branch_is_compared_with_the_commit_where_it_left_the_main_branch(repository: Repository) -> None:
    left = repository.git("rev-parse", "HEAD")
    repository.git("switch", "--quiet", "--create", "other")
    repository.write("docs/page.md", "new")
    repository.commit()
    repository.git("switch", "--quiet", "main")
    repository.write("mirror_lib/a.py", "# changed")
    repository.commit()
    repository.git("switch", "--quiet", "other")

    assert changed_files(repository.root) == (left, ("docs/page.md",))
