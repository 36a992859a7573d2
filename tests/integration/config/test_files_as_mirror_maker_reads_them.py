"""Properties files as MirrorMaker 2's own classes read them, against ours: what it runs is taken, with its settings.

`python -m tests.integration.config.test_files_as_mirror_maker_reads_them N` compares N generated files of each kind.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mirror_lib.config.file.derive import FlowSettings, flow_settings, selected_flows, top_level
from mirror_lib.config.file.properties import parse_properties
from mirror_lib.config.loader import check, load
from mirror_lib.config.model import FlowConfig, Problem, Provenance, Severity
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME, MM2_FLOW
from mirror_lib.config.topology import flow_topology, group_filter, offset_syncs_topic
from mirror_lib.features.demo.jars import classpath, fetch, mirror_maker
from mirror_lib.spark.java import find_java
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
    "or -1 for the default of the brokers",  # brokers refuse the topics that MM2 creates with 0 replicas
)
#: MM2 makes the one itself; the others are its own settings, cut by the prefix of a client and used by none.
NOT_COMPARED = ("client.id", "poll.timeout.ms", "timeout.ms", "override.linger.ms")
#: MM2's policy gets the text with its blanks; transforms are objects here; a name that an old one stands for.
NOT_TYPED = ("replication.policy.separator", "transforms", "topics.exclude", "groups.exclude")
ALIASES = {"source.cluster.alias": attrgetter("source_alias"), "target.cluster.alias": attrgetter("target_alias")}
#: The default of `config.properties.exclude` in Kafka 4.3.
EXCLUDED_CONFIGS = (
    "[follower.replication.throttled.replicas, leader.replication.throttled.replicas, "
    "message.timestamp.difference.max.ms, log.message.timestamp.before.max.ms, log.message.timestamp.after.max.ms, "
    "message.timestamp.type, unclean.leader.election.enable, min.insync.replicas]"
)
#: What Java's `trim` removes.
BLANKS = "".join(map(chr, range(0x21)))
GENERATED = 40
GENERATED_VALUES = 120
GENERATED_REGEXES = 1_000


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
    return json.loads(done.stdout)


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
    config = load(file)
    for name, flow in flows.items():
        found += [f"{name}: {each}" for each in flow_differences(flow, config.flow(name), theirs["flows"][name])]
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
    yield from value_differences(typed, theirs["values"])
    for name, each in flow.worker.items():
        if each.value != theirs["worker"].get(name, each.value):
            yield f"worker {name}: {each.value} != {theirs['worker'][name]}"
    if typed.offset_storage_topic != theirs["worker"]["offset.storage.topic"].strip(BLANKS):
        yield f"positions: {typed.offset_storage_topic}"
    if typed.enabled and not standing:
        yield from topic_differences(typed, theirs)


def value_differences(typed: FlowConfig, theirs: Mapping[str, str]) -> Iterable[str]:
    """Settings whose value in our model is not what ConfigDef makes of the text."""
    for definition in MM2_FLOW:
        if definition.name not in theirs or definition.name in NOT_TYPED or not hasattr(typed, definition.field):
            continue
        if theirs[definition.name] == EXCLUDED_CONFIGS:
            # The same names, with dots that match a dot only; the two that begin with log. are no topic's.
            assert typed.config_properties_exclude == MM2_BY_NAME["config.properties.exclude"].parse(
                MM2_BY_NAME["config.properties.exclude"].default or ""
            )
            continue
        mine = ALIASES.get(definition.name, attrgetter(definition.field))(typed)
        if isinstance(mine, tuple):
            text = f"[{', '.join(mine)}]"
        elif isinstance(mine, bool):
            text = str(mine).lower()
        else:
            text = str(mine.value if isinstance(mine, Enum) else mine)
        if text != theirs[definition.name].removeprefix("class "):
            yield f"{definition.name}: {text!r} != {theirs[definition.name]!r}"


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
#: What `ConfigDef` takes in one type or another, and what people write by mistake.
AWKWARD = (
    *("", "true", "TRUE", "yes", "1", "0", "-1", " 3 ", "+5", "007", "1_000", "1e3", "1.0", "0x10", "2147483648"),
    *("9999999999999999999", "\\u0663", "a,b", "a,,b", ",", "a, b ,", "\\u00a0a,\\u2003b", "\\u001f3", "3\\t", "x y"),
    *("none", "NONE", "all", "earliest", "latest", "source", "Target", "read_committed", "lz4", "LZ4", "null"),
    *("default", "ENABLED", "disabled", "[", "${env:X}", "a:1"),
    "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
)
OF_CLIENTS = (
    *("consumer.fetch.min.bytes", "consumer.isolation.level", "consumer.max.partition.fetch.bytes", "admin.retries"),
    *("consumer.check.crcs", "consumer.auto.offset.reset", "consumer.request.timeout.ms", "consumer.bootstrap.servers"),
    *("consumer.security.protocol", "consumer.client.rack", "consumer.ssl.endpoint.identification.algorithm"),
)
OF_WORKERS = (
    *("offset.storage.topic", "offset.storage.partitions", "offset.storage.replication.factor", "group.id"),
    *("offset.flush.interval.ms", "exactly.once.source.support", "bootstrap.servers", "security.protocol"),
)
START = "clusters = A, B\nA.bootstrap.servers = a:1\nB.bootstrap.servers = b:1\n"


@st.composite
def generated_files(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(LINES, max_size=12))
    end = draw(st.sampled_from(("\n", "\r\n", "\r")))
    return (START + "\n".join(lines) + draw(st.sampled_from(("", "\n")))).replace("\n", end).encode()


@st.composite
def files_with_one_awkward_value(draw: st.DrawFn) -> bytes:
    names = [f"A->B.{each.name}" for each in MM2_FLOW if each.name not in ("transforms", "predicates")]
    names += [f"A->B.{name}" for name in OF_CLIENTS] + [f"B.{name}" for name in OF_WORKERS]
    line = f"{draw(st.sampled_from(names))} = {draw(st.sampled_from(AWKWARD))}\n"
    return (START + "A->B.enabled = true\nA->B.topics = .*\n" + line).encode()


def generate(count: int, strategy: st.SearchStrategy[bytes], *, others_each_time: bool = False) -> list[bytes]:
    """So many files; the JVM is asked once for all of them, so the property is looked at afterwards.

    In tests they are the same each time: how many of them MM2 runs must not depend on chance.
    """
    found: list[bytes] = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=not others_each_time,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def collect(data: bytes) -> None:
        found.append(data)

    collect()
    return found


#: Pieces of regexes, with what Java and Python read differently.
ATOMS = (
    *("a", "b", "A", "1", ".", "-", "_", r"\.", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\h", "^", "$", r"\A"),
    r"\z",
    *(r"\Z", r"\G", r"\Q.*\E", r"\Q\E", r"\x41", r"\u0061", r"\x{61}", r"\0101", r"\cA", r"\t", r"\p{Lower}"),
    *(r"\p{Alpha}", r"\p{Punct}", r"\p{L}", r"\pL", r"\P{Lu}", r"\p{Digit}", r"\1", r"\k<n>", "#", " ", "\u00f6", "|"),
)
CLASS_MEMBERS = (
    *("a-c", "^a", "A-Z0-9", "a-c&&[^b]", "[a-c][1-3]", "^a-c[x]", "&&a", "a&&b&&c", r"\d", r"\w&&[^_]", r"\-.", "-a"),
    *("a-", ".", "^-", "]", r"\]", "[", r"\Qa]\E", "a-c-e", r"\p{L}&&[^a]", "^^a", "a&", "&&", "^", "ab|c", "#", " "),
)
QUANTIFIERS = ("*", "+", "?", "{1}", "{1,}", "{0,2}", "*?", "+?", "*+", "++", "{1,2}?", "**", "+*", "{", "{,2}", "{1")
OPENINGS = (
    *("(?:", "(", "(?i)(", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?<n>", "(?s:", "(?m:", "(?-i:", "(?is-m:"),
    *("(?", "(?P<n>", "(?#"),
)
FLAGS = ("(?i)", "(?s)", "(?m)", "(?-i)", "(?d)")


def _pieces() -> st.SearchStrategy[str]:
    classes = st.builds("[{}{}]".format, st.sampled_from(("", "^")), st.sampled_from(CLASS_MEMBERS))
    pieces = st.recursive(
        st.sampled_from(ATOMS) | classes,
        lambda inner: (
            st.builds("{}{}{}".format, st.sampled_from(OPENINGS), inner, st.just(")"))
            | st.builds("{}{}".format, st.sampled_from(FLAGS), inner)
            | st.builds("{}|{}".format, inner, inner)
        ),
        max_leaves=3,
    )
    return st.builds("{}{}".format, pieces, st.just("") | st.sampled_from(QUANTIFIERS))


def generated_regexes(count: int) -> list[str]:
    """Regexes, most of which Java takes."""
    return [
        data.decode()
        for data in generate(count, st.lists(_pieces(), min_size=1, max_size=3).map("".join).map(str.encode))
    ]


PATTERNS = (
    *(".*(?<!-dlq|-retry)", ".*(?<=a|bc|)", "(?<!a(?i)|bc)d", "order[0-9]{1", "*", "a{1,3}b", "products..*"),
    "[a-z&&[^b]]+",
    *("(?i)orders|x", r"products\..*", "a|b|", "(a", r"\Q.*\E", ".*[-.]internal", "^orders$", "(?<n>a)b"),
)
TEXTS = (
    *("a", "b", "ab", "d", "ad", "bcd", "BCd", "orders", "ORDERS", "x-dlq", "x", "products.a", "x-internal", ".*", ""),
    *("aa", "bb", "abc", "c", "1", "a1", "12", "a.b", "a-b", "a_b", "_", "-", ".", "]", "[", "^", "&", "a&b", "|", "#"),
    *(" ", "\t", "\n", "a\n", "\r\n", "\u00f6", "\u00d6", "\u00a0", "\x0b", "\u2028", "{", "{1", "a{1", "x"),
)


@pytest.fixture(scope="module")
def answers() -> dict[str, Any]:
    regexes = (*PATTERNS, *generated_regexes(GENERATED_REGEXES))
    return {
        "regexes": regexes,
        **ask([text.encode("iso-8859-1") for text in FILES.values()], [(each, TEXTS) for each in regexes]),
    }


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
    taken = 0
    for regex, theirs in zip(answers["regexes"], answers["patterns"], strict=True):
        if "refused" in theirs:
            with pytest.raises(ValueError, match="Java regex"):
                compile_java(regex)
            continue
        try:
            pattern = compile_java(regex)
        except ValueError:
            # Refused with its reason: without an exact counterpart. Those of the list above have one.
            assert regex not in PATTERNS
            continue
        assert [pattern.fullmatch(text) is not None for text in TEXTS] == theirs["matches"], regex
        taken += 1

    assert taken > len(answers["regexes"]) / 4


def test_generated_files_have_the_settings_that_mirror_maker_gives_them(tmp_path: Path) -> None:
    found, enough = compare(generate(GENERATED, generated_files()), tmp_path)

    # The first says it all; the difference of long lists takes pytest minutes.
    assert found[:1] == []
    assert enough


def test_awkward_values_of_settings_are_those_that_mirror_maker_takes(tmp_path: Path) -> None:
    found, enough = compare(generate(GENERATED_VALUES, files_with_one_awkward_value()), tmp_path)

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
        files = [
            file
            for each in (generated_files(), files_with_one_awkward_value())
            for file in generate(int(sys.argv[1]), each, others_each_time=True)
        ]
        different, enough = compare(files, Path(name))
    for data, each in different[:20]:
        print(data.decode(), *each, sep="\n", end="\n\n")
    print(f"{len(different)} differ; MM2 runs enough: {enough}")
