"""Properties files as MirrorMaker 2's own classes read them, against ours: what it runs is taken, with its settings.

`python -m tests.integration.config.test_files_as_mirror_maker_reads_them 2000` compares so many generated files.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_lib.config.file.derive import FlowSettings, flow_settings, selected_flows, top_level
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.loader import check, load
from mirror_lib.config.model import FlowConfig, Problem, Provenance, Severity
from mirror_lib.config.topology import flow_topology, group_filter, offset_syncs_topic
from mirror_lib.dev.jars import classpath, fetch, mirror_maker
from mirror_lib.dev.java import find_java
from mirror_lib.sync.topics.internal import checkpoints_topic
from mirror_lib.topology.java_regex import compile_java
from tests.integration.config.published import FILES

PROGRAM = Path(__file__).parent / "MirrorMakerFiles.java"
TOPICS = (
    *("orders", "orders-1", "Orders-x", "order7", "order77", "payments", "products.a", "productsxa", "foo-1"),
    *("A.orders", "B.orders", "prod.orders", "dr.orders", "Books", "heartbeats", "A.heartbeats", "x-dlq", "x-retry"),
    *("A.checkpoints.internal", "mm2-offsets.A.internal", "x.internal", "x-internal", "y.replica", "__z", ".hidden"),
    *("console-consumer-1", "connect-1", "tmp-1", "_schemas", "target_orders", "A_orders"),
)
CLIENTS = ("data_consumer", "source_admin", "target_admin", "offset_syncs_producer", "offset_syncs_consumer")
#: What a fix is given for although MM2 runs with it, and why.
REFUSED_ON_PURPOSE = (
    "circle",  # records would be copied for ever
    "did you mean",  # a misspelt setting, of which somebody expects an effect
    "with none MM2 copies nothing",
)
#: MM2 makes the one itself; the others are its own settings, cut by the prefix of a client and used by none.
NOT_COMPARED = ("client.id", "poll.timeout.ms", "timeout.ms", "override.linger.ms")
GENERATED = 40


def ask(files: Iterable[bytes], patterns: Sequence[tuple[str, Sequence[str]]] = ()) -> dict[str, Any]:
    """What MM2 says about all files, of which one JVM is enough."""
    encoded = [base64.b64encode(data).decode() for data in files]
    done = subprocess.run(
        [
            *(str(find_java()), "-Xmx256m", "-XX:TieredStopAtLevel=1"),
            *("-cp", classpath(fetch(mirror_maker())), str(PROGRAM)),
        ],
        input=json.dumps({"files": encoded, "topics": TOPICS, "patterns": patterns}),
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    answers: dict[str, Any] = json.loads(done.stdout)
    return answers


def differences(file: Path, data: bytes, theirs: Mapping[str, Any]) -> list[str]:
    """What MM2 and we make differently of a file that MM2 runs; what it refuses is not compared."""
    ours = {entry.key: entry.value for entry in parse_properties(data).entries}
    found = [] if ours == theirs["entries"] else [f"entries: {ours} != {theirs['entries']}"]
    if "refused" in theirs:
        return found
    file.write_bytes(data)
    errors = [problem for problem in check(file) if problem.severity is Severity.ERROR and not on_purpose(problem)]
    if errors:
        return [*found, f"refused: {errors}"]
    if any(problem.severity is Severity.ERROR for problem in check(file)):
        return found
    settings_of = top_level(
        Provenance(value=entry.value, key=entry.key) for entry in parse_properties(data).effective.values()
    )
    flows = {str(flow): flow_settings(settings_of, flow) for flow in selected_flows(settings_of)}
    if flows.keys() != theirs["flows"].keys():
        return [*found, f"flows: {sorted(flows)} != {sorted(theirs['flows'])}"]
    typed = {str(flow.flow): flow for flow in load(file).flows}
    for name, flow in flows.items():
        found += [f"{name}: {each}" for each in flow_differences(flow, typed[name], theirs["flows"][name])]
    return found


def on_purpose(problem: Problem) -> bool:
    return any(part in f"{problem.message} {problem.suggestion}" for part in REFUSED_ON_PURPOSE)


def flow_differences(flow: FlowSettings, typed: FlowConfig, theirs: Mapping[str, Any]) -> Iterable[str]:
    given = {"name", "connector.class", "enabled", "source.cluster.alias", "target.cluster.alias"}
    of_theirs = {name: text for name, text in theirs["connector"].items() if name not in given}
    of_ours = {name: each.value for name, each in flow.connector.items() if name in of_theirs or name not in given}
    # Names that only older versions read; a new name that an old one stands for is none of MM2 4.
    honoured = ("topics.blacklist", "groups.blacklist", "config.properties.blacklist")
    standing = {new for new in of_ours if flow.connector[new].key is not None and _is_old(flow.connector[new].key)}
    of_ours = {name: text for name, text in of_ours.items() if name not in standing or name in of_theirs}
    own = {name for name in of_ours if name.startswith("mirror.") or name in honoured}
    if {name: text for name, text in of_ours.items() if name not in own} != {
        name: text for name, text in of_theirs.items() if name not in honoured
    }:
        yield f"connector: {sorted(of_ours.items() ^ of_theirs.items())}"
    for client in CLIENTS:
        # As ConfigDef, which both use, takes them.
        mine = {name: each.value.strip() for name, each in flow.clients[client].items() if name not in NOT_COMPARED}
        other = {name: text.strip() for name, text in theirs["clients"][client].items() if name not in NOT_COMPARED}
        if mine != other:
            yield f"{client}: {sorted(mine.items() ^ other.items())}"
    if typed.enabled != theirs["enabled"]:
        yield f"enabled: {typed.enabled}"
    for names, of_typed in ((offset_syncs_topic(typed), "offset_syncs_topic"),):
        if names != theirs[of_typed]:
            yield f"{of_typed}: {names} != {theirs[of_typed]}"
    if typed.offset_storage_topic != theirs["worker"]["offset.storage.topic"]:
        yield f"positions: {typed.offset_storage_topic}"
    if typed.enabled and not standing:
        yield from topic_differences(typed, theirs)


def _is_old(key: str | None) -> bool:
    return key is not None and key.endswith(".blacklist")


def topic_differences(typed: FlowConfig, theirs: Mapping[str, Any]) -> Iterable[str]:
    topology, groups = flow_topology(typed), group_filter(typed)
    for topic in TOPICS:
        mine = topology.remote_topic(topic) if topology.replicates(topic) else None
        if mine != theirs["remote"][topic] and not (topic == "heartbeats" == theirs["remote"][topic]):
            yield f"topic {topic}: {mine} != {theirs['remote'][topic]}"
        if groups.should_replicate_group(topic) != theirs["groups"][topic]:
            yield f"group {topic}: {theirs['groups'][topic]}"
    # The checkpoints topic of MM2's source connector is that of the target's alias; ours is the checkpoint connector's.
    if not checkpoints_topic(typed).name.startswith(typed.source_alias):
        yield f"checkpoints: {checkpoints_topic(typed).name}"


LINES = st.sampled_from(
    [
        *(
            f"{prefix}{line}"
            for prefix in ("", "A->B.", "B->A.", "A.", "B.")
            for line in (
                "enabled = true",
                "enabled = TRUE",
                "enabled = true ",
                "enabled = false",
                "topics = orders.*, foo-1",
                "topics = (?i)ORDERS.*|payments",
                "topics.exclude = .*-1",
                "topics =",
                "groups = .*-1",
                "groups.exclude = tmp.*",
                "emit.heartbeats.enabled = false",
                "emit.heartbeats.enabled = true",
                "replication.policy.separator = _",
                "replication.policy.separator =",
                "replication.policy.separator = . ",
                "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
                "replication.policy.internal.topic.separator.enabled = false",
                "source.cluster.alias = prod",
                "target.cluster.alias = dr",
                "source.cluster.alias =",
                "target.cluster.alias =",
                "offset-syncs.topic.location = target",
                "tasks.max = 3",
                "replication.factor = -1",
                "offset.lag.max = 7",
                "consumer.fetch.min.bytes = 7",
                "consumer.isolation.level = read_committed",
                "admin.retries = 3",
                "producer.linger.ms = 3",
                "source.consumer.fetch.min.bytes = 8",
                "target.admin.retries = 4",
                "consumer.auto.offset.reset = latest",
                "producer.override.linger.ms = 9",
                "consumer.poll.timeout.ms = 5",
                "admin.timeout.ms = 5",
                "client.id = me",
                "metric.reporters =",
                "request.timeout.ms = 30001",
                "ssl.truststore.type = PEM",
                "security.protocol = ssl",
                "sasl.mechanism = PLAIN",
                "offset.storage.topic = positions",
                "offset.storage.replication.factor = 1",
                "bootstrap.servers = c:1,d:2",
                "consumer.bootstrap.servers = e:1",
                "config.providers =",
                "heartbeats.replication.enabled = false",
                "use.defaults.from = source",
                "what.ever = 1",
                "max.tasks = 3",
                "group.id = g",
                "name = x",
            )
        ),
        "# a comment",
        "",
        "  ! another",
        "clusters = A, B",
        "A->B.topics = a\\\n  , b",
        "topics.blacklist = foo.*",
        "A->B.topics = \\u006frders",
        "A->B.topics : orders",
        "A->B.topics orders",
    ]
)
START = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"


@st.composite
def generated_files(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(LINES, max_size=12))
    end = draw(st.sampled_from(("\n", "\r\n", "\r")))
    return (START + "\n".join(lines) + draw(st.sampled_from(("", "\n")))).replace("\n", end).encode()


def generate(count: int) -> list[bytes]:
    """So many files; the JVM is asked once for all of them, so the property is looked at afterwards."""
    found: list[bytes] = []

    @settings(max_examples=count, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(generated_files())
    def collect(data: bytes) -> None:
        found.append(data)

    collect()
    return found


PATTERNS = (
    *(
        ".*(?<!-dlq|-retry)",
        ".*(?<=a|bc|)",
        "(?<!a(?i)|bc)d",
        "order[0-9]{1",
        "*",
        "a{1,3}b",
        "products..*",
        "[a-z&&[^b]]+",
    ),
    *("(?i)orders|x", r"products\..*", "a|b|", "(a", r"\Q.*\E", ".*[-.]internal", "^orders$", "(?<n>a)b"),
)
TEXTS = (
    "a",
    "b",
    "ab",
    "d",
    "ad",
    "bcd",
    "BCd",
    "orders",
    "ORDERS",
    "x-dlq",
    "x",
    "products.a",
    "x-internal",
    ".*",
    "",
)


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    return ask([text.encode("iso-8859-1") for text in FILES.values()], [(each, TEXTS) for each in PATTERNS])


def test_what_published_files_hold_is_taken_as_mirror_maker_takes_it(answers: dict[str, Any], tmp_path: Path) -> None:
    found = {}
    for (about, text), theirs in zip(FILES.items(), answers["files"], strict=True):
        different = differences(tmp_path / "mirror.properties", text.encode("iso-8859-1"), theirs)
        if different:
            found[about] = different

    assert found == {}
    run = [about for about, theirs in zip(FILES, answers["files"], strict=True) if "refused" not in theirs]
    assert len(run) > len(FILES) * 0.8


def test_regexes_match_what_they_match_in_java(answers: dict[str, Any]) -> None:
    for regex, theirs in zip(PATTERNS, answers["patterns"], strict=True):
        if "refused" in theirs:
            with pytest.raises(ValueError, match="Java regex"):
                compile_java(regex)
        else:
            assert [compile_java(regex).fullmatch(text) is not None for text in TEXTS] == theirs["matches"], regex


def test_generated_files_have_the_settings_that_mirror_maker_gives_them(tmp_path: Path) -> None:
    found, enough = compare(generate(GENERATED), tmp_path)

    # The first says it all; the difference of long lists takes pytest minutes.
    assert found[:1] == []
    assert enough


def compare(files: Sequence[bytes], folder: Path) -> tuple[list[tuple[bytes, list[str]]], bool]:
    """Files with their differences, and whether MM2 runs enough of them to say something."""
    answers = ask(files)["files"]
    found = [
        (data, different)
        for data, theirs in zip(files, answers, strict=True)
        if (different := differences(folder / "mirror.properties", data, theirs))
    ]
    return found, sum("refused" not in theirs for theirs in answers) > len(files) / 4


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        different, enough = compare(generate(int(sys.argv[1])), Path(name))
    for data, each in different[:20]:
        print(data.decode(), *each, sep="\n", end="\n\n")
    print(f"{len(different)} differ; MM2 runs enough: {enough}")
