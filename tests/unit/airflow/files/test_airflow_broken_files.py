"""A configuration file that breaks: its DAGs stay as far as they can, and fail with the reason; those of others run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from mirror_lib.airflow import dags as all_dags
from mirror_lib.airflow.compatibility import DAG
from mirror_lib.airflow.dags import mirror_dags
from mirror_lib.airflow.files.broken_dags import BROKEN_TAG
from mirror_lib.airflow.files.broken_files import problems_of, raise_for_broken_files
from mirror_lib.airflow.files.flow_dags import build_flow_dags
from mirror_lib.airflow.flow.check import check_flow
from mirror_lib.airflow.heartbeats.dag import build_heartbeat_dags
from mirror_lib.copy.job.arguments import JobArguments
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.verify.airflow.dag import build_verify_dags
from tests.support.flow_files import write_flow

Write = Callable[..., Path]
A_DAG, C_DAG = "mirror__A__B", "mirror__C__D"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a file with one flow and some more lines."""

    def write(name: str, source: str = "A", target: str = "B") -> Path:
        schedule = f"{source}->{target}.mirror.schedule = 5 4 * * *"
        return write_flow(tmp_path, schedule, source=source, target=target, name=name)

    return write


#: A line more or, with `was`, a line that stands in place of another; and whether the flow can be made of the rest.
BREAKS = {
    "an unknown key": ("A->B.topcis = orders", None, True),
    "a number that is none": ("tasks.max = many", None, True),
    "an expression that is none": ("A->B.topics = orders, (", None, True),
    "a class that is not known": ("replication.policy.class = Foo", None, True),
    "an address that is none": ("A.bootstrap.servers = a:port", "A.bootstrap.servers = a:9092", True),
    "a cluster without address": ("", "A.bootstrap.servers = a:9092", True),
    "a merge that was not finished": ("<<<<<<< HEAD", None, True),
    "a secret's file that is gone": ("A->B.topics = ${file:/nowhere:topics}", None, True),
    "no word whether it is on": ("A->B.enabled = maybe", "A->B.enabled = true", False),
    "nothing left": (None, None, False),
}


def broken(write: Write, kind: str) -> Path:
    line, was, _ = BREAKS[kind]
    path = write("broken.properties")
    text = path.read_text()
    if line is None:
        path.write_text("")
    elif was is None:
        path.write_text(f"{text}{line}\n")
    else:
        assert was in text
        path.write_text(text.replace(was, line))
    return path


def fail(dag: DAG) -> None:
    """Do what its only task does."""
    (task,) = dag.tasks
    task.python_callable(**task.op_kwargs)


@pytest.mark.parametrize("kind", BREAKS)
def test_given_a_broken_file_when_dags_are_made_then_it_keeps_its_own_marked_where_the_rest_names_the_flow(
    write: Write, kind: str
) -> None:
    path, good = broken(write, kind), write("good.properties", source="C", target="D")

    # The other file has its DAGs unmarked.
    paths = [path, good]
    for dags in (build_flow_dags(paths), build_verify_dags(paths), build_heartbeat_dags(paths)):
        (own,) = [dag for dag in dags.values() if BROKEN_TAG not in dag.tags]
        assert "is broken" not in str(own.doc_md)
    # A task of its DAG fails with what is wrong.
    with pytest.raises(ConfigurationError, match=r"broken\.properties has \d error"):
        check_flow(JobArguments(path, "A->B"))
    dags = build_flow_dags([path])
    if not BREAKS[kind][2]:
        assert dags == {}
        assert "no DAGs of this file" in "\n".join(problems_of([path]))
        return
    assert BROKEN_TAG in dags[A_DAG].tags
    assert dags[A_DAG].schedule is not None
    assert dags[A_DAG].max_consecutive_failed_dag_runs == 0, "it is paused before the file is mended, and stays so"
    assert str(path) in str(dags[A_DAG].doc_md)
    assert f"remaining DAGs: {A_DAG}" in "\n".join(problems_of([path]))


def test_given_a_schedule_that_is_none_when_dags_are_made_then_the_flow_is_there_and_runs_by_hand(write: Write) -> None:
    path = write("broken.properties")
    path.write_text(path.read_text().replace("5 4 * * *", "at noon"))

    assert build_flow_dags([path])[A_DAG].schedule is None


def test_given_two_files_with_one_flow_or_one_name_when_dags_are_made_then_the_first_has_it_and_that_is_told(
    write: Write, tmp_path: Path
) -> None:
    first, second = write("first.properties"), write("second.properties")

    dags = build_flow_dags([first, second, write("third.properties", source="C", target="D")])

    assert set(dags) == {A_DAG, C_DAG}
    assert dags[A_DAG].get_task("preflight").op_kwargs["config_path"] == str(first)
    assert f"{first} already defines the DAG {A_DAG}" in "\n".join(problems_of([first, second]))
    (tmp_path / "other").mkdir()
    of_one_name = write("other/first.properties", source="C", target="D")
    assert "the heartbeats of" in "\n".join(problems_of([first, of_one_name]))


def test_given_a_flow_whose_dag_cannot_be_built_when_dags_are_made_then_it_has_one_that_fails_and_others_have_theirs(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mirror_lib.airflow.files import flow_dags

    build = flow_dags.build_flow_dag

    def build_but_one(flow, path):  # type: ignore[no-untyped-def]
        if str(flow.flow) == "A->B":
            raise KeyError("what nobody thought of")
        return build(flow, path)

    monkeypatch.setattr(flow_dags, "build_flow_dag", build_but_one)

    dags = build_flow_dags([write("first.properties"), write("second.properties", source="C", target="D")])

    assert list(dags[A_DAG].task_ids) == ["what_is_wrong"]
    with pytest.raises(ConfigurationError, match="what nobody thought of"):
        fail(dags[A_DAG])
    assert "replicate" in dags[C_DAG].task_ids


def test_given_a_file_that_is_gone_when_a_task_asks_for_its_dag_then_its_log_says_why_there_is_none(
    write: Write, tmp_path: Path
) -> None:
    paths = [tmp_path / "gone.properties", write("good.properties", source="C", target="D")]

    with pytest.raises(ConfigurationError, match="gone"):
        build_flow_dags(paths, only=A_DAG)

    assert set(build_flow_dags(paths, only=C_DAG)) == {C_DAG}


def cut_in_a_name(path: Path) -> None:
    text = path.read_text()
    path.write_text(text[: text.index(".enabled")])


#: What stands in the place of a file whose flow nobody can tell.
GONE: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "bytes": lambda path: path.write_bytes(b"\x00\xff\xfe\x81" * 300),
    "half-written": cut_in_a_name,
}


@pytest.mark.parametrize("kind", GONE)
def test_given_a_file_that_becomes_unreadable_when_dags_are_made_then_its_own_are_gone_with_a_reason_until_it_is_back(
    write: Write, kind: str
) -> None:
    # Given two good files, which this process has read
    path, good = write("one.properties"), write("good.properties", source="C", target="D")
    text = path.read_text()
    assert set(build_flow_dags([path, good])) == {A_DAG, C_DAG}

    GONE[kind](path)

    assert set(build_flow_dags([path, good])) == {C_DAG}
    with pytest.raises(ConfigurationError) as caught:
        raise_for_broken_files([path, good])
    told = str(caught.value)
    assert str(path) in told
    assert "Airflow has no DAGs of this file until this is fixed; runs that have started continue then." in told
    assert str(good) not in told
    with pytest.raises(ConfigurationError, match=r"one\.properties"):
        check_flow(JobArguments(path, "A->B"))

    path.write_text(text)

    assert set(build_flow_dags([path, good])) == {A_DAG, C_DAG}
    raise_for_broken_files([path, good])


class TestOneDagFileForAll:
    """`mirror_dags` cannot raise what is wrong: Airflow would drop the DAGs that it made."""

    def test_given_a_broken_file_then_a_dag_that_fails_tells_it_once(self, write: Write) -> None:
        good = write("good.properties", source="C", target="D")
        dags = mirror_dags([broken(write, "an unknown key"), good])

        assert {A_DAG, C_DAG} <= set(dags)
        with pytest.raises(ConfigurationError) as caught:
            fail(dags["mirror_broken_files"])
        assert str(caught.value).count("topcis is not a setting") == 1
        assert "mirror_broken_files" not in mirror_dags(good)

    def test_given_nothing_that_can_be_used_then_it_raises_for_that_stops_nothing(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigurationError, match="gone"):
            mirror_dags(tmp_path / "gone.properties")

    def test_given_a_broken_file_when_a_task_asks_for_one_dag_then_it_gets_just_that(
        self, write: Write, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        paths = [broken(write, "an unknown key"), write("good.properties", source="C", target="D")]

        for wanted in (A_DAG, C_DAG, "mirror_verify__C__D", "mirror_broken_files"):
            monkeypatch.setattr(all_dags, "get_parsing_context", lambda wanted=wanted: SimpleNamespace(dag_id=wanted))
            assert set(mirror_dags(paths)) == {wanted}


def test_given_a_pipe_in_the_place_of_a_file_when_dags_are_made_then_nothing_waits_for_its_writer(
    write: Write, tmp_path: Path
) -> None:
    good, pipe = write("good.properties"), tmp_path / "pipe.properties"
    os.mkfifo(pipe)

    (problem,) = problems_of([good, pipe])

    assert "not a regular file" in problem
