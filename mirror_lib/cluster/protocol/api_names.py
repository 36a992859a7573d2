"""Names of Kafka's APIs by their keys, and the settings of a flow that do without one."""

from __future__ import annotations

from typing import NamedTuple


class Api(NamedTuple):
    """One API: its name in Kafka's protocol guide, and what to set if a cluster does not have it."""

    name: str
    without: str = ""


_NO_GROUPS = (
    "Set sync.group.offsets.enabled=false and emit.checkpoints.enabled=false to replicate without consumer groups."
)
_NO_ACLS = "Set sync.topic.acls.enabled=false to replicate without ACLs."
_NO_FENCING = "Set mirror.fencing=none to copy without transactional ids (docs/reliability.md)."
_NECESSARY = "This API is required: the cluster cannot be copied from or to."

#: The APIs that flows use.
APIS: dict[int, Api] = {
    0: Api("Produce", _NECESSARY),
    1: Api("Fetch", _NECESSARY),
    2: Api("ListOffsets", _NECESSARY),
    3: Api("Metadata", _NECESSARY),
    8: Api("OffsetCommit", _NO_GROUPS),
    9: Api("OffsetFetch", _NO_GROUPS),
    10: Api("FindCoordinator", f"{_NO_GROUPS} {_NO_FENCING}"),
    15: Api("DescribeGroups", _NO_GROUPS),
    16: Api("ListGroups", _NO_GROUPS),
    17: Api("SaslHandshake"),
    18: Api("ApiVersions"),
    19: Api("CreateTopics", "Create the target topics and the internal topics by hand."),
    20: Api("DeleteTopics"),
    21: Api("DeleteRecords"),
    22: Api("InitProducerId", "Exactly-once copies need idempotent producers: this API is required."),
    23: Api("OffsetForLeaderEpoch"),
    24: Api("AddPartitionsToTxn", _NO_FENCING),
    25: Api("AddOffsetsToTxn"),
    26: Api("EndTxn", _NO_FENCING),
    28: Api("TxnOffsetCommit"),
    29: Api("DescribeAcls", _NO_ACLS),
    30: Api("CreateAcls", _NO_ACLS),
    31: Api("DeleteAcls", _NO_ACLS),
    32: Api("DescribeConfigs", _NECESSARY),
    35: Api("DescribeLogDirs"),
    36: Api("SaslAuthenticate"),
    37: Api("CreatePartitions"),
    42: Api("DeleteGroups"),
    44: Api("IncrementalAlterConfigs", "Set sync.topic.configs.enabled=false."),
    47: Api("OffsetDelete"),
    60: Api("DescribeCluster"),
    61: Api("DescribeProducers"),
    65: Api("DescribeTransactions"),
    66: Api("ListTransactions"),
    69: Api("ConsumerGroupDescribe", _NO_GROUPS),
}


def api_name(key: int) -> str:
    """Return the name with the key, which tools such as kafka-broker-api-versions.sh show."""
    return f"{APIS[key].name} (API key {key})" if key in APIS else f"API key {key}"


def how_without(key: int) -> str:
    """Return the sentence about the setting that does without this API; empty if there is none."""
    return APIS[key].without if key in APIS else ""


#: What librdkafka's errors call the requests that it cannot send, and the key of one of them (`rdkafka_request.c`).
_BY_LIBRDKAFKA = {
    "Topic Admin API (KIP-4)": 19,
    "CreatePartitions": 37,
    "DescribeConfigs (KIP-133)": 32,
    "IncrementalAlterConfigs (KIP-339)": 44,
    "ACLs Admin API (KIP-140)": 30,
    "DeleteGroups": 42,
}


def key_in_librdkafka_text(text: str) -> int | None:
    """Return the key of the API that an error of librdkafka is about; None if it names none."""
    return next((key for name, key in _BY_LIBRDKAFKA.items() if name in text), None)
