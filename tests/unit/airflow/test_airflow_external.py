"""Flows with `mirror.airflow.execution = external`: the DAG file in this Airflow, its tasks in a process without it."""

import json
import logging
import os
import runpy
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

from mirror_lib.airflow.dags import mirror_dags
from mirror_lib.features.external import dag_file
from mirror_lib.features.external import task as external_task
from mirror_lib.features.external.spark_submit import SparkChild
from mirror_lib.features.external.task import DagRun
from mirror_lib.processes import session_members

_MIRROR = Path(sys.executable).with_name("mirror")
_CONFIG = """\
clusters = A, B
A.bootstrap.servers = {servers}
B.bootstrap.servers = {servers}
A->B.enabled = true
A->B.topics = orders, payments-.*
A->B.mirror.airflow.pool = kafka
mirror.schedule = */5 * * * *
mirror.audit.schedule = 1h
mirror.airflow.execution = {execution}
mirror.ledger.url = sqlite:///{folder}/ledger.sqlite3
"""
_SECRET = """\
config.providers = airflow
config.providers.airflow.class = mirror_lib.AirflowSecretProvider
B.ssl.truststore.password = ${airflow:variable:STORE}
"""
#: What Airflow serializes of a task, as far as both ways of execution set it.
_ARGUMENTS = ("retries", "retry_delay", "max_retry_delay", "execution_timeout", "pool", "owner", "doc_md")


def _write(folder: Path, execution: str, *, servers: str = "localhost:1", more: str = "") -> Path:
    path = folder / "mirror.properties"
    path.write_text(_CONFIG.format(execution=execution, servers=servers, folder=folder) + more)
    return path


def _load(folder: Path, config: Path) -> dict:
    """Write the DAG file of a configuration file and load it, as Airflow does: return the DAGs by id."""
    return _dags_in(_globals(folder, config))


def _dags_in(found: dict) -> dict:
    return {name: dag for name, dag in found.items() if name.startswith("mirror_")}


def _describe(config: Path) -> subprocess.CompletedProcess[str]:
    command = [_MIRROR, "airflow", "describe", "--config", config]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture
def write(tmp_path):
    return partial(_write, tmp_path)


@pytest.fixture
def load(tmp_path):
    return partial(_load, tmp_path)


def _globals(folder: Path, config: Path) -> dict:
    """Write the DAG file of a configuration file and return what it defines."""
    file = folder / "mirror_dags.py"
    command = [_MIRROR, "airflow", "dag-file", "--config", config]
    file.write_text(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW_HOME", str(folder / "airflow"))
        return runpy.run_path(str(file))


@pytest.fixture(scope="module")
def defined(tmp_path_factory):
    """What the DAG file of a file with `external` defines, made once."""
    folder = tmp_path_factory.mktemp("external")
    return _globals(folder, _write(folder, "external"))


@pytest.fixture
def flow_dag(defined):
    return defined["mirror__A__B"]


class _Instance:
    """The Airflow side of a task: what it has stored."""

    try_number = 1

    def __init__(self) -> None:
        self.pushed = {}

    def xcom_pull(self, *, task_ids, key):
        return self.pushed.get((task_ids, key))

    def xcom_push(self, *, key, value):
        self.pushed[key] = value


def _context(dag, *, run_type="manual", **conf):
    defaults = {name: dag.params[name] for name in dag.params}
    run = SimpleNamespace(
        dag_id=dag.dag_id,
        run_id="manual__1",
        run_type=run_type,
        conf=conf,
        run_after=datetime(2026, 11, 27, 9, 59, 58, tzinfo=UTC),
        start_date=datetime(2026, 11, 27, 10, 0, 1, tzinfo=UTC),
    )
    return {"dag_run": run, "ti": _Instance(), "params": {**defaults, **conf}}


def test_external_dags_are_those_of_the_other_execution(write, defined):
    inside, outside = mirror_dags(write("in-process")), _dags_in(defined)

    # Cutovers ask questions on Airflow's page of required actions.
    assert set(inside) - set(outside) == {"mirror_cutover__A__B"}
    assert set(outside) < set(inside)
    for dag_id, dag in outside.items():
        wanted = inside[dag_id]
        assert (dag.schedule, dag.description, dag.tags) == (wanted.schedule, wanted.description, wanted.tags)
        assert (dag.max_active_runs, dag.dagrun_timeout) == (wanted.max_active_runs, wanted.dagrun_timeout)
        assert set(dag.task_ids) == set(wanted.task_ids)
        for task in dag.tasks:
            other = wanted.get_task(task.task_id)
            assert task.upstream_task_ids == other.upstream_task_ids
            assert task.trigger_rule == other.trigger_rule
            found = {name: getattr(task, name) for name in _ARGUMENTS}
            assert found == {name: getattr(other, name) for name in _ARGUMENTS}
        assert {name: dag.params.get_param(name).dump() for name in dag.params} == {
            name: wanted.params.get_param(name).dump() for name in wanted.params
        }


def test_each_execution_leaves_the_flows_of_the_other_alone(write):
    assert mirror_dags(write("external")) == {}

    done = _describe(write("in-process"))

    assert done.returncode == 2
    assert "mirror.airflow.execution = external" in done.stderr


def test_the_process_of_a_task_does_not_import_airflow(write):
    code = (
        "import sys; from pathlib import Path; from mirror_lib.airflow.compatibility import use_stand_ins;"
        "use_stand_ins('mirror_lib.features.external.stand_ins');"
        "from mirror_lib.features.external import task; from mirror_lib.features.external.describe import describe;"
        "describe([Path(sys.argv[1])]); print([n for n in sys.modules if n.split('.')[0] == 'airflow'])"
    )

    done = subprocess.run([sys.executable, "-c", code, write("external")], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_description_is_made_again_when_the_file_has_changed_and_a_file_that_broke_fails_its_tasks(write, load):
    dag = load(write("external"))["mirror__A__B"]
    assert dag.schedule == "*/5 * * * *"

    changed = load(write("external", more="A->B.mirror.schedule = @daily\n"))["mirror__A__B"]
    assert changed.schedule == "@daily"

    write("external", more="tasks.max = many\n")
    with pytest.raises(AirflowFailException, match=r"tasks\.max"):
        dag.get_task("sync_topics").execute(_context(dag))


def test_settings_without_effect_are_named(write):
    path = write("external", more="mirror.airflow.deadline.seconds = 900\nmirror.airflow.deferrable = true\n")

    done = _describe(path)

    assert "mirror.airflow.deadline.seconds of A->B has no effect" in done.stderr
    assert "mirror.airflow.deferrable of A->B has no effect" in done.stderr
    assert json.loads(done.stdout)["dags"]


def test_a_form_without_the_step_skips_it(flow_dag):
    context = _context(flow_dag, steps=["sync_topics"])

    with pytest.raises(AirflowSkipException, match="without this step"):
        flow_dag.get_task("emit_heartbeats").execute(context)

    assert context["ti"].pushed["step"]["skipped"]


@pytest.mark.parametrize(
    ("run_type", "conf", "reason"),
    [
        ("manual", {"dry_rnu": True}, "did you mean dry_run"),
        ("manual", {"topics": ["orders("]}, "topics"),
        ("backfill", {}, "one of Airflow's backfills"),
        ("backfill_job", {}, "one of Airflow's backfills"),
    ],
)
def test_what_no_retry_can_help_fails_at_once(flow_dag, run_type, conf, reason):
    with pytest.raises(AirflowFailException, match=reason):
        flow_dag.get_task("preflight").execute(_context(flow_dag, run_type=run_type, **conf))


def test_a_program_that_is_missing_is_named(flow_dag, monkeypatch):
    task = flow_dag.get_task("preflight")
    monkeypatch.setattr(task, "mirror", "/nowhere/mirror")

    with pytest.raises(AirflowException, match="/nowhere/mirror cannot be started"):
        task.execute(_context(flow_dag))


def test_a_task_outside_of_airflow_sees_its_run_as_airflow_has_it(defined, flow_dag):
    inside = _context(flow_dag, topics=["orders"])

    sent = json.loads(json.dumps(defined["_about"](inside)))

    assert asdict(DagRun.sent(sent)) == vars(inside["dag_run"])
    # A DAG file of an older version does not send the start of a run.
    del sent["started"]
    assert DagRun.sent(sent).start_date is None


def test_airflow_2_skips_only_tasks_that_have_not_begun(monkeypatch):
    """Only preflight was cleared. Airflow 3 keeps the states of the other tasks itself."""
    states = {"emit": None, "replicate": "running", "report": "success", "heartbeats": "failed", "acls": "queued"}
    instances = [SimpleNamespace(task_id=task, state=state) for task, state in states.items()]
    for each in instances:
        each.set_state = partial(setattr, each, "state")
    monkeypatch.setattr(dag_file, "DownstreamTasksSkipped", None)
    context = {"dag_run": SimpleNamespace(get_task_instances=lambda: instances)}

    dag_file._skip_others(context, [*states])

    assert {each.task_id: each.state for each in instances} == {**states, "emit": "skipped", "acls": "skipped"}


def test_secrets_come_from_airflow_and_are_masked(write, load, monkeypatch):
    monkeypatch.setenv("AIRFLOW_VAR_STORE", "sly-badger")
    path = write("external", more=_SECRET)
    task = load(path)["mirror__A__B"].get_task("sync_topics")
    asked = []
    answer = task._answer
    monkeypatch.setattr(task, "_answer", lambda message, context: asked.append(message) or answer(message, context))

    # Nothing listens there.
    with pytest.raises(AirflowException):
        task.execute(_context(task.dag))

    assert {"op": "variable", "name": "STORE"} in asked
    assert {"op": "mask", "text": "sly-badger"} in asked


@pytest.fixture
def silent_broker():
    """A server that takes connections and never answers."""
    with socket.create_server(("localhost", 0)) as server:
        yield server


_HOSTILE = "a\x1b[2J\u202e\r\n2026-11-28 ERROR all is lost"


def test_what_a_task_logs_or_prints_forges_no_line_of_airflows_log(monkeypatch, tmp_path):
    """Messages over the channel, the end of the task, and what its libraries print themselves."""
    sent = []
    channel = SimpleNamespace(
        send=lambda op, **message: sent.append(message), end=lambda **message: sent.append(message)
    )
    monkeypatch.setattr(external_task, "_task", lambda *_: _Failing())
    monkeypatch.setattr(external_task, "_context", lambda *_: {})
    channel.first = {}
    external_task.run_task([], "d", "t", channel)
    printed = tmp_path / "printed"
    printed.write_bytes(_HOSTILE.encode())

    texts = [message["message"] for message in sent] + [dag_file._shown(_HOSTILE)]
    lines = []
    SparkChild(["cat", str(printed)], os.environ).run(SimpleNamespace(info=lambda _, line: lines.append(line)))

    assert len(texts) == 4
    for line in (line for text in texts for line in text.split("\n")[1:]):
        assert line.startswith("  "), line
    assert all(text.replace("\n", "").isprintable() for text in texts)
    # A carriage return ends no line.
    assert [line.startswith("2026") for line in lines] == [False, True]


class _Failing:
    def pre_execute(self, context):
        logging.getLogger("mirror_lib.x").warning("group %s", _HOSTILE)

    def execute(self, context):
        raise ValueError(_HOSTILE)


def test_a_killed_task_ends_its_process(write, load, silent_broker):
    dag = load(write("external", servers=f"localhost:{silent_broker.getsockname()[1]}"))["mirror__A__B"]
    task = dag.get_task("preflight")

    def kill() -> None:
        # The task waits for an answer of the broker.
        connection, _ = silent_broker.accept()
        with connection:
            task.on_kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(AirflowException, match="exit code 143"):
        task.execute(_context(dag))
    killer.join()

    assert session_members(task._child.pid) == ()


def test_a_process_whose_airflow_task_is_gone_ends_itself(write, silent_broker):
    path = write("external", servers=f"localhost:{silent_broker.getsockname()[1]}")
    answers, answered = os.pipe()
    asked, requests = os.pipe()
    command = [_MIRROR, "airflow", "task", "--config", path, "--dag", "mirror__A__B", "--task", "preflight"]
    with subprocess.Popen([*command, "--pipes", f"{answers},{requests}"], pass_fds=(answers, requests)) as process:
        os.close(answers)
        os.close(requests)
        about = {"protocol": 1, "dag_id": "mirror__A__B", "run_id": "r", "run_type": "manual", "conf": {}}
        about |= {"params": {}, "try_number": 1}
        os.write(answered, f"{json.dumps(about)}\n".encode())
        connection, _ = silent_broker.accept()
        os.close(answered)
        os.close(asked)

        with connection:
            assert process.wait() == 128 + signal.SIGTERM
