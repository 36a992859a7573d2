"""Runs that Airflow itself was given with keys which the form of their DAG does not have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.airflow.dags import DagHost

#: Nobody answers there: a task that asks a cluster fails later, and with other words.
_CONFIG = """\
clusters = A, B
A.bootstrap.servers = localhost:1
B.bootstrap.servers = localhost:2
A->B.enabled = true
B->A.enabled = true
A->B.mirror.way.back = true
B->A.mirror.way.back = true
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagHost]:
    folder = tmp_path_factory.mktemp("odd-triggers")
    config = folder / "mirror.properties"
    config.write_text(_CONFIG)
    with DagHost(folder, config) as found:
        yield found


@pytest.mark.parametrize(
    ("dag_id", "conf", "first", "told"),
    [
        ("mirror__A__B", {"dryrun": True}, "preflight", "did you mean dry_run?"),
        ("mirror_verify__A__B", {"topic": ["orders"]}, "verify", "did you mean topics?"),
        ("mirror_backfill__A__B", {"topic": ["orders"]}, "define", "did you mean topics?"),
        ("mirror_cutover__A__B", {"name": "x", "group": ["app"]}, "begin", "did you mean groups?"),
        ("mirror_after_disaster__A__B", {"topic": ["orders"]}, "look", "did you mean topics?"),
        ("mirror_heartbeats__mirror", {"flow": "A->B"}, "emit_all_heartbeats", "the key 'flow' is unknown"),
    ],
)
def test_given_an_unknown_key_when_a_dag_is_triggered_then_its_first_task_fails_and_nothing_else_is_done(
    host: DagHost, dag_id: str, conf: dict[str, object], first: str, told: str
) -> None:
    before = host.log.stat().st_size

    outcome = host.run(dag_id, conf)

    assert outcome.state == "failed"
    assert outcome.tasks[first] == "failed"
    assert set(outcome.tasks.values()) <= {"failed", "upstream_failed", "skipped"}
    assert told in host.log.read_text()[before:]
