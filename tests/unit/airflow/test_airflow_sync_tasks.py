from types import SimpleNamespace

import pytest

from mirror_lib.airflow import tasks
from mirror_lib.airflow.compatibility import AirflowFailException, AirflowSkipException
from mirror_lib.errors import BrokerUnreachableError

NO_CHOICE = {"topics": None, "tasks": None, "max_seconds": None, "dry_run": False}
CONFIG = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:9
B.bootstrap.servers = 127.0.0.1:9
A->B.enabled = true
admin.timeout.ms = 1000
mirror.ledger.url = sqlite:///ledger.sqlite3
"""
TASKS = {"configs": tasks.sync_configs, "acls": tasks.sync_acls}


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "mirror.properties"
    path.write_text(CONFIG)
    return path


def run(kind, config):
    more = {"dag_run": SimpleNamespace(dag_id="mirror__A__B", run_id="manual 1")} if kind == "acls" else {}
    return TASKS[kind]("A->B", str(config), NO_CHOICE, **more)


@pytest.mark.parametrize("kind", TASKS)
def test_a_step_that_is_switched_off_is_shown_as_skipped(config, kind):
    config.write_text(f"{CONFIG}sync.topic.{kind}.enabled = false\n")

    with pytest.raises(AirflowSkipException, match=rf"sync\.topic\.{kind}\.enabled is false"):
        run(kind, config)


@pytest.mark.parametrize("kind", TASKS)
def test_a_cluster_that_is_away_is_an_error_that_may_pass(config, kind):
    with pytest.raises(BrokerUnreachableError) as caught:
        run(kind, config)

    assert caught.value.retriable


def test_a_step_that_was_refused_in_part_fails_with_the_reasons():
    done = {"skipped": None, "failed": 2, "problems": ["topic a: no.", "topic b: no."], "changed": 5}

    with pytest.raises(AirflowFailException, match=r"flow A->B: 2 topic configs were refused: topic a: no\.; topic b"):
        tasks._ended("A->B", "topic configs", done)


def test_a_step_that_went_well_gives_its_counts():
    done = {"skipped": None, "failed": 0, "problems": [], "changed": 5}

    assert tasks._ended("A->B", "topic configs", done) == done
