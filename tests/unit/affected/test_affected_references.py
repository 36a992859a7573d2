"""Names in Python files that make them depend on other files."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.affected.references import References, changed_fixtures, read_source


def references(text: str) -> References:
    return read_source(dedent(text).encode()).references


def test_imports_count_wherever_they_are_unless_they_are_for_type_checkers_alone() -> None:
    found = references("""
        import a.b as c
        from d import e, f
        from g import *
        from . import k
        from ..l import m

        def late():
            from h.i import j

        if TYPE_CHECKING:
            import no
        else:
            import yes

        if typing.TYPE_CHECKING:
            import neither
    """)

    assert found.imported == {"a.b", "d.e", "d.f", "g", ".k", "..l.m", "h.i.j", "yes"}


def test_dotted_names_count_anywhere_in_a_string_unless_they_name_loggers_or_are_documentation() -> None:
    found = references('''
        """See docs/page.md and jobs.copy."""

        PROGRAM = ["python", "-m", "jobs.copy"]
        BUILDER = "jobs.build:make"
        CODE = "import sys; from jobs import held, kept; import jobs.late"
        logging.getLogger("a.b")

        def run():
            """As jobs.documented."""
    ''')

    assert found.named == {"jobs.copy", "jobs.build", "jobs.held", "jobs.kept", "jobs.late"}


def test_a_word_is_part_of_a_path_only_where_paths_are_made() -> None:
    found = references("""
        ROOT / "pages"
        ROOT / "docs" / "a" / name / "b"
        Path(__file__).with_name("child.py")
        command = [python, "-m", "tool", "--quick"]
        names = {"examples": 1}
        tmp_path / "dags"
        print("deploy")
        x = f"{ROOT}/docs/page.md"
    """)

    assert found.parts == {"pages", "docs/a", "b", "child.py", "tool"}
    assert "docs/page.md" in found.paths


def test_parameters_and_words_may_be_fixtures() -> None:
    found = references("""
        @pytest.mark.usefixtures("clean")
        def test_it(self, ledger, *, request):
            request.getfixturevalue("brokers")
    """)

    assert found.requested >= {"clean", "ledger", "brokers"}


def test_a_syntax_error_is_reported_with_its_line() -> None:
    assert (read_source(b"import a\ndef f(:\n").error or "").startswith("line 2: ")
    assert read_source(b"a = '\0'").error is not None


CONFTEST = """
import a
from b import c, d as e

def helper():
    return e

@pytest.fixture
def plain():
    return a.x

@pytest.fixture(scope="session", name="renamed")
def _inner(plain):
    from late import f
    return helper()

@pytest.fixture(autouse=True)
def always():
    pass

def pytest_configure():
    c()
"""


def test_a_fixture_has_the_imports_that_it_uses_itself_or_through_functions() -> None:
    source = read_source(CONFTEST.encode(), is_conftest=True)

    assert source.fixtures.keys() == {"plain", "renamed", "always"}
    assert source.fixtures["plain"].imported == {"a"}
    assert source.fixtures["renamed"].imported >= {"b.d", "late.f"}
    assert "a" not in source.fixtures["renamed"].imported
    assert "plain" in source.fixtures["renamed"].requested
    assert source.autouse == {"always"}


def test_versions_of_a_conftest_differ_in_fixtures_or_as_a_whole(subtests: pytest.Subtests) -> None:
    for old, new, changed in (
        ("return a.x", "return a.y", {"plain"}),
        ("return a.x", "# why\n    return a.x", set()),
        ("from late import f", "from later import f", {"renamed"}),
        ("return e", "return None", None),
        ("    c()", "    pass", None),
        ("    pass\n\ndef pytest", "    return 1\n\ndef pytest", None),
        ("def plain", "def other", None),
        ("def plain", "def plain(:", None),
    ):
        with subtests.test(old=old, new=new):
            assert old in CONFTEST
            assert changed_fixtures(CONFTEST.encode(), CONFTEST.replace(old, new).encode()) == changed
