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


def test_the_folder_says_the_tier() -> None:
    for path, tier in (
        ("tests/unit/relay/planning/test_plan.py", "unit"),
        ("tests/integration/test_a.py", "integration"),
        ("tests/e2e/test_a.py", "e2e"),
        ("tests/e2e/conftest.py", None),
        ("tests/support/test_data.py", None),
        ("tests/unit/data/test_a.bin", None),
    ):
        assert tier_of(path) == tier, path


def test_the_shortest_chain_of_imports_is_kept() -> None:
    found = graph({"p/a.py": "", "p/b.py": "import p.a", "p/c.py": "import p.b", TEST: "import p.c\nfrom p import b"})

    assert str(found.chains(["p/a.py"])[TEST]) == f"{TEST} <- p.b <- p.a (changed)"


def test_a_name_that_a_package_exports_leads_to_the_module_that_defines_it_and_to_no_other() -> None:
    face = 'lazy_loader.attach(__name__, submod_attrs={"a": ["One"], "b": ["Other"]})'
    found = graph({"p/__init__.py": face, "p/a.py": "", "p/b.py": "", TEST: "from p import One"})

    assert str(found.chains(["p/a.py"])[TEST]) == f"{TEST} <- p.a (changed)"
    assert TEST not in found.chains(["p/b.py"])


_PACKAGES = {"p/__init__.py": "", "p/q/__init__.py": "", "p/q/a.py": "", "p/b.py": "", "p/q/static/js/a.js": ""}
_JOBS = {"jobs/__init__.py": "", "jobs/copy.py": "import jobs.rows", "jobs/rows.py": ""}
_DOCUMENTS = {"docs/page.md": "", "deploy/a.yaml": "", "plugins/README.md": ""}


@pytest.mark.parametrize(
    ("files", "test", "other", "changed"),
    [
        pytest.param(_PACKAGES, "from p.q.a import x", "import r", "p/__init__.py", id="package above"),
        pytest.param(_PACKAGES, "from p.q.a import x", "import p.b", "p/q/__init__.py", id="package"),
        pytest.param(
            {**_PACKAGES, "p/q/c.py": "from .. import b"}, "import p.q.c", "import p.q.a", "p/b.py", id="relative"
        ),
        pytest.param(_JOBS, 'run([python, "-m", "jobs.copy"])', "", "jobs/rows.py", id="module in a string"),
        pytest.param(_PACKAGES, 'files("p.q")', "import p.b", "p/q/a.py", id="package in a string"),
        pytest.param(_PACKAGES, 'files("p.q")', "import p.b", "p/q/static/js/a.js", id="resource of that package"),
        pytest.param(_PACKAGES, "import p.q.a", "import p.b", "p/q/static/js/a.js", id="file next to a module"),
        pytest.param(
            {"bench/__main__.py": "", "bench/a.py": ""}, '[python, "-m", "bench"]', '"bench"', "bench/a.py", id="-m"
        ),
        pytest.param(
            {"p/main.py": "import p.a", "p/a.py": ""}, 'x.with_name("mirror")', '"mirror"', "p/a.py", id="program"
        ),
        pytest.param(_DOCUMENTS, 'ROOT / "docs"', '{"docs": 1}', "docs/page.md", id="folder"),
        pytest.param(_DOCUMENTS, 'ROOT / "docs" / "page.md"', "", "docs/page.md", id="parts of a path"),
        pytest.param(_DOCUMENTS, 'Path("docs/page.md")', "", "docs/page.md", id="path"),
        pytest.param(_DOCUMENTS, 'for f in ("docs", "deploy"): ROOT / f', "", "docs/page.md", id="list of folders"),
        pytest.param(_DOCUMENTS, 'ROOT.rglob("*.md")', 'a.rglob("*")', "plugins/README.md", id="pattern"),
        pytest.param({"p/a.py": "", "p/a/__init__.py": ""}, "import p.a", "", "p/a.py", id="module before a package"),
        pytest.param({"p/a.py": "", "p/a/__init__.py": ""}, "import p.a", "", "p/a/__init__.py", id="package after"),
    ],
)
def test_a_change_selects_the_test_that_depends_on_it_and_no_other(
    files: Mapping[str, str], test: str, other: str, changed: str
) -> None:
    found = graph({**files, TEST: test, OTHER: other}, {"mirror": "p.main"})

    assert selected(found, changed) == {TEST}


def test_data_next_to_tests_counts_for_these_tests() -> None:
    found = graph({"tests/unit/a/test_one.py": "", "tests/unit/a/data/x.bin": "", "tests/unit/b/test_two.py": ""})

    assert selected(found, "tests/unit/a/data/x.bin") == {"tests/unit/a/test_one.py"}


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
    chain = found.chains(["p/brokers.py"])["tests/unit/test_value.py"]
    assert str(chain) == "tests/unit/test_value.py <- tests/conftest.py::broker <- p.brokers (changed)"


def test_an_autouse_fixture_counts_for_all_tests_below_and_so_does_a_conftest() -> None:
    found = brokers_repository(
        BROKERS.replace("@pytest.fixture\ndef broker", "@pytest.fixture(autouse=True)\ndef broker")
    )

    assert "tests/unit/test_none.py" in selected(found, "p/brokers.py")
    below = selected(brokers_repository(), "tests/unit/conftest.py")
    assert below >= {"tests/unit/test_none.py", "tests/unit/test_name.py"}
    assert "tests/e2e/test_far.py" not in below
