"""Selections in small git repositories, and the command that runs them."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.affected import __main__ as command
from tests.affected.changes import GitError, changes_since
from tests.affected.graph import TIERS, Chain
from tests.affected.selection import Selection, Tier, select


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
        self.write("tests/e2e/test_all.py", "")
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
        return select(changes_since(self.root, revision))

    def selected(self, revision: str | None = None) -> list[str]:
        return [path for tier in self.select(revision).tiers for path in tier.files]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    return Repository(tmp_path)


def test_without_changes_nothing_is_selected(repository: Repository) -> None:
    selection = repository.select()

    assert selection.is_empty
    first, *_, last = selection.summary()
    assert first.startswith("no file differs from HEAD (")
    assert last.startswith("skipped: 4 of 4 test files (unit 3, integration 0, e2e 1)")


def test_uncommitted_changes_select_the_tests_that_import_them(repository: Repository) -> None:
    repository.write("mirror_lib/b.py", "# changed")
    assert repository.selected() == ["tests/unit/test_b.py", "tests/e2e/test_all.py"]

    repository.git("add", "--all")
    assert repository.selected() == ["tests/unit/test_b.py", "tests/e2e/test_all.py"]


def test_new_files_count_unless_git_ignores_them(repository: Repository) -> None:
    repository.write("tests/unit/test_new.py", "")
    repository.write("tests/unit/ignored/test_ignored.py", "")

    assert repository.selected() == ["tests/unit/test_new.py"]


def test_a_deleted_module_selects_the_tests_that_still_import_it_and_a_deleted_test_is_not_run(
    repository: Repository,
) -> None:
    (repository.root / "tests/unit/test_a.py").unlink()
    assert repository.selected() == []

    (repository.root / "mirror_lib/a.py").unlink()
    assert repository.selected() == ["tests/unit/test_b.py", "tests/e2e/test_all.py"]


def test_a_renamed_module_counts_by_both_names(repository: Repository) -> None:
    repository.git("mv", "mirror_lib/a.py", "mirror_lib/c.py")
    repository.write("tests/unit/test_a.py", "import mirror_lib.c")
    repository.commit()

    selection = repository.select("HEAD~1")

    assert selection.changes.files == ("mirror_lib/a.py", "mirror_lib/c.py", "tests/unit/test_a.py")
    assert {"tests/unit/test_a.py", "tests/unit/test_b.py"} <= set(repository.selected("HEAD~1"))


def test_a_syntax_error_selects_and_is_reported_whether_it_is_committed_or_not(repository: Repository) -> None:
    repository.write("mirror_lib/b.py", "def f(:")

    assert "tests/unit/test_b.py" in repository.selected()
    assert any("mirror_lib/b.py has a syntax error (line 1: " in line for line in repository.select().summary())
    repository.commit()
    assert "tests/unit/test_b.py" in repository.selected("HEAD")


def test_the_configuration_of_pytest_selects_everything_and_says_so(repository: Repository) -> None:
    repository.write("pyproject.toml", "")
    selection = repository.select()

    assert sum(len(tier.files) for tier in selection.tiers) == 4
    assert "every test depends on pyproject.toml: all tests are selected" in selection.summary()
    assert list(selection.summary())[-1] == "skipped: none of 4 test files"


def test_a_changed_fixture_selects_the_tests_that_request_it(repository: Repository) -> None:
    fixtures = "@pytest.fixture\ndef one(): return 1\n@pytest.fixture\ndef two(): return 2\n"
    repository.write("tests/unit/conftest.py", fixtures)
    repository.write("tests/unit/test_a.py", "def test_a(one): ...")
    repository.write("tests/unit/test_b.py", "def test_b(two): ...")
    repository.commit()
    repository.write("tests/unit/conftest.py", fixtures.replace("return 2", "return 3"))

    assert repository.selected("HEAD") == ["tests/unit/test_b.py"]

    repository.write("tests/unit/conftest.py", fixtures + "import os")

    assert repository.selected("HEAD") == [f"tests/unit/test_{name}.py" for name in ("a", "b", "docs")]


def test_a_branch_is_compared_with_the_commit_where_it_left_the_main_branch(repository: Repository) -> None:
    left = repository.git("rev-parse", "HEAD")
    repository.git("switch", "--quiet", "--create", "other")
    repository.write("docs/page.md", "new")
    repository.commit()
    repository.git("switch", "--quiet", "main")
    repository.write("mirror_lib/a.py", "# changed")
    repository.commit()
    repository.git("switch", "--quiet", "other")

    assert changes_since(repository.root).commit == left
    assert repository.selected() == ["tests/unit/test_docs.py"]


def test_the_main_branch_is_compared_with_its_last_commit(repository: Repository) -> None:
    repository.write("mirror_lib/a.py", "# changed")
    commit = repository.commit()

    assert changes_since(repository.root).commit == commit


def test_a_project_inside_a_larger_repository_sees_its_own_files(repository: Repository) -> None:
    repository.write("part/docs/page.md", "")
    repository.write("README.md", "")

    assert changes_since(repository.root / "part").files == ("docs/page.md",)


def test_an_unknown_revision_and_a_folder_without_git_are_errors(
    repository: Repository, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for revision in ("nowhere", "--help", "HEAD~99"):
        with pytest.raises(GitError, match="git knows no revision"):
            changes_since(repository.root, revision)

    bare = tmp_path_factory.mktemp("bare")
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(bare.parent))
    with pytest.raises(GitError, match="is not a git checkout"):
        changes_since(bare)


def tiers(unit: int = 0, integration: int = 0, e2e: int = 0) -> tuple[Tier, ...]:
    return tuple(
        Tier(name, tuple(Chain((f"tests/{name}/test_{i}.py",)) for i in range(number)), number)
        for name, number in zip(TIERS, (unit, integration, e2e), strict=True)
    )


class Runs:
    """Commands that `./run affected` starts, and the exit codes of the tiers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, repository: Repository, **numbers: int) -> None:
        self.commands: list[Sequence[str]] = []
        self.codes: dict[str, int] = {}
        selection = replace(repository.select(), tiers=tiers(**numbers))
        monkeypatch.setattr(command, "changes_since", lambda root, revision: self._asked(repository, revision))
        monkeypatch.setattr(command, "select", lambda changes: selection)
        monkeypatch.setattr(subprocess, "Popen", self._start)
        self.revision: str | None = None

    def names(self) -> list[str]:
        return [each[2] for each in self.commands]

    def _asked(self, repository: Repository, revision: str | None) -> object:
        self.revision = revision
        return None

    def _start(self, started: Sequence[str], cwd: Path) -> Runs:
        self.commands.append(started)
        return self

    def wait(self) -> int:
        return self.codes.get(self.names()[-1], 0)


def test_unit_tests_run_first_and_the_others_in_one_pass(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(monkeypatch, repository, unit=9, integration=9, e2e=1)

    assert command.main(["HEAD~2", "-k", "plan"]) == 0
    assert runs.revision == "HEAD~2"
    assert runs.names() == ["unit", "integration"]
    unit, others = ([*each[3:]] for each in runs.commands)
    assert unit[:6] == ["-m", "", "-n", "auto", "-k", "plan"]
    assert unit[6:] == [f"tests/unit/test_{i}.py" for i in range(9)]
    assert "loadfile" in others
    assert others[-2:] == ["tests/integration/test_8.py", "tests/e2e/test_0.py"]


def test_a_single_file_needs_no_workers_and_options_go_to_pytest(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = Runs(monkeypatch, repository, unit=1, e2e=1)

    assert command.main(["-x"]) == 0
    assert runs.revision is None
    assert [*runs.commands[0][2:]] == ["unit", "-m", "", "-n", "0", "-x", "tests/unit/test_0.py"]
    assert [*runs.commands[1][2:]] == ["integration", "-n", "0", "-x", "tests/e2e/test_0.py"]


@pytest.mark.parametrize(
    ("code", "names"), [(1, ["unit"]), (5, ["unit", "integration"])], ids=["failed", "none chosen"]
)
def test_only_failed_unit_tests_keep_the_others_from_running(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, code: int, names: list[str]
) -> None:
    runs = Runs(monkeypatch, repository, unit=1, integration=1, e2e=1)
    runs.codes = {"unit": code, "integration": 1}

    assert command.main([]) == 1
    assert runs.names() == names


def test_a_list_runs_nothing(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(monkeypatch, repository, unit=2)

    assert command.main(["--list", "HEAD"]) == 0
    assert runs.commands == []
    assert capsys.readouterr().out.startswith("tests/unit/test_0.py (changed)\ntests/unit/test_1.py (changed)\n")


def test_an_unknown_revision_is_one_line_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["no-such-revision"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
