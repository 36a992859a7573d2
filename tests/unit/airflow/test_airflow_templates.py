"""Texts of a configuration file in arguments that Airflow renders: they could read its variables and connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2.sandbox import SandboxedEnvironment

from mirror_lib.airflow.dags import mirror_dags
from mirror_lib.airflow.templates import untemplated

#: What each of them would become: the same text in any rendered argument.
_RENDERED = "1001001"
_ALIAS = "{{7*143000143//1000}}"
_FILE = f"""\
clusters = {_ALIAS}, A, B
{_ALIAS}.bootstrap.servers = c:9092
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->{_ALIAS}.enabled = true
B->{_ALIAS}.enabled = true
emit.heartbeats.enabled = false
"""
_BROKEN = f"clusters = A, B\nA.bootstrap.servers = {_ALIAS}\nA->B.enabled = {_ALIAS}\n"


class _Task:
    """A task instance whose XComs are empty."""

    def xcom_pull(self, **_: Any) -> dict[str, str]:
        return {"told": "", "agreed": ""}


@pytest.mark.parametrize("text", [_FILE, _BROKEN], ids=["names", "problems"])
def test_nothing_of_a_file_is_rendered(tmp_path: Path, text: str) -> None:
    path = tmp_path / f"{_ALIAS.replace('/', '')}.properties"
    path.write_text(text)
    good = tmp_path / "good.properties"
    good.write_text(
        "clusters = C, D\nC.bootstrap.servers = c:9092\nD.bootstrap.servers = d:9092\nC->D.enabled = true\n"
    )
    seen = 0

    for dag in mirror_dags(config=[good, path]).values():
        for task in dag.tasks:
            task.render_template_fields({"ti": _Task(), "dag": dag, "params": {}})
            values = [str(getattr(task, name, None)) for name in task.template_fields]
            assert not any(_RENDERED in each for each in values), (dag.dag_id, task.task_id, values)
            seen += sum("{{7*143" in each for each in values)

    assert seen


def test_arguments_of_tasks_are_plain_values(tmp_path: Path) -> None:
    # Airflow's DAG processor sends them to its parent with msgpack, which takes no subclass of a text.
    path = tmp_path / "mirror.properties"
    path.write_text(_FILE)

    for dag in mirror_dags(config=path).values():
        for task in dag.tasks:
            given_values = {name: getattr(task, name, None) for name in task.template_fields}
            assert msgspec.msgpack.encode(given_values), task.task_id


@given(st.text())
def test_a_template_renders_to_its_text(text: str) -> None:
    environment = SandboxedEnvironment(keep_trailing_newline=True)

    for each in (text, f"{{{{{text}}}}}", f"{{%{text}", f"{{#{text}\"'#}}"):
        if untemplated(each) != each:
            assert environment.from_string(untemplated(each)).render() == each
        else:
            assert not {"{{", "{%", "{#"} & {each[at : at + 2] for at in range(len(each))}
