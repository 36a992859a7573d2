"""An audit of copies that other programs wrote: planted faults at their offsets, no fault where there is none."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread, Timer
from typing import Any

import pytest
from typer.testing import CliRunner

from mirror_lib.cluster.topics.mm2_formats import Checkpoint
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.audit import log, partition, sampling
from mirror_lib.features.audit.clusters import connection_to
from mirror_lib.features.audit.command import app
from mirror_lib.features.audit.findings import Kind
from mirror_lib.features.audit.model import AuditJob, AuditReport, Jump, Verdict
from mirror_lib.features.audit.pairs import TopicPair
from mirror_lib.features.audit.plan import AuditOptions
from mirror_lib.features.audit.run import audit
from mirror_lib.features.audit.sampling import Sample
from mirror_lib.features.audit.text import remarks, sentence, ways_on
from tests.support.brokers.groups import commit_offset
from tests.support.kafka import (
    Record,
    create_topic,
    delete_records,
    delete_topic,
    open_transaction,
    produce,
    records,
    transaction,
)
from tests.support.mirrored_topic import MirroredTopic
from tests.support.verifying import changed

_Records = list[Record]


def audited(
    mirrored: MirroredTopic,
    *,
    on_plan: Callable[[AuditJob], None] | None = None,
    on_read: Callable[[int], None] | None = None,
    **options: Any,
) -> AuditReport:
    """An audit of the topic of a test."""
    here = connection_to("source", mirrored.source.bootstrap_servers, None)
    there = connection_to("target", mirrored.target.bootstrap_servers, None)
    chosen = AuditOptions(**{"selected": lambda topic: topic == mirrored.name, "wait_seconds": 0, **options})
    return audit(here, there, chosen, on_plan=on_plan, on_read=on_read)


def brokers_of(mirrored: MirroredTopic) -> list[str]:
    """Options of a command that does not wait for the target."""
    servers = mirrored.source.bootstrap_servers, mirrored.target.bootstrap_servers
    return ["--source", servers[0], "--target", servers[1], "--wait", "0"]


def found(report: AuditReport) -> list[tuple[int, Kind, int, int | None, int | None]]:
    """Partition, kind, number and first offsets of all findings."""
    return [
        (
            each.source.partition,
            finding.kind,
            finding.records,
            finding.source and finding.source.first,
            finding.target and finding.target.first,
        )
        for each in report.partitions
        for finding in each.findings
    ]


def copied_by_hand(mirrored: MirroredTopic, written: _Records, change: Callable[[_Records], _Records] = list) -> None:
    """Write what a replicator of somebody else would have written."""
    mirrored.create_remote(partitions=1)
    mirrored.produce_remote(change(written), linger_ms=20)


def test_given_a_copy_without_a_fault_then_it_is_right(mirrored: MirroredTopic) -> None:
    copied_by_hand(mirrored, mirrored.create(records(3_000)))

    report = audited(mirrored)

    assert (report.verdict, report.exit_code(), report.equal) == (Verdict.EQUAL, 0, 3_000)
    assert found(report) == []


_FAULTS: list[tuple[str, Callable[[_Records], _Records], tuple[int, Kind, int, int | None, int | None]]] = [
    ("missing", lambda r: r[:700] + r[710:], (0, Kind.MISSING, 10, 700, None)),
    ("repeated", lambda r: r[:700] + r[500:], (0, Kind.REPEATED, 200, 500, 700)),
    ("reordered", lambda r: r[:700] + r[705:800] + r[700:705] + r[800:], (0, Kind.REORDERED, 5, 700, 795)),
    ("changed", changed(700, headers=()), (0, Kind.CHANGED, 1, 700, 700)),
    ("extra", lambda r: [*r[:700], Record(value=b"foreign"), *r[700:]], (0, Kind.EXTRA, 1, None, 700)),
]


@pytest.mark.parametrize(("change", "expected"), [each[1:] for each in _FAULTS], ids=[each[0] for each in _FAULTS])
def test_given_a_fault_then_it_is_found_at_its_offsets(
    mirrored: MirroredTopic,
    change: Callable[[_Records], _Records],
    expected: tuple[int, Kind, int, int | None, int | None],
) -> None:
    copied_by_hand(mirrored, mirrored.create(records(3_000)), change)

    report = audited(mirrored)

    assert found(report) == [expected]
    assert report.exit_code() == 3


def test_given_repeats_in_the_second_partition_then_their_originals_are_in_it_too(mirrored: MirroredTopic) -> None:
    written = mirrored.create(
        [each for partition in range(2) for each in records(300, partition=partition)], partitions=2
    )
    mirrored.create_remote(partitions=2)
    mirrored.produce_remote([*written, *written[400:410]])

    (finding,) = audited(mirrored).partitions[1].findings

    assert finding.source is not None
    assert finding.target is not None
    assert (finding.kind, finding.source.partition, finding.source.first) == (Kind.REPEATED, 1, 100)
    assert (finding.target.partition, finding.target.first) == (1, 300)


def test_given_other_timestamps_then_these_records_are_changed_and_not_equal(mirrored: MirroredTopic) -> None:
    def later(written: _Records) -> _Records:
        return [replace(each, timestamp_ms=(each.timestamp_ms or 0) + 3) for each in written]

    copied_by_hand(mirrored, mirrored.create(records(3_000)), lambda r: [*r[:400], *later(r[400:450]), *r[450:]])

    report = audited(mirrored)

    assert sum(report.counts.values()) == report.counts[Kind.CHANGED] == 50
    assert report.equal == 2_950


def test_given_aborted_transactions_then_a_reader_of_committed_records_misses_nothing(mirrored: MirroredTopic) -> None:
    written = mirrored.create(records(100))
    transaction(mirrored.source, mirrored.name, [b"one", b"two"], commit=False)
    more = mirrored.produce(records(100, start=100))
    open_ = open_transaction(mirrored.source, mirrored.name, [b"open"])
    copied_by_hand(mirrored, [*written, *more])
    try:
        assert audited(mirrored).verdict is Verdict.EQUAL
        mirrored.produce_remote([Record(value=b"one"), Record(value=b"two")])
        assert found(audited(mirrored)) == [(0, Kind.EXTRA, 2, None, 200)]
    finally:
        open_.abort_transaction(30)


def test_given_our_own_flow_then_its_copy_is_right(mirrored: MirroredTopic) -> None:
    mirrored.create(partitions=3)
    mirrored.produce([each for partition in range(3) for each in records(500, partition=partition)])
    assert mirrored.flow().run().errors == ()

    report = audited(mirrored)

    assert (report.verdict, report.equal, len(report.partitions)) == (Verdict.EQUAL, 1_500, 3)


def test_given_another_topic_then_it_is_said_not_to_be_a_copy(mirrored: MirroredTopic) -> None:
    mirrored.create(records(2_000))
    mirrored.create_remote()
    mirrored.produce_remote([replace(each, key=b"other") for each in records(2_000, start=5_000)])

    (report,) = audited(mirrored).partitions

    assert (report.verdict, report.findings) == (Verdict.NO_COPY, ())
    assert report.why == "0% of the records match: this is not a copy"


def test_given_retention_on_both_sides_and_no_record_on_both_then_it_is_not_verifiable(mirrored: MirroredTopic) -> None:
    """The target begins where the source ends: nothing says that it is not a copy."""
    mirrored.create(records(2_000))
    mirrored.create_remote()
    mirrored.produce_remote(records(2_000, start=2_000))
    delete_records(mirrored.source, mirrored.name, before=500)
    delete_records(mirrored.target, mirrored.remote, before=500)

    (report,) = audited(mirrored).partitions

    assert report.verdict is Verdict.UNVERIFIABLE
    assert report.counts == {Kind.UNVERIFIABLE: 3_000}


def test_given_a_topic_without_a_copy_then_it_is_named(mirrored: MirroredTopic) -> None:
    mirrored.create(records(10))

    report = audited(mirrored)

    assert (report.alone, report.exit_code(), report.exit_code(strict=True)) == ((mirrored.name,), 1, 3)


def test_given_a_copy_in_other_partitions_then_its_keys_are_compared(mirrored: MirroredTopic) -> None:
    written = mirrored.create(
        [replace(each, partition=number % 2) for number, each in enumerate(records(1_000))], partitions=2
    )
    by_key = [replace(each, partition=int((each.key or b"0")[4:]) % 3) for each in written]
    mirrored.create_remote(partitions=3)
    mirrored.produce_remote(by_key)

    (right,) = audited(mirrored).partitions
    mirrored.produce_remote([Record(key=b"key-5", value=b"foreign", partition=2)])
    (wrong,) = audited(mirrored).partitions

    assert (right.verdict, right.equal, right.by_key, right.passes) == (Verdict.EQUAL, 1_000, True, 1)
    (finding,) = wrong.findings
    assert finding.target is not None
    assert (finding.kind, finding.target.partition, finding.target.first) == (Kind.EXTRA, 2, 333)


def test_given_a_group_then_it_is_said_what_it_would_skip_and_read_again(mirrored: MirroredTopic) -> None:
    """Ten records are there twice, so the offsets of the source are wrong for the target from there on."""
    copied_by_hand(mirrored, mirrored.create(records(100)), lambda r: r[:50] + r[40:])
    group = mirrored.name
    commit_offset(mirrored.source, group, mirrored.name, 60)
    commit_offset(mirrored.target, group, mirrored.remote, 60)
    checkpoint = Checkpoint(group, mirrored.remote, 0, 60, 80)
    checkpoints = f"{mirrored.name}.checkpoints.internal"
    create_topic(mirrored.target, checkpoints, configs={"cleanup.policy": "compact"})
    produce(mirrored.target, checkpoints, [Record(key=checkpoint.key(), value=checkpoint.value())])

    report = audited(mirrored)

    (found_group,) = (each for each in report.groups if each.group == group)
    assert (found_group.committed, found_group.exact) == (60, 70)
    assert found_group.commit == Jump(60, skips=0, duplicates=10)
    assert found_group.checkpoint == Jump(80, skips=10, duplicates=0)


def test_given_the_command_then_it_says_what_is_wrong_and_ends_with_its_exit_code(mirrored: MirroredTopic) -> None:
    copied_by_hand(mirrored, mirrored.create(records(300)), lambda r: r[:100] + r[101:])
    brokers = [*brokers_of(mirrored), "--topics", re.escape(mirrored.name)]

    text = CliRunner().invoke(app, brokers)
    page, metrics = mirrored.folder / "report.html", mirrored.folder / "audit.prom"
    data = CliRunner().invoke(app, [*brokers, "--json", "--html", str(page), "--metrics", str(metrics)])

    assert (text.exit_code, data.exit_code) == (3, 3)
    assert "Wrong: 1 missing; 299 records equal (1 topic and 1 partition compared)." in text.stdout
    document = json.loads(data.stdout)
    (finding,) = document["partitions"][0]["findings"]
    assert "<td>missing</td>" in page.read_text()
    names = f"{mirrored.source.bootstrap_servers}->{mirrored.target.bootstrap_servers}"
    assert f'mirror_audit_records{{flow="{names}",kind="missing"}} 1.0' in metrics.read_text()
    assert (document["verdict"], document["missing"], finding["source"]["first_offset"]) == ("wrong", 1, 100)


def test_given_a_flow_of_a_file_then_its_topics_and_names_are_those_of_the_flow(mirrored: MirroredTopic) -> None:
    mirrored.create(records(50))
    flow = mirrored.flow()
    assert flow.run().errors == ()

    metrics = mirrored.folder / "audit.prom"
    options = ["--wait", "0", "--json", "--metrics", str(metrics)]
    said = CliRunner().invoke(app, ["--config", str(flow.path), "--flow", "A->B", *options])

    document = json.loads(said.stdout)
    assert [(each["topic"], each["target_topic"], each["equal"]) for each in document["partitions"]] == [
        (mirrored.name, mirrored.remote, 50)
    ]
    assert 'mirror_audit_records{flow="A->B",kind="equal"} 50.0' in metrics.read_text()
    assert said.exit_code == 0


@pytest.mark.parametrize("words", [[], ["--source", "a:1"], ["--config", "f", "--source", "a:1"]])
def test_given_neither_brokers_nor_a_flow_then_the_usage_is_wrong(words: list[str]) -> None:
    assert CliRunner().invoke(app, words).exit_code == 2


def test_given_records_without_keys_in_any_partition_then_they_are_compared_by_content(mirrored: MirroredTopic) -> None:
    """As MirrorMaker 1 copies them: https://github.com/uber/uReplicator/issues/4, KAFKA-5331."""
    written = [replace(each, key=None, partition=number % 3) for number, each in enumerate(records(900))]
    mirrored.create(written, partitions=3)
    mirrored.create_remote(partitions=3)
    mirrored.produce_remote([replace(each, partition=number // 300) for number, each in enumerate(written[:-1])])

    (report,) = audited(mirrored).partitions

    assert (report.by_key, report.equal) == (True, 899)
    assert [(each.kind, each.records) for each in report.findings] == [(Kind.MISSING, 1)]


def test_given_a_source_that_was_created_again_then_the_records_of_the_former_one_are_extra(
    mirrored: MirroredTopic,
) -> None:
    """As MirrorMaker 2 goes on after a reset: https://github.com/apache/kafka/pull/23091."""
    former = records(300)
    new = mirrored.create(records(200, start=1_000))
    mirrored.create_remote()
    mirrored.produce_remote([*former, *new])

    assert found(audited(mirrored)) == [(0, Kind.EXTRA, 300, None, 0)]


def test_given_a_source_that_has_deleted_what_was_never_copied_then_it_is_not_judged(mirrored: MirroredTopic) -> None:
    """As MirrorMaker 2 goes on after retention: https://github.com/apache/kafka/pull/22248."""
    written = mirrored.create(records(300))
    mirrored.create_remote()
    mirrored.produce_remote([*written[:100], *written[200:]])
    delete_records(mirrored.source, mirrored.name, before=200)

    report = audited(mirrored)

    assert found(report) == [(0, Kind.UNVERIFIABLE, 100, None, 0)]
    assert (report.exit_code(), report.equal) == (1, 100)


def test_given_a_copy_that_never_began_then_everything_is_missing(mirrored: MirroredTopic) -> None:
    """https://github.com/strimzi/strimzi-kafka-operator/issues/3375."""
    mirrored.create(records(50))
    mirrored.create_remote()

    assert found(audited(mirrored)) == [(0, Kind.MISSING, 50, 0, None)]


def test_given_a_target_that_is_late_then_its_records_are_awaited_while_others_come(mirrored: MirroredTopic) -> None:
    written = mirrored.create(records(200))
    mirrored.create_remote()
    mirrored.produce_remote(written[:50])

    def catch_up() -> None:
        mirrored.produce(records(20, start=200))
        mirrored.produce_remote([*written[50:], *records(10, start=200)])

    late = Timer(1.0, catch_up)
    late.start()
    report = audited(mirrored, wait_seconds=60)
    late.join()

    # What the source got since is compared too, as far as the target has it.
    assert (report.verdict, 200 <= report.equal <= 210) == (Verdict.EQUAL, True)


def test_given_a_busy_source_and_an_extra_record_at_the_end_of_the_target_then_the_audit_ends(
    mirrored: MirroredTopic,
) -> None:
    written = mirrored.create(records(100))
    copied_by_hand(mirrored, [*written, Record(value=b"foreign")])
    stop = Event()

    def write() -> None:
        number = 100
        while not stop.is_set():
            mirrored.produce(records(10, start=number))
            number += 10

    writer = Thread(target=write)
    try:
        report = audited(mirrored, on_plan=lambda _: writer.start())
    finally:
        stop.set()
        writer.join()

    assert found(report) == [(0, Kind.EXTRA, 1, None, 100)]


def test_given_a_time_then_only_newer_records_are_compared(mirrored: MirroredTopic) -> None:
    """A record a second; two are missing, one of them before that time."""
    copied_by_hand(mirrored, mirrored.create(records(1_000)), lambda r: [*r[:100], *r[101:800], *r[801:]])

    report = audited(mirrored, since=records(1, start=500)[0].timestamp_ms)

    assert found(report) == [(0, Kind.MISSING, 1, 800, None)]
    assert report.equal == 499


def test_given_a_header_that_a_replicator_adds_then_it_can_be_ignored(mirrored: MirroredTopic) -> None:
    def add(written: _Records) -> _Records:
        return [replace(each, headers=(*each.headers, ("__replicator_id", b"7"))) for each in [*written, written[50]]]

    copied_by_hand(mirrored, mirrored.create(records(100)), add)

    seen, ignored = audited(mirrored), audited(mirrored, ignored_headers=("__replicator_id",))

    assert {(each.kind, each.parts) for each in seen.partitions[0].findings} >= {(Kind.CHANGED, ("headers",))}
    assert found(ignored) == [(0, Kind.REPEATED, 1, 50, 100)]


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        (["--topics", "no-such-topic"], 1, "Nothing to compare: no selected topic of the source has a copy"),
        (["--topics", "no-such-topic, no-other"], 1, "No topic of the source matches --topics"),
        (["--topics", "(["], 2, "has a [ without a ]"),
        (["--html", "no-such-folder/audit.html"], 2, "no-such-folder is no folder that you may write to"),
        (["--topics", "none", "--pair", "no-such-topic=neither"], 1, "topic no-such-topic does not exist"),
        (["--topics", "none", "--pair", "orders"], 2, "--pair orders is no pair of topics"),
        (["--since", "yesterday"], 2, "yesterday is neither an interval nor a time"),
        (["--client.config", "no-such-file"], 2, "no-such-file cannot be read"),
    ],
)
def test_given_nothing_to_compare_or_a_wrong_option_then_that_is_said(
    mirrored: MirroredTopic, words: list[str], code: int, sentence: str
) -> None:
    said = CliRunner().invoke(app, [*brokers_of(mirrored), *words])

    assert (said.exit_code, sentence in said.output) == (code, True), said.output


def test_given_other_partitions_and_replaced_timestamps_then_these_are_not_compared(mirrored: MirroredTopic) -> None:
    written = mirrored.create(records(100))
    mirrored.create_remote(partitions=2, configs={"message.timestamp.type": "LogAppendTime"})
    mirrored.produce_remote([replace(each, partition=int((each.key or b"0")[4:]) % 2) for each in written])

    (report,) = audited(mirrored).partitions

    assert (report.verdict, report.equal, report.times_compared) == (Verdict.EQUAL, 100, False)


def test_given_a_copy_with_another_retention_then_the_difference_is_said_and_counts_with_strict(
    mirrored: MirroredTopic,
) -> None:
    written = mirrored.create(records(10), configs={"retention.ms": "-1", "cleanup.policy": "compact,delete"})
    # Longer than the records are old, which the broker would remove.
    create_topic(mirrored.target, mirrored.remote, configs={"retention.ms": "999999999999"})
    mirrored.produce_remote(written)

    report = audited(mirrored)

    assert sorted((each.topic, each.what, each.source, each.target) for each in report.differences) == [
        (mirrored.remote, "cleanup.policy", "compact,delete", "delete"),
        (mirrored.remote, "retention.ms", "-1", "999999999999"),
    ]
    assert (report.exit_code(), report.exit_code(strict=True)) == (0, 3)


def test_given_two_topics_that_are_copied_into_one_then_each_is_judged_and_the_other_is_not(
    mirrored: MirroredTopic,
) -> None:
    ours = mirrored.create(records(500))
    other = f"{mirrored.name}-other"
    create_topic(mirrored.source, other)
    theirs = produce(mirrored.source, other, records(300, start=10_000))
    mirrored.create_remote()
    for place in range(5):
        mirrored.produce_remote([*ours[place * 100 : place * 100 + 99], *theirs[place * 60 : place * 60 + 60]])

    report = audited(mirrored, named=tuple(TopicPair(each, mirrored.remote) for each in (mirrored.name, other)))

    assert [(each.source.topic, each.equal, each.others) for each in report.partitions] == [
        (mirrored.name, 495, 300),
        (other, 300, 495),
    ]
    assert found(report) == [(0, Kind.MISSING, 1, 99 + 100 * place, None) for place in range(5)]


class StoppedError(Exception):
    """Ends an audit; a KeyboardInterrupt that no signal sent would end the worker of the tests, too."""


def interrupted(mirrored: MirroredTopic, journal: Path, **options: Any) -> None:
    """An audit that is stopped once it has noted how far it is."""

    def stop(_: int) -> None:
        if journal.read_bytes().count(b"\n") > 1:
            raise StoppedError

    with pytest.raises(StoppedError):
        audited(mirrored, resume=journal, on_read=stop, **options)


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to continue from; places are noted in it at once."""
    monkeypatch.setattr(partition, "_NOTE_SECONDS", 0.0)
    monkeypatch.setattr(log, "CHUNK_BYTES", 16 * 1024)
    return tmp_path / "audit.journal"


def copied_in_two_partitions(mirrored: MirroredTopic, change: Callable[[_Records], _Records] = list) -> None:
    mirrored.create(partitions=2)
    written = [*records(900), *records(900, partition=1, start=5_000)]
    # Small batches, so that a log is not read at once.
    written = mirrored.produce(written, batch_num_messages=50)
    mirrored.create_remote(partitions=2)
    mirrored.produce_remote(change(written), batch_num_messages=40)


def test_given_an_audit_that_was_interrupted_then_it_continues_where_it_was(
    mirrored: MirroredTopic, journal: Path
) -> None:
    copied_in_two_partitions(mirrored, lambda r: [*r[:880], *r[881:1_790], *r[1_791:]])
    interrupted(mirrored, journal)
    jobs: list[AuditJob] = []

    report = audited(mirrored, resume=journal, on_plan=jobs.append)

    assert jobs[0].offsets < 1_800
    assert found(report) == [(0, Kind.MISSING, 1, 880, None), (1, Kind.MISSING, 1, 890, None)]
    assert [(each.equal, each.source_range and each.source_range.first) for each in report.partitions] == [(899, 0)] * 2
    assert not journal.exists()


def test_given_topics_that_were_created_again_meanwhile_then_they_are_compared_as_a_whole(
    mirrored: MirroredTopic, journal: Path
) -> None:
    copied_in_two_partitions(mirrored)
    interrupted(mirrored, journal)
    delete_topic(mirrored.target, mirrored.remote)
    mirrored.create_remote(partitions=2)
    jobs: list[AuditJob] = []

    report = audited(mirrored, resume=journal, on_plan=jobs.append)

    assert jobs[0].offsets == 1_800
    assert report.counts == {Kind.MISSING: 1_800}


def test_given_the_journal_of_another_audit_then_that_is_an_error_and_the_file_stays(
    mirrored: MirroredTopic, journal: Path
) -> None:
    copied_in_two_partitions(mirrored)
    interrupted(mirrored, journal)
    before = journal.read_bytes()

    with pytest.raises(ConfigurationError, match="other options"):
        audited(mirrored, resume=journal, read_committed=False)

    assert journal.read_bytes() == before


@pytest.mark.parametrize("content", [b"# notes\n", b"{}\n", b"\xff\x00"])
def test_given_a_file_of_something_else_then_it_is_not_written_to(
    mirrored: MirroredTopic, tmp_path: Path, content: bytes
) -> None:
    copied_in_two_partitions(mirrored)
    (tmp_path / "notes").write_bytes(content)

    with pytest.raises(ConfigurationError, match="not the file of an audit"):
        audited(mirrored, resume=tmp_path / "notes")

    assert (tmp_path / "notes").read_bytes() == content


def sampled(mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch) -> AuditReport:
    """An audit of a tenth."""
    monkeypatch.setattr(sampling, "_FEWEST", 20)
    return audited(mirrored, sample=Sample(0.1, 1))


def shuffled(written: _Records) -> _Records:
    """Timestamps out of order, as those of many producers."""
    return [
        replace(each, timestamp_ms=(each.timestamp_ms or 0) + (place * 7_919) % 90_000)
        for place, each in enumerate(written)
    ]


@pytest.mark.parametrize("times", ["as written", "out of order", "replaced"])
def test_given_a_copy_without_a_fault_then_a_sample_reads_a_part_and_says_so(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch, times: str
) -> None:
    written = records(20_000)
    written = mirrored.create(shuffled(written) if times == "out of order" else written)
    mirrored.create_remote(configs={"message.timestamp.type": "LogAppendTime"} if times == "replaced" else None)
    mirrored.produce_remote(written, linger_ms=20)

    report = sampled(mirrored, monkeypatch)

    (partition,) = report.partitions
    assert (report.verdict, report.exit_code()) == (Verdict.EQUAL, 0)
    assert 1_000 < partition.equal <= 2_000
    assert len(partition.sampled) == 5
    assert any("only" in each and "nothing is known of the others" in each for each in remarks(report))
    assert sentence(report).startswith("Right in the sample: ")


def test_given_a_fault_at_the_end_then_a_sample_is_followed_by_the_comparison_of_all(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_by_hand(mirrored, mirrored.create(records(3_000)), lambda r: [*r[:10], *r[11:2_990], *r[2_991:]])

    report = sampled(mirrored, monkeypatch)

    assert found(report) == [(0, Kind.MISSING, 1, 10, None), (0, Kind.MISSING, 1, 2_990, None)]
    assert report.partitions[0].sampled == ()


def test_given_a_fault_between_the_ranges_then_a_sample_does_not_claim_to_have_seen_it(
    mirrored: MirroredTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied_by_hand(mirrored, mirrored.create(records(3_000)), lambda r: [*r[:1], *r[2:]])

    report = sampled(mirrored, monkeypatch)

    (partition,) = report.partitions
    assert partition.verdict is Verdict.EQUAL
    assert all(each.first > 1 for each in partition.sampled)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        # mirrormaker_topic_rename#5 and brooklin#665: headers are not copied.
        (lambda each: replace(each, headers=()), "headers"),
        # kafka#1466: timestamps of the copy, not of the record.
        (lambda each: replace(each, timestamp_ms=each.timestamp_ms + 60_000), "timestamp"),
    ],
    ids=["headers", "timestamps"],
)
def test_given_a_replicator_that_changes_every_record_then_that_is_one_finding_however_many_there_are(
    mirrored: MirroredTopic, change: Callable[[Record], Record], part: str
) -> None:
    copied_by_hand(mirrored, mirrored.create(records(20_000)), lambda r: list(map(change, r)))

    report = audited(mirrored)

    assert found(report) == [(0, Kind.CHANGED, 20_000, 0, 0)]
    assert report.partitions[0].findings[0].parts == (part,)


def test_given_more_faults_than_fit_into_memory_then_a_record_that_comes_later_is_not_called_missing(
    mirrored: MirroredTopic,
) -> None:
    def again(written: _Records) -> _Records:
        return [*written[:20_000], *written[20_001:], Record(value=b"foreign"), *written]

    copied_by_hand(mirrored, mirrored.create(records(30_000, size=10)), again)

    report = audited(mirrored, memory_bytes=1)

    assert report.verdict is Verdict.WRONG
    assert Kind.MISSING not in report.counts
    assert (0, Kind.REORDERED, 1, 20_000, 50_000) in found(report)
    assert "there are more faults than counted" in report.partitions[0].why
    assert "Compare with a larger --memory." in ways_on(report)


def test_given_several_possible_copies_then_the_topic_is_not_verified_and_the_rest_is_compared(
    mirrored: MirroredTopic,
) -> None:
    copied_by_hand(mirrored, mirrored.create(records(10)))
    create_topic(mirrored.target, f"X.{mirrored.name}")

    report = audited(mirrored)

    assert report.exit_code() == 1
    assert f"several topics may be the copy: A.{mirrored.name}, X.{mirrored.name}" in report.partitions[0].why


def test_given_the_same_cluster_twice_then_a_topic_is_not_compared_with_itself(mirrored: MirroredTopic) -> None:
    mirrored.create(records(10))
    here = connection_to("source", mirrored.source.bootstrap_servers, None)

    report = audit(here, here, AuditOptions(lambda topic: topic == mirrored.name))

    assert (report.exit_code(), report.equal) == (1, 0)
    assert report.partitions[0].why == "both sides are the same topic of the same cluster"


def test_given_an_audit_of_the_last_hour_that_is_continued_later_then_it_is_still_of_the_same_hour(
    mirrored: MirroredTopic, journal: Path
) -> None:
    copied_in_two_partitions(mirrored)
    began = records(1)[0].timestamp_ms or 0
    interrupted(mirrored, journal, since=began)

    report = audited(mirrored, resume=journal, since=began + 500_000)

    assert (report.since, report.equal) == (began, 1_800)


def test_given_several_processes_then_progress_is_told_of_all_of_them(mirrored: MirroredTopic) -> None:
    copied_in_two_partitions(mirrored)
    read: list[int] = []

    report = audited(mirrored, processes=2, on_read=read.append)

    assert (report.equal, sum(read)) == (1_800, 1_800)


def test_given_a_replicator_that_does_not_keep_timestamps_then_they_can_be_ignored(mirrored: MirroredTopic) -> None:
    def now(written: _Records) -> _Records:
        other = changed(700, value=b"other")(written)
        return [replace(each, timestamp_ms=1_600_000_000_000 + place) for place, each in enumerate(other)]

    copied_by_hand(mirrored, mirrored.create(records(3_000)), now)

    report = audited(mirrored, ignore_times=True)

    assert (found(report), report.equal) == ([(0, Kind.CHANGED, 1, 700, 700)], 2_999)
    assert report.partitions[0].findings[0].parts == ("value",)


def test_given_offsets_that_are_to_be_the_same_then_records_at_others_are_wrong(mirrored: MirroredTopic) -> None:
    def one_later(written: _Records) -> _Records:
        return [*written[:700], Record(value=b"foreign"), *written[700:]]

    copied_by_hand(mirrored, mirrored.create(records(3_000)), one_later)

    for sample in (None, Sample(0.02, 7)):
        report = audited(mirrored, same_offsets=True, sample=sample)

        assert found(report) == [(0, Kind.EXTRA, 1, None, 700), (0, Kind.MOVED, 2_300, 700, 701)]
        assert (report.equal, report.exit_code()) == (3_000, 3)
        assert "2,300 moved" in sentence(report)


def test_given_a_copy_with_other_partitions_then_its_offsets_cannot_be_the_same(mirrored: MirroredTopic) -> None:
    mirrored.create(records(10))
    mirrored.create_remote(partitions=2)

    (report,) = audited(mirrored, same_offsets=True).partitions

    assert "the copy has other partitions" in report.why
