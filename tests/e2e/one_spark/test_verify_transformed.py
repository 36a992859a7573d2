"""Verification with a real Spark: what it compares as it is, and what transforms make again, against the target."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import mirror_lib.features.verify.job
from mirror_lib.features.verify.findings import PartitionVerdict, Verdict
from mirror_lib.features.verify.job_arguments import VerifyArguments
from mirror_lib.features.verify.model import VerifyMode
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.run import VerifyOptions, verify_flow
from mirror_lib.features.verify.tables import Verifications
from mirror_lib.topology.names import TopicPartition
from spark_jobs.replicate import copy_with
from spark_jobs.verify import verify_with
from tests.e2e.one_spark.conftest import mask, payments, transform, transforms
from tests.support.clusters import KafkaPair
from tests.support.flows import Flow, pair_flow
from tests.support.kafka import Record, create_topic, produce
from tests.support.names import unique_name
from tests.support.verifying import tamper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NUMBERS = [Record(value=b"%d" % number) for number in range(100)]
#: Topics, by what becomes of them.
TOPICS: Mapping[str, list[Record]] = {
    "masked": [*payments(3000), *payments(1000, partition=1)],
    "plain": payments(100),
    # One is left out.
    "doubled": [replace(each, value=b"no number") if place == 37 else each for place, each in enumerate(NUMBERS)],
    "numbers": NUMBERS[:16],
    "several": [Record(value=b",".join([b"%d" % number] * (number % 4))) for number in range(400)],
    "routed": [*payments(900), *payments(300, partition=1)],
}
#: A record without parts is dropped.
SEVERAL = """\
SELECT concat(part, '-', place) AS value FROM records
LATERAL VIEW posexplode(split(value, ',')) AS place, part WHERE value <> ''
"""


def settings_of(prefix: str, **changed: dict[str, str]) -> dict[str, str]:
    """Settings of the flow with all topics, of which some transforms were changed since."""
    number = {"decode__value": "string"}
    usual = {
        "masked": mask("masked", f"{prefix}-masked"),
        "doubled": transform("doubled", f"{prefix}-doubled", **number, value="cast(value AS BIGINT) * 2"),
        "numbers": transform("numbers", f"{prefix}-numbers", **number, value="value"),
        "several": transform("several", f"{prefix}-several", **number, sql__file="several.sql"),
        # All go to one partition, whichever they are from; what is Italian stays.
        "routed": transform(
            "routed",
            f"{prefix}-routed",
            decode__value="json",
            schema__value="id BIGINT, country STRING, card STRING",
            value="struct(value.id AS id, '****' AS card)",
            topic=f"CASE WHEN value.country <> 'IT' THEN '{prefix}.elsewhere' END",
            partition="CASE WHEN value.country <> 'IT' THEN 0 END",
        ),
    }
    return {**transforms(*{**usual, **changed}.values()), "mirror.poison.policy": "skip"}


@dataclass(frozen=True, slots=True)
class Story:
    """A copy and its verifications, in this order."""

    prefix: str
    written: int
    skipped: int
    equal: VerifyReport
    #: By other transforms than those of the copy.
    otherwise: VerifyReport

    def verdicts(self, report: VerifyReport, topic: str) -> list[PartitionVerdict]:
        """Those of one topic."""
        return [each for each in report.verdicts if each.source.topic == f"{self.prefix}-{topic}"]

    def only(self, report: VerifyReport, topic: str) -> PartitionVerdict:
        """That of a topic with one partition, or of the first one."""
        return min(self.verdicts(report, topic), key=lambda each: each.source.partition)


@pytest.fixture(scope="module")
def story(spark: SparkSession, kafka_pair: KafkaPair, tmp_path_factory: pytest.TempPathFactory) -> Story:
    prefix, folder = unique_name("verified"), tmp_path_factory.mktemp("verified")
    for name, given in TOPICS.items():
        partitions = 1 + max(record.partition for record in given)
        create_topic(kafka_pair.source, f"{prefix}-{name}", partitions=partitions)
        produce(kafka_pair.source, f"{prefix}-{name}", given)

    def a_flow(**changed: dict[str, str]) -> Flow:
        return pair_flow(folder, kafka_pair, topics=f"{prefix}-.*", settings=settings_of(prefix, **changed))

    def verified(flow: Flow, *topics: str) -> VerifyReport:
        options = VerifyOptions(topics=topics)
        return verify_flow(flow.config, ledger=flow.ledger, make_runner=lambda _: verify_with(spark), options=options)

    (folder / "several.sql").write_text(SEVERAL)
    flow = a_flow()
    report = flow.run(runner=copy_with(spark))
    equal = verified(flow)
    # The number 11 cannot be taken any more; Spark does not say which one it is.
    smaller = {"decode__value": "string", "value": "cast(value AS BIGINT) + 0 * (1 DIV (11 - value))"}
    other = a_flow(
        numbers=transform("numbers", f"{prefix}-numbers", **smaller),
        doubled=transform("doubled", f"{prefix}-doubled", value="uuid()"),
    )
    otherwise = verified(other, *(f"{prefix}-{name}" for name in ("numbers", "doubled")))
    return Story(prefix, report.records, report.skipped, equal, otherwise)


def test_given_transformed_copies_when_verified_then_all_are_equal_whatever_their_transforms_did(story: Story) -> None:
    assert story.equal.exit_code == 0, story.equal.to_dict()
    by_topic = {
        name: sum(each.records for each in story.verdicts(story.equal, name)) for name in TOPICS if name != "routed"
    }
    assert by_topic == {
        "masked": 2000 + 667,
        "plain": 100,
        "doubled": 99,
        "numbers": 16,
        "several": 100 + 200 + 300,
    }
    assert story.equal.records == story.written == sum(by_topic.values()) + 1200
    assert len(story.equal.verdicts) == len(TOPICS) + 2


def test_given_a_record_that_was_left_out_when_verified_then_it_is_no_difference(story: Story) -> None:
    assert story.skipped == 1
    assert story.only(story.equal, "doubled").skipped == 1


def test_given_a_record_that_the_transform_cannot_take_any_more_when_verified_then_it_is_told_up_to_where(
    story: Story,
) -> None:
    verdict = story.only(story.otherwise, "numbers")

    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "transform"), story.otherwise.to_dict()
    assert "offset 11" in (verdict.detail or "")
    assert verdict.records <= 11


def test_given_chance_in_a_transform_when_verified_then_nothing_can_be_said(story: Story) -> None:
    verdict = story.only(story.otherwise, "doubled")

    assert (verdict.verdict, verdict.reason) == (Verdict.UNVERIFIABLE, "not-deterministic")
    assert "uuid()" in (verdict.detail or "")


def test_given_records_that_are_routed_when_verified_then_what_stands_elsewhere_is_compared_too(story: Story) -> None:
    """What differs there: tests/integration/features/verify/test_verify_routed.py."""
    (equal,) = story.equal.routed

    assert (equal.target, equal.records) == (TopicPartition(f"{story.prefix}.elsewhere", 0), 800)
    assert (equal.made, equal.standing, len(equal.sources)) == (800, 800, 2)


def test_given_topics_without_transforms_when_verified_by_the_job_then_its_reports_have_what_differs(
    spark: SparkSession, kafka_pair: KafkaPair, topic_name: str, tmp_path: Path
) -> None:
    other = f"{topic_name}-untouched"
    for name in (topic_name, other):
        create_topic(kafka_pair.source, name)
        produce(kafka_pair.source, name, payments(300))
    flow = pair_flow(tmp_path, kafka_pair, topics=f"{topic_name}, {other}")
    flow.run()
    tamper(kafka_pair, f"A.{topic_name}", lambda copy: copy[:100] + copy[101:])
    arguments = VerifyArguments(
        config=flow.path,
        flow="A->B",
        verification_id="by-spark",
        mode=VerifyMode.FULL,
        tasks=2,
        report=tmp_path / "report.json",
        html=tmp_path / "report.html",
    )

    code = mirror_lib.features.verify.job.main(arguments.command_line(), lambda _: verify_with(spark))

    assert code == 3
    report = json.loads((tmp_path / "report.json").read_text())
    assert [each["verdict"] for each in report["partitions"]] == ["different", "equal"]
    (difference,) = report["partitions"][0]["differences"]
    assert (difference["kind"], difference["source_offset"]) == ("missing", 100)
    assert [row.verdict for row in Verifications(flow.ledger).of_id("by-spark")] == ["different", "equal"]
    assert "missing" in (tmp_path / "report.html").read_text()
