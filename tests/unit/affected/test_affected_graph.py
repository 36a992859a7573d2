"""Chains from tests to changed files, on made-up repositories."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.affected.graph import Graph, tier_of
from tests.affected.references import read_source

TEST = "tests/unit/test_one.py"
OTHER = "tests/unit/test_other.py"


def graph(files: Mapping[str, str], programs: Mapping[str, str] | None = None) -> Graph:
    sources = {
        path: read_source(text.encode(), is_conftest=path.endswith("conftest.py"))
        for path, text in files.items()
        if path.endswith(".py")
    }
    return Graph(sources, [path for path in files if path not in sources], programs)


def selected(found: Graph, *changed: str) -> set[str]:
    return {path for path in found.chains(changed) if tier_of(path)}


@pytest.mark.parametrize(
    ("path", "tier"),
    [
        ("tests/unit/relay/planning/test_plan.py", "unit"),
        ("tests/integration/test_a.py", "integration"),
        ("tests/e2e/test_a.py", "e2e"),
        ("tests/e2e/conftest.py", None),
        ("tests/support/test_data.py", None),
        ("tests/unit/data/test_a.bin", None),
    ],
)
def test_the_folder_says_the_tier(path: str, tier: str | None) -> None:
    assert tier_of(path) == tier


def test_the_shortest_chain_of_imports_is_kept() -> None:
    found = graph({"p/a.py": "", "p/b.py": "import p.a", "p/c.py": "import p.b", TEST: "import p.c\nfrom p import b"})

    assert str(found.chains(["p/a.py"])[TEST]) == f"{TEST} <- p.b <- p.a (changed)"


def test_a_name_that_a_package_exports_leads_to_the_module_that_defines_it_and_to_no_other() -> None:
    face = 'lazy_loader.attach(__name__, submod_attrs={"a": ["One"], "b": ["Other"]})'
    found = graph({"p/__init__.py": face, "p/a.py": "", "p/b.py": "", TEST: "from p import One"})

    assert str(found.chains(["p/a.py"])[TEST]) == f"{TEST} <- p.a (changed)"
    assert TEST not in found.chains(["p/b.py"])


def test_an_import_executes_the_packages_above() -> None:
    found = graph({"p/__init__.py": "", "p/q/__init__.py": "", "p/q/a.py": "", TEST: "from p.q.a import x"})

    assert selected(found, "p/__init__.py") == selected(found, "p/q/__init__.py") == {TEST}


def test_relative_imports_start_at_the_package() -> None:
    found = graph({"p/a.py": "", "p/q/b.py": "from .. import a\nfrom . import c", "p/q/c.py": "", TEST: "import p.q.b"})

    assert selected(found, "p/a.py") == selected(found, "p/q/c.py") == {TEST}


def test_a_module_that_only_a_string_names_counts_with_what_it_imports() -> None:
    jobs = {"jobs/__init__.py": "", "jobs/copy.py": "import jobs.rows", "jobs/rows.py": ""}
    found = graph({**jobs, TEST: 'run([python, "-m", "jobs.copy"])', OTHER: ""})

    assert selected(found, "jobs/rows.py") == {TEST}


def test_a_package_in_a_string_stands_for_all_of_its_files() -> None:
    files = {"p/q/__init__.py": "", "p/q/late/a.py": "", "p/q/static/a.css": ""}
    found = graph({**files, TEST: 'files("p.q")', OTHER: ""})

    assert selected(found, "p/q/late/a.py") == selected(found, "p/q/static/a.css") == {TEST}


def test_a_package_started_by_name_stands_for_all_of_its_files() -> None:
    found = graph({"bench/__main__.py": "", "bench/a.py": "", TEST: '[python, "-m", "bench"]', OTHER: '"bench"'})

    assert selected(found, "bench/a.py") == {TEST}


def test_a_program_is_the_module_behind_it() -> None:
    program = 'Path(sys.executable).with_name("mirror")'
    found = graph({"p/main.py": "import p.a", "p/a.py": "", TEST: program, OTHER: '"mirror"'}, {"mirror": "p.main"})

    assert selected(found, "p/a.py") == {TEST}


@pytest.mark.parametrize(
    "text",
    ['ROOT / "docs"', 'ROOT / "docs" / "page.md"', 'Path("docs/page.md")', 'for f in ("docs", "deploy"): ROOT / f'],
)
def test_a_document_counts_for_tests_that_name_it_or_its_folder(text: str) -> None:
    found = graph({"docs/page.md": "", "deploy/a.yaml": "", TEST: text, OTHER: '{"docs": 1}'})

    assert selected(found, "docs/page.md") == {TEST}


def test_a_document_counts_for_tests_whose_pattern_matches_it() -> None:
    found = graph({"plugins/README.md": "", TEST: 'ROOT.rglob("*.md")', OTHER: 'folder.rglob("*")'})

    assert selected(found, "plugins/README.md") == {TEST}


def test_a_file_in_a_package_counts_for_the_modules_next_to_it() -> None:
    found = graph(
        {"p/page/app.py": "", "p/page/static/js/a.js": "", "p/b.py": "", TEST: "import p.page.app", OTHER: "import p.b"}
    )

    assert selected(found, "p/page/static/js/a.js") == {TEST}


def test_data_next_to_tests_counts_for_these_tests() -> None:
    found = graph({"tests/unit/a/test_one.py": "", "tests/unit/a/data/x.bin": "", "tests/unit/b/test_two.py": ""})

    assert selected(found, "tests/unit/a/data/x.bin") == {"tests/unit/a/test_one.py"}


def test_a_module_that_became_a_package_is_found_in_both_places() -> None:
    found = graph({"p/a.py": "", "p/a/__init__.py": "", TEST: "import p.a"})

    assert selected(found, "p/a.py") == selected(found, "p/a/__init__.py") == {TEST}


def test_end_to_end_tests_depend_on_all_that_processes_run() -> None:
    found = graph({"mirror_lib/a.py": "", "dags/b.py": "", "bench/c.py": "", "tests/e2e/test_all.py": "", TEST: ""})

    assert selected(found, "mirror_lib/a.py") == selected(found, "dags/b.py") == {"tests/e2e/test_all.py"}
    assert selected(found, "bench/c.py") == set()


def test_a_test_does_not_depend_on_other_tests_that_a_string_happens_to_name() -> None:
    found = graph({"tests/unit/airflow/test_a.py": "", TEST: 'home / "airflow"\nstate / "tests" / "unit"'})

    assert selected(found, "tests/unit/airflow/test_a.py") == {"tests/unit/airflow/test_a.py"}


BROKERS = """
import p.brokers
import p.names

@pytest.fixture
def broker():
    return p.brokers.Broker()

@pytest.fixture
def three(broker):
    pass

@pytest.fixture
def name():
    return unique()

from p.names import unique
"""


def brokers_repository(conftest: str = BROKERS) -> Graph:
    return graph(
        {
            "p/brokers.py": "",
            "p/names.py": "",
            "tests/conftest.py": conftest,
            "tests/unit/conftest.py": "@pytest.fixture\ndef clean(broker): ...",
            "tests/unit/test_argument.py": "def test_a(three): ...",
            "tests/unit/test_mark.py": '@pytest.mark.usefixtures("clean")\ndef test_a(): ...',
            "tests/unit/test_value.py": 'def test_a(request): request.getfixturevalue("broker")',
            "tests/unit/test_name.py": "def test_a(name): ...",
            "tests/unit/test_none.py": "def test_a(): ...",
            "tests/e2e/test_far.py": "def test_a(clean): ...",
        }
    )


def test_fixtures_count_for_the_tests_that_request_them() -> None:
    found = brokers_repository()

    requesting = {f"tests/unit/test_{name}.py" for name in ("argument", "mark", "value")}
    # `p` itself is a name that broker uses, and with it both modules that are imported by it.
    assert selected(found, "p/brokers.py") == requesting
    assert "tests/unit/test_name.py" in selected(found, "p/names.py")
    assert "tests/unit/test_none.py" not in selected(found, "p/names.py")


def test_the_chain_names_the_fixture() -> None:
    chain = brokers_repository().chains(["p/brokers.py"])["tests/unit/test_value.py"]

    assert str(chain) == "tests/unit/test_value.py <- tests/conftest.py::broker <- p.brokers (changed)"


def test_an_autouse_fixture_counts_for_all_tests_below() -> None:
    found = brokers_repository(
        BROKERS.replace("@pytest.fixture\ndef broker", "@pytest.fixture(autouse=True)\ndef broker")
    )

    assert "tests/unit/test_none.py" in selected(found, "p/brokers.py")


def test_a_conftest_counts_for_the_tests_below() -> None:
    found = brokers_repository()

    assert "tests/e2e/test_far.py" not in selected(found, "tests/unit/conftest.py")
    assert selected(found, "tests/unit/conftest.py") >= {"tests/unit/test_none.py", "tests/unit/test_name.py"}
