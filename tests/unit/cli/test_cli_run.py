"""`mirror run` with a stand-in for Spark, which does what the job does: notes its run and writes its report.

`mirror run` writes heartbeats as the flow's DAG does, and goes on where it cannot.

What `mirror run` shows of a job that left no report.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from mirror_lib.cli.flow_frame import FlowCommand
from mirror_lib.cli.output import ConsoleOutput
from mirror_lib.cli.run import command, spark_submit
from mirror_lib.cli.run.command import _emit_heartbeats
from mirror_lib.cli.run.outcome import read_report
from mirror_lib.cli.run.spark_submit import Child
from mirror_lib.errors import AuthorizationError, ConfigurationError, DirtyStartError, SparkJobError, Where
from mirror_lib.ledger.store import Ledger
from mirror_lib.processes import session_members
from mirror_lib.spark.settings import SPARK_SETTINGS, TRANSFORMING_JVM
from mirror_lib.sync.heartbeats.flow import EmittedHeartbeat
from tests.support.flow_files import AWAY, LEDGER, write_flow
from tests.support.terminal import invoke

_REFUSED = DirtyStartError("the last run did not end.", where=Where(topic="t", partition=1), action="Ask.")
_SPARK = """\
#!{python}
import json, os, sys
folder = {folder!r}
sys.path.insert(0, {project!r})
given = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
json.dump({{"argv": sys.argv[1:], "path": os.environ.get("PYTHONPATH", ""),
           "remote": os.environ.get("SPARK_REMOTE")}}, open(folder + "/call.json", "w"))
from mirror_lib.ledger.rows import PartitionRunRow
from mirror_lib.ledger.store import Ledger
run_id = given["run-id"]
ledger = Ledger.open("sqlite:///" + folder + "/ledger.sqlite3")
ledger.start_run(run_id=run_id, flow=given["flow"], trigger=given["trigger"])
def row(partition, **more):
    return PartitionRunRow(run_id=run_id, round=1, topic="t", partition=partition, target_topic="A.t", start_offset=0,
                           end_offset=20, target_first=0, **more)
{script}
"""
_SUCCESS = """
ledger.save_partition_runs([row(0, source_next=20, target_next=20, records=20, bytes=2_000_000, state="done")])
ledger.finish_run(run_id, state="succeeded")
json.dump(answer, open(given["report"], "w"))
sys.exit(answer["exit_code"])
"""
_REPORT: dict[str, Any] = {
    "run_id": "as given",
    "records": 20,
    "bytes": 2_000_000,
    "rounds": 1,
    "seconds": 1.5,
    "copy_seconds": 0.5,
    "idle_partitions": 4,
    "exit_code": 0,
    "partitions": [{"topic": "t", "partition": 0, "error": None}],
    "problems": [],
}


class Terminal:
    """A folder with a configuration, and a Spark that runs a script instead of a job."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = write_flow(folder, *AWAY[:2], LEDGER, "admin.timeout.ms = 100")

    def spark(self, script: str) -> None:
        program = self.folder / "spark" / "bin" / "spark-submit"
        program.parent.mkdir(parents=True, exist_ok=True)
        project = str(Path(__file__).resolve().parents[3])
        program.write_text(
            _SPARK.format(python=sys.executable, folder=str(self.folder), project=project, script=script)
        )
        program.chmod(0o755)

    def job_reports(self, **changes: Any) -> None:
        self.spark(f"answer = { ({**_REPORT, **changes})!r}\n{_SUCCESS}")

    def run(self, *options: str) -> tuple[int, str, str]:
        return invoke("run", "--config", self.file, "--flow", "A->B", "--no-topics", *options)

    def json(self, *options: str) -> tuple[int, dict[str, Any]]:
        code, shown, _ = self.run(*options, "--json")
        return code, json.loads(shown)

    def call(self) -> dict[str, Any]:
        return json.loads((self.folder / "call.json").read_text())

    @property
    def states(self) -> list[str]:
        with Ledger.open(f"sqlite:///{self.folder}/ledger.sqlite3") as ledger:
            return [run.state for run in ledger.runs()]


@pytest.fixture
def terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("MIRROR_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    monkeypatch.setattr(spark_submit, "find_java", lambda: Path("java"))
    monkeypatch.setattr(command, "_POLL_SECONDS", 0.05)
    return Terminal(tmp_path)


@pytest.mark.integration
def test_the_job_is_submitted_with_the_choices_and_the_settings_of_the_dag(terminal: Terminal) -> None:
    terminal.job_reports()

    given = ["--topics", "a.*", "--topics=-b", "--tasks", "3", "--max-seconds", "90", "--gaps", "accept"]
    code, found = terminal.json(*given)

    assert code == 0
    argv = terminal.call()["argv"]
    position = next(number for number, word in enumerate(argv) if word.endswith("spark_jobs/replicate.py"))
    settings, arguments = argv[:position], argv[position + 1 :]
    assert "--master=local[*]" in settings
    assert {f"--conf={key}={value}" for key, value in SPARK_SETTINGS.items()} <= set(settings)
    assert f"--conf=spark.pyspark.python={sys.executable}" in settings
    assert arguments == [
        f"--config={terminal.file}",
        "--flow=A->B",
        f"--run-id={found['run_id']}",
        "--trigger=cli",
        f"--report={terminal.folder}/state/runs/{found['run_id']}.json",
        "--topics=a.*",
        "--topics=-b",
        "--tasks=3",
        "--max-seconds=90",
        "--gaps=accept",
    ]


@pytest.mark.integration
def test_what_was_copied_is_shown_and_a_flow_with_transforms_gets_a_jvm_for_them(terminal: Terminal) -> None:
    terminal.job_reports()
    with terminal.file.open("a") as file:
        file.write("mirror.transforms = live\nmirror.transform.live.filter = key IS NOT NULL\n")

    code, shown, _ = terminal.run()

    assert code == 0
    lines = [line.split() for line in shown.splitlines()]
    assert ["t", "A.t", "1", "20", "2.00", "0.00", "0"] in lines
    assert ["idle", "partitions", "4"] in lines
    assert f"--conf=spark.driver.defaultJavaOptions={TRANSFORMING_JVM}" in terminal.call()["argv"]


def test_executors_of_a_cluster_have_their_own_python_and_a_servers_address_does_not_go_before_the_master(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_REMOTE", "sc://elsewhere")
    terminal.job_reports()

    terminal.run("--master", "spark://host:7077")

    call = terminal.call()
    assert "--master=spark://host:7077" in call["argv"]
    assert call["remote"] is None
    assert f"--conf=spark.pyspark.driver.python={sys.executable}" in call["argv"]
    assert not any(word.startswith("--conf=spark.pyspark.python") for word in call["argv"])


@pytest.mark.integration
def test_what_was_left_out_is_shown(terminal: Terminal) -> None:
    poison = {"first_offset": 40, "next_offset": 42, "records": 2, "cause": "record-too-large"}
    poison |= {"detail": "too large.", "quarantined": True}
    terminal.job_reports(skipped=2, partitions=[{"topic": "t", "partition": 3, "error": None, "poison": [poison]}])

    _, shown, _ = terminal.run()
    _, found = terminal.json()

    assert any(line.split()[:6] == ["t", "3", "40", "41", "2", "record-too-large"] for line in shown.splitlines())
    (row,) = found["skipped"]
    assert (row["topic"], row["partition"], row["from"], row["to"], row["quarantined"]) == ("t", 3, 40, 41, True)


@pytest.mark.integration
def test_failures_are_shown_with_reason_and_action_and_the_exit_code_is_the_jobs(terminal: Terminal) -> None:
    partition = {"topic": "t", "partition": 1, "error": _REFUSED.attributes()}
    whole_topic = {**_REFUSED.attributes(), "topic": "u", "partition": -1}
    told = {"reason": "unclean-start", "what": "the last run did not end.", "action": "Ask."}
    terminal.job_reports(exit_code=3, partitions=[partition], problems=[whole_topic])

    code, found = terminal.json()

    assert (code, found["exit_code"]) == (3, 3)
    assert found["failures"] == [{"topic": "t", "partition": 1, **told}, {"topic": "u", "partition": None, **told}]
    terminal.job_reports(exit_code=1, partitions=[partition], problems=[whole_topic])
    code, shown, _ = terminal.run()
    assert code == 1
    assert "unclean-start" in shown
    assert "Ask." in shown


def test_a_job_that_failed_as_a_whole_passes_on_its_error(terminal: Terminal) -> None:
    error = ConfigurationError("the file changed.", action="Check it.")
    terminal.spark(
        f"json.dump({{'exit_code': 2, 'error': {error.attributes()!r}}}, open(given['report'], 'w'))\n"
        "ledger.finish_run(run_id, state='failed')\nsys.exit(2)"
    )

    code, found = terminal.json()

    assert code == 2
    assert found["error"] == error.attributes()


def test_a_job_that_dies_without_a_report_is_told_with_its_log_and_does_not_stay_running(terminal: Terminal) -> None:
    terminal.spark("print('java.lang.OutOfMemoryError', flush=True)\nos._exit(137)")

    code, found = terminal.json()

    assert code == 1
    assert found["error"]["reason"] == "spark-job"
    assert "exit code 137" in found["error"]["what"]
    assert "OutOfMemoryError" in found["error"]["what"]
    assert terminal.states == ["failed"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("stubborn", [False, True])
@pytest.mark.integration
def test_an_interrupted_run_leaves_no_process_and_says_so(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, number: signal.Signals, stubborn: bool
) -> None:
    monkeypatch.setattr("mirror_lib.cli.run.spark_submit._GRACE_SECONDS", 0.3)
    ignore = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" if stubborn else ""
    terminal.spark(
        f"{ignore}import subprocess, time\nworker = subprocess.Popen(['sleep', '600'], process_group=0)\n"
        "open(folder + '/worker', 'w').write(str(os.getpid()))\ntime.sleep(600)"
    )
    monkeypatch.setattr(Child, "wait", _interrupting(Child.wait, terminal.folder / "worker", number))

    code, found = terminal.json()

    assert code == 1
    assert found["error"]["reason"] == "interrupted"
    assert f"mirror status --run {found['run_id']}" in found["error"]["action"]
    assert session_members(int((terminal.folder / "worker").read_text())) == ()
    assert terminal.states == ["failed"]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def _interrupting(
    wait: Callable[[Child, float], int | None], sign: Path, number: signal.Signals
) -> Callable[[Child, float], int | None]:
    """As if somebody sent a signal as soon as the job is at work."""

    def waiting(child: Child, seconds: float) -> int | None:
        if sign.exists() and sign.read_text():
            os.kill(os.getpid(), number)
        return wait(child, seconds)

    return waiting


@pytest.mark.integration
def test_nothing_new_is_said(terminal: Terminal) -> None:
    terminal.spark(
        f"json.dump({ ({**_REPORT, 'records': 0, 'bytes': 0, 'partitions': []})!r}, open(given['report'], 'w'))\n"
        "ledger.finish_run(run_id, state='succeeded')"
    )

    code, shown, _ = terminal.run()

    assert code == 0
    assert "Nothing to copy" in shown


def test_a_spark_home_without_spark_and_an_unknown_flow_start_nothing(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.job_reports()
    assert invoke("run", "--config", terminal.file, "--flow", "A->C")[0] == 2

    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    code, found = terminal.json()

    assert code == 2
    assert "SPARK_HOME" in found["error"]["what"]
    assert not (terminal.folder / "call.json").exists()


def emit(tmp_path: Path, *lines: str) -> Mock:
    """Return the output of the command."""
    output = Mock()
    _emit_heartbeats(FlowCommand(output, write_flow(tmp_path, *AWAY, *lines), "A->B"))
    return output


def test_one_is_written_into_the_source_and_one_into_the_target_and_a_refusal_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = AuthorizationError("it may not be written.")

    def emitted(pairs: Any, ledger: Any) -> tuple[EmittedHeartbeat, ...]:
        errors = {"B->A": refused}
        return tuple(
            EmittedHeartbeat(pair.flow, pair.flow.target, "heartbeats", 1, errors.get(str(pair.flow))) for pair in pairs
        )

    monkeypatch.setattr(command, "emit_heartbeats", emitted)

    told = emit(tmp_path)

    (document,) = told.document.call_args.args
    assert [each["pair"] for each in document["heartbeats"]] == ["B->A", "A->B"]
    told.note.assert_called_once_with("Warning: heartbeat of B->A: it may not be written.")


def test_none_is_written_when_they_are_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "emit_heartbeats", SimpleNamespace())

    emit(tmp_path, "emit.heartbeats.enabled = false").document.assert_called_once_with({"heartbeats": []})


_FRAMES = [f"\tat org.apache.spark.Some{number}.call(Some.scala:{number})" for number in range(60)]
_SECTION = [f"py4j.Gateway.invoke{number}(Gateway.java:238)" for number in range(30)]
_LOG = [
    "26/11/28 00:29:32 ERROR StandaloneSchedulerBackend: Reason: All masters are unresponsive! Giving up.",
    *(f"line {number}" for number in range(20)),
    "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
    *_FRAMES,
    *_SECTION,
    "(No active SparkContext.)",
    *_FRAMES,
]


def test_the_cause_is_shown_and_no_stack_frame(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files: Any = SimpleNamespace(report=tmp_path / "none.json", log=tmp_path / "run.log")
    files.log.write_text("\n".join(_LOG))

    with pytest.raises(SparkJobError) as caught:
        read_report(files, 1)
    ConsoleOutput().error(caught.value)

    shown = capsys.readouterr().err
    assert "\n26/11/28 00:29:32 ERROR StandaloneSchedulerBackend: Reason: All masters are unresponsive!" in shown
    assert "stopped SparkContext" in shown
    assert "(No active SparkContext.)" in shown
    for hidden in ("Some.scala", "Gateway.java", "\\n"):
        assert hidden not in shown
