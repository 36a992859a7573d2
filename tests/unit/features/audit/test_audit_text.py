"""What of an audit has a place on a console."""

from __future__ import annotations

from mirror_lib.features.audit.findings import Finding, Kind, Offsets
from mirror_lib.features.audit.model import AuditReport, PartitionReport, Verdict
from mirror_lib.features.audit.text import FINDING_COLUMNS, finding_rows, partition_rows, some_of_each
from mirror_lib.topology.names import TopicPartition


def report_of(topic: str, number: int, *findings: Finding, why: str = "") -> PartitionReport:
    verdict = Verdict.WRONG if findings else Verdict.EQUAL
    place = TopicPartition(topic, number)
    return PartitionReport(place, TopicPartition(f"A.{topic}", number), verdict, equal=10, findings=findings, why=why)


def finding(kind: Kind, offset: int) -> Finding:
    return Finding(kind, 1, Offsets(offset, offset, None, None), None)


def test_partitions_without_a_fault_are_one_row_of_their_topic_and_others_have_their_own() -> None:
    report = AuditReport(
        (
            *(report_of("orders", number) for number in range(3)),
            report_of("orders", 3, finding(Kind.MISSING, 5)),
            report_of("payments", 0),
        )
    )

    rows = partition_rows(report, by_topic=True)

    assert [row[:5] for row in rows] == [
        ("orders", 3, "A.orders", "wrong", 10),
        ("orders", "3 partitions", "A.orders", "equal", 30),
        ("payments", 0, "A.payments", "equal", 10),
    ]
    assert len(partition_rows(report)) == 5


def test_many_findings_of_one_kind_leave_room_for_the_others() -> None:
    many = [finding(Kind.REPEATED, offset) for offset in range(0, 400, 2)]
    report = AuditReport((report_of("orders", 0, *many, finding(Kind.MISSING, 999)), report_of("audits", 0, many[0])))
    rows = finding_rows(report)

    shown = some_of_each(rows, 10)

    kinds = [(row[0], row[FINDING_COLUMNS.index("kind")]) for row in shown[:10]]
    assert kinds == [("audits", "repeated"), *[("orders", "repeated")] * 8, ("orders", "missing")]
    assert sorted(shown, key=repr) == sorted(rows, key=repr)
    assert some_of_each(rows[:5], 10) == rows[:5]
