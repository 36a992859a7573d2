"""Chains from tests to changed files, on made-up repositories and in this one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.affected.changes import repository_files
from tests.affected.graph import Graph, repository_graph, tier_of
from tests.affected.references import read_source

ROOT = Path(__file__).resolve().parents[3]
TEST = "tests/unit/test_one.py"
OTHER = "tests/unit/test_other.py"


def graph(files: Mapping[str, str]) -> Graph:
    sources = {path: read_source(text.encode()) for path, text in files.items() if path.endswith(".py")}
    return Graph(sources, [path for path in files if path not in sources])


def selected(found: Graph, *changed: str) -> set[str]:
    return {path for path in found.chains(changed) if tier_of(path)}


def test_the_shortest_chain_of_imports_is_kept() -> None:
    found = graph({"p/a.py": "", "p/b.py": "import p.a", "p/c.py": "import p.b", TEST: "import p.c\nfrom p import b"})

    assert str(found.chains(["p/a.py"])[TEST]) == f"{TEST} <- p/b.py <- p/a.py (changed)"


def test_a_name_that_a_package_exports_leads_to_the_module_that_defines_it_and_to_no_other() -> None:
    api = 'lazy_loader.attach(__name__, submod_attrs={"a": ["One"], "b": ["Other"]})'
    found = graph({"p/__init__.py": api, "p/a.py": "", "p/b.py": "", TEST: "from p import One"})

    assert selected(found, "p/a.py") == {TEST}
    assert selected(found, "p/b.py") == set()


_PACKAGES = {"p/__init__.py": "", "p/q/__init__.py": "", "p/q/a.py": "", "p/b.py": "", "p/q/static/js/a.js": ""}
_JOBS = {"jobs/__init__.py": "", "jobs/copy.py": "import jobs.rows", "jobs/rows.py": ""}
_DOCUMENTS = {"docs/page.md": "", "deploy/a.yaml": ""}


@pytest.mark.parametrize(
    ("files", "test", "other", "changed"),
    [
        pytest.param(_PACKAGES, "from p.q.a import x", "import r", "p/__init__.py", id="package above"),
        pytest.param(_PACKAGES, "from p.q.a import x", "import p.b", "p/q/__init__.py", id="package"),
        pytest.param(
            {**_PACKAGES, "p/q/c.py": "from .. import b"}, "import p.q.c", "import p.q.a", "p/b.py", id="relative"
        ),
        pytest.param(
            _PACKAGES, "def f():\n    import p.b", "if TYPE_CHECKING:\n    import p.b", "p/b.py", id="executed"
        ),
        pytest.param(_JOBS, 'run([python, "-m", "jobs.copy"])', '"""jobs.copy"""', "jobs/rows.py", id="string"),
        pytest.param(_PACKAGES, 'files("p.q")', "import p.b", "p/q/static/js/a.js", id="resource of that package"),
        pytest.param(_PACKAGES, "import p.q.a", "import p.b", "p/q/static/js/a.js", id="file next to a module"),
        pytest.param({"b/__main__.py": "", "b/a.py": ""}, '[python, "-m", "b"]', '"b"', "b/a.py", id="-m"),
        pytest.param(_DOCUMENTS, 'ROOT / "docs"', '{"docs": tmp_path / "docs"}', "docs/page.md", id="folder"),
        pytest.param(_DOCUMENTS, 'ROOT / "docs" / "page.md"', "", "docs/page.md", id="parts of a path"),
        pytest.param(_DOCUMENTS, 'Path("docs/page.md")', "", "docs/page.md", id="path"),
        pytest.param({"p/a.py": "", "p/a/__init__.py": ""}, "import p.a", "", "p/a.py", id="module before a package"),
    ],
)
def test_a_change_selects_the_test_that_depends_on_it_and_no_other(
    files: Mapping[str, str], test: str, other: str, changed: str
) -> None:
    assert selected(graph({**files, TEST: test, OTHER: other}), changed) == {TEST}


def test_end_to_end_tests_depend_on_all_that_processes_run() -> None:
    found = graph({"mirror_lib/a.py": "", "dags/b.py": "", "bench/c.py": "", "tests/e2e/test_all.py": "", TEST: ""})

    assert selected(found, "mirror_lib/a.py") == selected(found, "dags/b.py") == {"tests/e2e/test_all.py"}
    assert selected(found, "bench/c.py") == set()


def test_what_a_conftest_uses_counts_for_the_tests_that_request_its_fixtures() -> None:
    found = graph(
        {
            "p/brokers.py": "",
            "tests/conftest.py": "import p.brokers\ndef broker(): ...",
            "tests/unit/conftest.py": "def clean(broker): ...",
            "tests/unit/test_argument.py": "def test_a(broker): ...",
            "tests/unit/test_mark.py": '@pytest.mark.usefixtures("clean")\ndef test_a(): ...',
            "tests/unit/test_none.py": "def test_a(): ...",
            "tests/integration/test_far.py": "def test_a(clean): ...",
        }
    )

    assert selected(found, "p/brokers.py") == {"tests/unit/test_argument.py", "tests/unit/test_mark.py"}
    below = {f"tests/unit/test_{name}.py" for name in ("argument", "mark", "none")}
    assert selected(found, "tests/unit/conftest.py") == below


def test_in_this_repository_files_are_found_by_what_imports_starts_or_reads_them(subtests: pytest.Subtests) -> None:
    repository = repository_graph(ROOT)
    for changed, test in (
        ("mirror_lib/topology/flow_topology.py", "tests/unit/topology/test_flow_topology.py"),
        ("run", "tests/unit/project/test_run_script.py"),
        ("docker-compose.yaml", "tests/unit/deploy/test_compose_files.py"),
        ("deploy/prometheus/alerts.yml", "tests/unit/deploy/test_alert_rules.py"),
        ("docs/page.md", "tests/unit/project/test_documents.py"),
        ("mirror_lib/features/page/static/main.js", "tests/unit/features/page/test_page_api.py"),
        ("mirror_lib/ledger/migrations/env.py", "tests/unit/ledger/test_ledger_schema.py"),
        ("tools/fuzz/child.py", "tests/unit/fuzz/test_fuzz_findings.py"),
        ("spark_jobs/daemon.py", "tests/unit/spark/test_submit.py"),
        ("mirror_lib/cli/main.py", "tests/integration/features/demo/test_dev_commands.py"),
    ):
        with subtests.test(changed):
            assert (ROOT / changed).exists()
            assert test in selected(repository, changed)

    everywhere, few = (selected(repository, path) for path in ("mirror_lib/errors.py", "tools/testbed/wan.py"))
    assert everywhere >= {path for path in repository_files(ROOT) if tier_of(path) == "e2e"}
    assert len([path for path in few if tier_of(path) == "unit"]) < 20
