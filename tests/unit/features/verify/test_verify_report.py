"""What a verification tells: partitions, exit codes, confidence, the page, and its way back from executors."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.cli.output import ConsoleOutput
from mirror_lib.features.verify.command import _show
from mirror_lib.features.verify.findings import (
    Difference,
    DifferenceKind,
    PartitionVerdict,
    RangeOutcome,
    RoutedDifference,
    RoutedVerdict,
    Stopped,
    Verdict,
)
from mirror_lib.features.verify.html import to_html
from mirror_lib.features.verify.job_arguments import VerifyArguments
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.features.verify.report import Confidence, VerifyReport
from mirror_lib.features.verify.result_rows import from_arrow, to_arrow
from mirror_lib.features.verify.run import rows_of
from mirror_lib.topology.names import TopicPartition

BEGAN = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
OUTCOME = RangeOutcome(
    source_first=0, source_next=10, target_first=0, target_next=10, complete=True, records=10, digest="ab" * 32
)
EQUAL = PartitionVerdict(
    source=TopicPartition("orders", 0),
    target=TopicPartition("A.orders", 0),
    verdict=Verdict.EQUAL,
    outcomes=(OUTCOME,),
)
DIFFERENT = replace(
    EQUAL,
    source=TopicPartition("<b>", 1),
    verdict=Verdict.DIFFERENT,
    outcomes=(replace(OUTCOME, difference_count=30),),
    differences=(Difference(DifferenceKind.ALTERED, 5, 6, ("value",), "00", "11"),),
)
SENT_TO = RoutedVerdict(
    target=TopicPartition("payments.de", 3),
    verdict=Verdict.EQUAL,
    sources=(TopicPartition("orders", 0), TopicPartition("<b>", 1)),
    records=7,
    made=7,
    standing=7,
)
SENT_AMISS = replace(
    SENT_TO,
    verdict=Verdict.DIFFERENT,
    detail="1 records are missing, 29 are <extra>.",
    difference_count=30,
    differences=(RoutedDifference(DifferenceKind.MISSING, TopicPartition("orders", 0), 4),),
)
SENT_NOWHERE = replace(SENT_TO, verdict=Verdict.UNVERIFIABLE, reason="budget", detail="it was used up.")
UNKNOWN = PartitionVerdict.impossible(
    TopicPartition("orders", 2), TopicPartition("A.orders", 2), "no-map", "there is no map."
)


def _report(*verdicts: PartitionVerdict, routed: tuple[RoutedVerdict, ...] = ()) -> VerifyReport:
    return VerifyReport(
        verification_id="v",
        flow="A->B",
        mode=VerifyMode.FULL,
        seed=0,
        started=BEGAN,
        finished=BEGAN,
        verdicts=verdicts,
        idle=2,
        routed=routed,
    )


def test_compacted_records_are_those_of_either_side_and_of_both() -> None:
    outcomes = (replace(OUTCOME, compacted_source=1, compacted_target=20), replace(OUTCOME, gone_on_both=300))

    assert replace(EQUAL, outcomes=outcomes).compacted_records == 321


def test_only_a_partition_that_is_equal_without_any_record_is_empty() -> None:
    outcome = replace(OUTCOME, records=0)
    empty = replace(EQUAL, outcomes=(outcome,))
    assert empty.is_empty
    for stopped in Stopped:
        assert not replace(empty, stopped=stopped).is_empty, stopped
    for found in ("records", "expired", "compacted_source", "compacted_target", "gone_on_both", "skipped", "pending"):
        assert not replace(empty, outcomes=(replace(outcome, **{found: 1}),)).is_empty, found
    assert not replace(empty, verdict=Verdict.UNVERIFIABLE).is_empty


def test_the_worst_verdict_decides() -> None:
    for verdicts, code, beginning in (
        ((), 0, "Nothing to compare"),
        ((EQUAL,), 0, "EQUAL: 10 records"),
        ((EQUAL, UNKNOWN), 1, "NOT VERIFIED: 1 "),
        ((EQUAL, UNKNOWN, DIFFERENT), 3, "DIFFERENT: 30 differences in 1 "),
    ):
        report = _report(*verdicts)
        assert report.exit_code == code
        assert report.sentence.startswith(beginning)


def test_partitions_that_transforms_send_records_to_count_like_all_others() -> None:
    for routed, code, beginning in (
        (SENT_TO, 0, "EQUAL: 17 records in 1 partition (and 1 target partition of routes)"),
        (SENT_NOWHERE, 1, "NOT VERIFIED: 1 "),
        (SENT_AMISS, 3, "DIFFERENT: 30 differences in 1 "),
    ):
        report = _report(EQUAL, routed=(routed,))
        assert report.exit_code == code
        assert report.sentence.startswith(beginning)
        (told,) = report.to_dict()["routed"]
        assert (told["topic"], told["partition"], told["verdict"]) == ("payments.de", 3, routed.verdict.value)
        assert told["sources"] == [["orders", 0], ["<b>", 1]]
        assert len(told["differences"]) == len(routed.differences)


def test_the_page_lists_what_transforms_send_elsewhere() -> None:
    page = to_html(_report(EQUAL, routed=(SENT_AMISS,)))

    assert "payments.de" in page
    assert "29 are &lt;extra&gt;" in page
    assert "orders-0" in page
    assert "and 29 more" in page
    assert "of routes" not in to_html(_report(EQUAL))


def test_a_partition_whose_records_are_not_where_it_sent_them_is_not_verified_up_to_there() -> None:
    for routed, kept in (
        (SENT_TO, ["equal", "different"]),
        (SENT_AMISS, ["different", "different"]),
        (SENT_NOWHERE, ["unverifiable", "different"]),
        (replace(SENT_NOWHERE, lasting=True), ["equal", "different"]),
    ):
        rows = rows_of(_report(EQUAL, DIFFERENT, routed=(routed,)))
        assert [row.verdict for row in rows] == kept, routed
        assert {row.topic for row in rows} == {"orders", "<b>"}, routed


def test_an_end_by_a_budget_is_told() -> None:
    report = _report(replace(EQUAL, stopped=Stopped.BYTES))

    assert report.exit_code == 0
    assert "A budget stopped 1 partition before its end." in report.sentence
    assert report.verdicts[0].digest is None


def test_confidence_is_what_independent_draws_give() -> None:
    """Of 1,000 records of which one in a hundred differs, none shows with probability 0.99^1000."""
    confidence = Confidence(sampled=1_000, population=1_000_000, spans=2)

    assert confidence.of(0.01) == pytest.approx(1 - 0.99**1_000)
    assert confidence.of_blocks(0.5) == pytest.approx(0.75)
    assert confidence.of(confidence.share_found) == pytest.approx(0.95)
    # A sample of everything misses nothing.
    assert Confidence(sampled=10, population=10, spans=1).of(1e-9) == 1.0


@given(st.integers(1, 10**7), st.integers(1, 10**7))
def test_confidence_is_a_probability(sampled: int, more: int) -> None:
    confidence = Confidence(sampled, sampled + more, spans=-(-sampled // 1_000))

    assert 0 <= confidence.of(0.001) <= 1
    assert 0 < confidence.share_found < 1
    assert str(f"{sampled:,} of") in confidence.sentence


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.cells: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "td":
            self.cells.append(data)


def test_the_page_is_whole_needs_nothing_else_and_fits_light_and_dark() -> None:
    page, text = _Page(), to_html(_report(EQUAL, DIFFERENT, UNKNOWN))

    page.feed(text)

    assert page.open == []
    assert page.addresses == []
    assert "prefers-color-scheme: dark" in text
    assert {"orders", "<b>", "altered", "value", "and 29 more", "there is no map."} <= set(page.cells)


def test_verdicts_come_back_from_executors_as_they_were() -> None:
    assert from_arrow([to_arrow([EQUAL, DIFFERENT]), to_arrow([UNKNOWN])]) == [EQUAL, DIFFERENT, UNKNOWN]


def test_the_jobs_arguments_survive_a_command_line() -> None:
    least = VerifyArguments(config=Path("/m.properties"), flow="A->B")
    every = replace(
        least,
        verification_id="v",
        mode=VerifyMode.SAMPLE,
        topics=("-a.*", "b"),
        tasks=3,
        max_bytes=5,
        max_seconds=1.5,
        seed=9,
        report=Path("/r.json"),
        html=Path("/r.html"),
    )

    for arguments in (least, every):
        assert VerifyArguments.parse(arguments.command_line()) == arguments


def test_the_console_says_how_many_partitions_its_table_lacks(capsys: pytest.CaptureFixture[str]) -> None:
    output = ConsoleOutput()
    _show(output, _report(EQUAL))

    assert "2 more partitions had no records to compare." in capsys.readouterr().out
