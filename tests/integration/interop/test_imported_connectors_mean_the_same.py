"""What MM2's own classes make of a connector is what they make of the file that `mirror config import` writes of it."""

from __future__ import annotations

import json
import subprocess
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

import javaproperties
import pytest

from mirror_lib.config import loader as load
from mirror_lib.config.model import Severity
from mirror_lib.config.settings.kafka_names import CLIENT_SET
from mirror_lib.features.demo.jars import classpath, fetch, mirror_maker
from mirror_lib.features.importers.connectors import import_connectors
from mirror_lib.features.importers.kinds import recognise
from mirror_lib.features.importers.mirror_maker1 import APPLIED
from mirror_lib.features.importers.questions import Answers
from mirror_lib.spark.java import find_java
from tests.support.connectors import CASES, KUBECTL, ConnectCase

PROGRAM = Path(__file__).parent / "ConnectorMeanings.java"
NAMES = (
    *("orders", "orders.old", "orders.new", "payments", "x.internal", "mm2-offsets.A.internal", "heartbeats", "a.b"),
    *("a", "c", "c.d", "x", "__consumer_offsets", "billing", "xa1", "xb1", "console-consumer-1", "connect-1"),
    *("retention.ms", "min.insync.replicas", "cleanup.policy", "unclean.leader.election.enable"),
)
#: Client settings that have an effect; `client.id` holds the name of the connector.
SETTINGS = sorted((CLIENT_SET | {"auto.offset.reset"}).union(*APPLIED.values()) - {"client.id"})

Meanings = Mapping[tuple[str, str], Mapping[str, Mapping[str, str]]]


#: A resource of Strimzi. Its version is that of the classes, since defaults differ between versions. What one of its
#: connectors has for clients that others have too is left out, since a flow gives it to all of them.
RESOURCE = KUBECTL.replace("version: 3.9.0", "version: 4.3.1").replace(
    "          source.consumer.isolation.level: read_committed\n", ""
)
STRIMZI = "strimzi"


def imported(name: str) -> str:
    if name == STRIMZI:
        answers = Answers({})
        clusters = recognise([("x.yaml", RESOURCE.encode())], answers).clusters
        return import_connectors(clusters, answers, jaas_options=lambda _: {}).text
    return imported_case(CASES[name])


def connectors_of(name: str) -> list[dict[str, str]]:
    if name != STRIMZI:
        return CASES[name].connectors
    # The reader's part is shown by Strimzi's own expectations, in `tests/unit/features/importers/test_strimzi.py`.
    found = recognise([("x.yaml", RESOURCE.encode())], Answers({})).clusters
    configs = [each.config for cluster in found for each in cluster.connectors]
    there = "${strimzisecrets:kafka/", "${secrets:/etc/mirror/secrets/kafka/"
    return [{key: value.replace(*there) for key, value in each.items()} for each in configs]


def imported_case(case: ConnectCase) -> str:
    files = [(f"{index}.json", json.dumps(each).encode()) for index, each in enumerate(case.connectors)]
    if case.worker is not None:
        files.append(("worker.properties", javaproperties.dumps(case.worker).encode()))
    answers = Answers.parse(case.answers)
    result = import_connectors(recognise(files, answers).clusters, answers, jaas_options=lambda _: {})
    assert result.questions == ()
    return result.text


@pytest.fixture(scope="module")
def meanings(tmp_path_factory: pytest.TempPathFactory) -> Meanings:
    """By case and connector: `connect` and `file`, each with what MM2's classes say."""
    folder = tmp_path_factory.mktemp("connectors")
    for name in (*CASES, STRIMZI):
        place = folder / name
        place.mkdir()
        (place / "mm2.properties").write_text(imported(name), encoding="ascii")
        for each in connectors_of(name):
            kind = each["connector.class"].rpartition(".")[2]
            path = place / f"{each['source.cluster.alias']}~{each['target.cluster.alias']}~{kind}.properties"
            path.write_text(javaproperties.dumps({**each, "name": "any"}), encoding="latin-1")
    jars = fetch(mirror_maker())
    done = subprocess.run(
        (
            *(str(find_java()), "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classpath(jars), str(PROGRAM)),
            *(str(folder), ",".join(NAMES), ",".join(SETTINGS)),
        ),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[tuple[str, str], dict[str, dict[str, str]]] = defaultdict(lambda: {"connect": {}, "file": {}})
    for line in done.stdout.splitlines():
        case_name, connector, side, what, value = line.split("|", 4)
        found[case_name, connector][side][what] = value
    return found


@pytest.mark.parametrize("name", [*CASES, STRIMZI])
def test_a_file_means_what_its_connectors_meant(name: str, meanings: Meanings) -> None:
    of_case = {connector: sides for (case, connector), sides in meanings.items() if case == name}

    assert len(of_case) == len(connectors_of(name))
    for connector, sides in of_case.items():
        file = {what: value for what, value in sides["file"].items() if what not in ("dataProducer", "pairs")}
        assert file == sides["connect"], connector
        assert sides["file"].get("pairs", "true") == "true"


@pytest.mark.parametrize("name", [name for name in CASES if name != "hub and spokes"])
def test_the_producer_of_the_data_has_what_connect_gave_it(name: str, meanings: Meanings) -> None:
    case = CASES[name]
    source = case.connectors[0]
    expected = {
        **{
            key.removeprefix("target.cluster."): value
            for key, value in source.items()
            if key.startswith("target.cluster.")
        },
        **case.producer,
    }
    del expected["alias"]
    told = meanings[name, "A~B~MirrorSourceConnector"]["file"]["dataProducer"]

    assert told == "{" + ", ".join(f"{key}={expected[key]}" for key in sorted(expected)) + "}"


@pytest.mark.parametrize("name", CASES)
def test_a_written_file_has_no_problems(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE", "secret")
    path = tmp_path / "mirror.properties"
    path.write_text(imported(name), encoding="ascii")

    problems = load.check(path)

    assert [load.describe(each) for each in problems if each.severity is Severity.ERROR] == []
    assert {str(each.flow) for each in load.load(path).enabled_flows} == {
        f"{each['source.cluster.alias']}->{each['target.cluster.alias']}" for each in CASES[name].connectors
    }
