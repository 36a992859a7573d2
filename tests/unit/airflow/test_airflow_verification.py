"""The DAG that compares a flow's target with its source: its form, its arguments, and what becomes of results."""

import gc
import json
import sys
import warnings
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from mirror_lib.airflow.files import flow_dags
from mirror_lib.airflow.retries import is_hopeless
from mirror_lib.airflow.verify.dag import build_verify_dag, build_verify_dags, verify_dag_id
from mirror_lib.airflow.verify.operator import RESULT_KEY, VerifyOperator
from mirror_lib.airflow.verify.outcome import (
    NotVerifiableError,
    NotVerifiedError,
    PartitionsDifferError,
    VerifyOutcome,
)
from mirror_lib.config.loader import ReadablePart
from mirror_lib.errors import ConfigurationError
from mirror_lib.topology.names import FlowId
from mirror_lib.verify.job_arguments import VerifyArguments
from mirror_lib.verify.model import VerifyMode

NO_CHOICE = {"topics": None, "mode": "recent", "max_bytes": None, "max_seconds": None, "seed": 0}

#: Stands for Spark: notes its arguments, writes the report it was told to, ends with that report's exit code.
FAKE = """#!{python}
import json, os, sys
folder = os.path.dirname(__file__)
json.dump(sys.argv[1:], open(folder + "/arguments.json", "w"))
report = json.load(open(folder + "/answer.json"))
path = [word.split("=", 1)[1] for word in sys.argv if word.startswith("--report=")][0]
if len(report) > 1:
    json.dump(report, open(path, "w"))
sys.exit(report["exit_code"])
"""


def partition(number, verdict="equal", **more):
    row = {"topic": "orders", "partition": number, "verdict": verdict, "reason": None, "detail": None}
    return {**row, "differences": [], **more}


def missing(offset):
    return {
        "kind": "missing",
        "source_offset": offset,
        "target_offset": None,
        "what": [],
        "source_digest": "0123456789abcdef",
        "target_digest": None,
        "records": 1,
    }


def result(exit_code=0, *partitions, **more):
    verdicts = [row["verdict"] for row in partitions]
    return {
        "verification_id": "v-1",
        "mode": "recent",
        "exit_code": exit_code,
        "result": "the result.",
        "seconds": 1.5,
        "records": 700,
        "source_bytes": 9_000,
        "difference_count": sum(len(row["differences"]) for row in partitions),
        **{name: verdicts.count(name) for name in ("equal", "different", "unverifiable")},
        "idle_partitions": 2,
        "partitions": list(partitions),
        **more,
    }


@pytest.fixture
def spark(tmp_path, monkeypatch):
    """Runs the operator with a stand-in for spark-submit; returns the job's arguments and what went to XCom."""
    program = tmp_path / "spark-submit"
    program.write_text(FAKE.format(python=sys.executable))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    pushed = {}

    def run(answer, params=NO_CHOICE):
        (tmp_path / "answer.json").write_text(json.dumps(answer))
        operator = VerifyOperator(task_id="verify", flow="A->B", config_path="/f", conn_id="spark_default")
        context = {"params": params, "ti": SimpleNamespace(xcom_push=lambda key, value: pushed.update({key: value}))}
        operator.render_template_fields(context)
        operator.execute(context)
        words = json.loads((tmp_path / "arguments.json").read_text())
        job = next(number for number, word in enumerate(words) if word.endswith("spark_jobs/verify.py"))
        return VerifyArguments.parse(words[job + 1 :]), pushed

    run.pushed = pushed
    with warnings.catch_warnings():
        # The provider's hook leaves the pipe to spark-submit for the garbage collector to close.
        warnings.simplefilter("ignore", ResourceWarning)
        yield run
        gc.collect()


def test_its_id_is_stable_and_holds_only_what_airflow_allows():
    assert verify_dag_id(FlowId("A", "B")) == "mirror_verify__A__B"
    assert verify_dag_id(FlowId("us west", "eu/1")) == "mirror_verify__us_west__eu_1"


def test_it_runs_by_its_own_schedule_or_by_hand_only(make_flow):
    dag = build_verify_dag(make_flow(schedule="5m", verify_schedule="6h"), "f")

    assert dag.schedule == timedelta(hours=6)
    assert dag.catchup is False
    assert dag.max_active_runs == 1
    assert build_verify_dag(make_flow(schedule="5m"), "f").schedule is None


def test_it_is_one_task_that_knows_the_file_and_the_flow_and_no_secrets(make_flow):
    dag = build_verify_dag(make_flow(spark_connection="spark_big"), "/etc/mirror.properties")

    (task,) = dag.tasks
    assert (task.task_id, task.flow, task.config_path) == ("verify", "A->B", "/etc/mirror.properties")
    assert task.spark_conn_id == "spark_big"
    assert "very-secret" not in repr(vars(task))


def test_without_choices_the_recent_part_of_all_topics_is_compared(spark):
    arguments, _ = spark(result())

    assert arguments == VerifyArguments(config=Path("/f"), flow="A->B", mode=VerifyMode.RECENT, report=arguments.report)


def test_the_forms_choices_become_arguments(spark):
    choices = {"topics": ["orders", " ", "p.*"], "mode": "sample", "max_bytes": 5, "max_seconds": 2.5, "seed": 7}

    arguments, _ = spark(result(), choices)

    assert (arguments.topics, arguments.mode) == (("orders", "p.*"), VerifyMode.SAMPLE)
    assert (arguments.max_bytes, arguments.max_seconds, arguments.seed) == (5, 2.5, 7)


def test_counts_reach_xcom_and_the_log(spark, caplog):
    with caplog.at_level("INFO"):
        _, pushed = spark(result(0, partition(0), partition(1)))

    found = pushed[RESULT_KEY]
    assert (found["exit_code"], found["records"], found["equal"], found["idle_partitions"]) == (0, 700, 2, 2)
    assert (found["differences"], found["not_verified"]) == ([], [])
    assert "Verification v-1 (recent): the result." in caplog.text


def test_a_difference_fails_the_task_for_good_and_says_where(spark, caplog):
    differing = partition(3, "different", differences=[missing(41)])

    with pytest.raises(PartitionsDifferError, match="orders-3: missing at source offset 41") as caught:
        spark(result(3, partition(0), differing, partition(4, "unverifiable", reason="transient", detail="x.")))

    assert is_hopeless(caught.value)
    assert spark.pushed[RESULT_KEY]["differences"] == ["orders-3: missing at source offset 41"]
    assert spark.pushed[RESULT_KEY]["not_verified"] == ["[transient] orders-4: x."]


def test_what_is_found_where_records_are_routed_counts_too(spark):
    differing = partition(3, "different", topic="orders-eu", differences=[missing(41)])
    away = partition(0, "unverifiable", topic="orders-us", reason="broker-unreachable", detail="a broker is away.")

    with pytest.raises(PartitionsDifferError, match="orders-eu-3: missing at source offset 41"):
        spark(result(3, partition(0), routed=[differing]))
    with pytest.raises(NotVerifiedError, match="orders-us-0: a broker is away"):
        spark(result(1, partition(0), routed=[away]))


def test_of_many_differences_the_first_are_shown(spark, caplog):
    many = [partition(n, "different", differences=[missing(n)]) for n in range(30)]

    with caplog.at_level("INFO"), pytest.raises(PartitionsDifferError, match="and 27 more"):
        spark(result(3, *many))

    assert len(spark.pushed[RESULT_KEY]["differences"]) == 20
    assert "and 10 more" in caplog.text


@pytest.mark.parametrize("reason", ["broker-unreachable", "transient", "retries-exhausted", "topic-missing"])
def test_what_passes_by_itself_is_tried_again(spark, reason):
    obstacles = (
        partition(0, "unverifiable", reason="no-map", detail="no map."),
        partition(1, "unverifiable", reason=reason, detail="a broker is away."),
    )

    with pytest.raises(NotVerifiedError, match="a broker is away") as caught:
        spark(result(1, *obstacles))

    assert not is_hopeless(caught.value)


@pytest.mark.parametrize("reason", ["no-map", "budget", "corrupt-batch", "source-recreated"])
def test_what_does_not_pass_is_not_tried_again(spark, reason):
    with pytest.raises(NotVerifiableError, match=reason) as caught:
        spark(result(1, partition(0, "unverifiable", reason=reason, detail="see.")))

    assert is_hopeless(caught.value)


@pytest.mark.parametrize(
    ("code", "reason", "kind"),
    [
        (1, "broker-unreachable", NotVerifiedError),
        (2, "configuration", ConfigurationError),
        (3, "authentication", NotVerifiableError),
    ],
)
def test_a_job_that_failed_as_a_whole_is_judged_by_its_exit_code(spark, code, reason, kind):
    error = {"reason": reason, "what": "cluster A said no.", "action": "Ask it."}

    with pytest.raises(kind, match=r"cluster A said no\. Ask it\."):
        spark({"exit_code": code, "error": error})

    assert spark.pushed[RESULT_KEY] == {"exit_code": code, "error": f"[{reason}] cluster A said no."}


def test_a_job_that_died_while_it_wrote_its_report_has_none(tmp_path):
    path = tmp_path / "report.json"
    path.write_text('{"exit_code": 0, "par')

    assert VerifyOutcome.read(path) is None


def test_a_job_that_died_without_a_report_is_tried_again(spark):
    with pytest.raises(NotVerifiedError, match="exit code 1"):
        spark({"exit_code": 1})

    assert spark.pushed == {}


@pytest.fixture
def files(make_flow, monkeypatch):
    """The flows of configuration files by name."""
    content = {"ab": [make_flow("A", "B")], "bc": [make_flow("B", "C")]}

    def load_readable(path):
        return ReadablePart(SimpleNamespace(enabled_flows=content[path.name]), None)

    monkeypatch.setattr(flow_dags, "load_readable", load_readable)
    return content


def test_every_enabled_flow_of_every_file_has_one(files):
    paths = [Path("ab"), Path("bc")]

    assert set(build_verify_dags(paths)) == {"mirror_verify__A__B", "mirror_verify__B__C"}
    assert set(build_verify_dags(paths, only="mirror_verify__B__C")) == {"mirror_verify__B__C"}
