"""What benches and campaigns write to real brokers is as old as they were asked for."""

import time
from dataclasses import replace

import pytest
from confluent_kafka.admin import ConfigResource, ResourceType

from tests.support.clusters import KafkaPair
from tests.support.kafka import admin, consume, create_topic
from tests.support.names import unique_name
from tools.bench.clusters.topics import Topics
from tools.bench.workloads.loading import write
from tools.bench.workloads.workload import WORKLOADS
from tools.faults.records.input import Input

pytestmark = pytest.mark.integration

_PARTITIONS = 2
_DAY_MS = 86_400_000
#: What may pass between writing and looking.
_MINUTE_MS = 60_000


@pytest.mark.parametrize("days", [0, 30])
def test_a_workload_has_the_age_asked_for_and_is_kept_whatever_that_is(kafka_pair: KafkaPair, days: int) -> None:
    source = kafka_pair.source
    workload = replace(WORKLOADS[4].scaled(1_000), name=unique_name("aged")).aged(days * 86_400.0)
    Topics(source.bootstrap_servers).create(workload.name, _PARTITIONS)

    write(source.bootstrap_servers, workload, _PARTITIONS)
    now = time.time() * 1000

    ages = [now - (record.timestamp_ms or 0) for record in consume(source, workload.name)]
    assert len(ages) == 1_000
    assert all(days * _DAY_MS <= age < days * _DAY_MS + _MINUTE_MS for age in ages)

    resource = ConfigResource(ResourceType.TOPIC, workload.name)
    assert admin(source).describe_configs([resource])[resource].result(10)["retention.ms"].value == "-1"


def test_the_input_of_a_campaign_has_the_age_asked_for(kafka_pair: KafkaPair) -> None:
    days = 2
    source, name = kafka_pair.source, unique_name("input")
    create_topic(source, name, partitions=_PARTITIONS)

    with Input(source.bootstrap_servers, {name: _PARTITIONS}, rate=1.0, seed=1, age_seconds=days * 86_400.0) as written:
        written.burst(200)
        written.finish()
    now = time.time() * 1000

    ages = [now - (record.timestamp_ms or 0) for record in consume(source, name)]
    assert len(ages) >= 200
    assert all(days * _DAY_MS <= age < days * _DAY_MS + _MINUTE_MS for age in ages)
