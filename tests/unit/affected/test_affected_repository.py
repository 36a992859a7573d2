"""Facts of this repository: which of its tests depend on which of its files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.affected.changes import repository_files
from tests.affected.graph import Graph, fixture_node, tier_of
from tests.affected.selection import repository_graph

ROOT = Path(__file__).resolve().parents[3]

pytestmark = pytest.mark.skipif(not (ROOT / ".git").exists(), reason="the list of files comes from git")


@pytest.fixture(scope="module")
def repository() -> Graph:
    return repository_graph(ROOT)


def selected(repository: Graph, changed: str) -> set[str]:
    assert "::" in changed or (ROOT / changed).exists()
    found = {path for path in repository.chains([changed]) if tier_of(path)}
    # The tests of this folder name files as examples.
    return {path for path in found if not path.startswith("tests/unit/affected/")}


def test_files_are_found_by_what_imports_starts_or_reads_them(repository: Graph, subtests: pytest.Subtests) -> None:
    for changed, test in (
        ("mirror_lib/topology/flow_topology.py", "tests/unit/topology/test_flow_topology.py"),
        ("README.md", "tests/unit/project/test_packaging.py"),
        ("run", "tests/unit/project/test_packaging.py"),
        (".ci/run", "tests/unit/project/test_packaging.py"),
        ("docker-compose.yaml", "tests/unit/deploy/test_compose_files.py"),
        ("deploy/prometheus/alerts.yml", "tests/unit/deploy/test_alert_rules.py"),
        ("plugins/README.md", "tests/unit/project/test_documents.py"),
        ("mirror_lib/page/static/main.js", "tests/unit/page/test_page_api.py"),
        ("mirror_lib/ledger/migrations/env.py", "tests/unit/ledger/test_ledger_schema.py"),
        ("fuzz/child.py", "tests/unit/fuzz/test_fuzz_short.py"),
        ("spark_jobs/daemon.py", "tests/unit/spark/test_submit.py"),
        ("mirror_lib/cli/main.py", "tests/integration/dev/test_dev_commands.py"),
        ("dags/flows.py", "tests/unit/dev/test_dev_airflow.py"),
    ):
        with subtests.test(changed):
            assert test in selected(repository, changed)


def test_a_module_selects_every_end_to_end_test_and_leaves_unit_tests_of_other_packages_alone(
    repository: Graph,
) -> None:
    everywhere, few = (
        selected(repository, "mirror_lib/topology/flow_topology.py"),
        selected(repository, "testbed/wan.py"),
    )

    assert everywhere >= {path for path in repository_files(ROOT) if tier_of(path) == "e2e"}
    assert "tests/unit/testbed/test_testbed_wan.py" in few
    assert not {path for path in few if path.startswith(("tests/unit/topology/", "tests/unit/relay/copy/test_copy"))}
    assert Counter(map(tier_of, few))["unit"] < 20


def test_a_document_selects_only_tests_that_read_documents(repository: Graph) -> None:
    documents = "tests/unit/project/test_documents.py"
    # Reads two of them, under a name of the folder.
    tables = "tests/unit/relay/backfill/test_states.py"

    assert selected(repository, "docs/page.md") == {documents, tables}
    # One of them is compared with the table of states.
    assert selected(repository, "docs/runbooks.md") == {documents, tables, "tests/unit/runbook/test_cutover_states.py"}


def test_a_fixture_selects_just_the_tests_that_use_it(repository: Graph) -> None:
    memory = selected(repository, fixture_node("tests/unit/relay/conftest.py", "memory"))
    brokers = selected(repository, fixture_node("tests/conftest.py", "kafka_pair"))

    assert "tests/unit/relay/copy/test_copy_memory.py" in memory
    assert all(path.startswith("tests/unit/relay/") for path in memory)
    assert len(memory) < 15
    assert {tier_of(path) for path in brokers} == {"integration", "e2e"}
