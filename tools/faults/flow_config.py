"""The flow of a campaign as a properties file: small requests and short leases, so that faults hit during a copy."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

SOURCE, TARGET = "source", "target"
FLOW = f"{SOURCE}->{TARGET}"
#: DefaultReplicationPolicy's prefix of topic names.
TARGET_PREFIX = f"{SOURCE}."
#: Topics that are compared at the end, and one that is deleted during the campaign.
INPUT_PREFIX, DOOMED_PREFIX = "input-", "doomed-"


def properties(
    source_bootstrap: str, target_bootstrap: str, ledger_url: str, *, brokers: int, own: Mapping[str, str]
) -> dict[str, str]:
    """Return the whole file, as keys and values.

    Args:
        own: further properties, or other values.
    """
    internal = ("offset-syncs.topic", "checkpoints.topic", "heartbeats.topic", "offset.storage")
    return {
        "clusters": f"{SOURCE}, {TARGET}",
        f"{SOURCE}.bootstrap.servers": source_bootstrap,
        f"{TARGET}.bootstrap.servers": target_bootstrap,
        f"{FLOW}.enabled": "true",
        f"{FLOW}.topics": f"{INPUT_PREFIX}.*, {DOOMED_PREFIX}.*",
        "replication.factor": str(brokers),
        **{f"{name}.replication.factor": str(brokers) for name in internal},
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "sync.topic.acls.enabled": "false",
        "tasks.max": "2",
        # A copy of a second is a long one here.
        "offset.flush.interval.ms": "500",
        "mirror.run.lease.seconds": "3",
        "mirror.retry.max.seconds": "60",
        # Some batches are copied unchanged, others are gathered, and both are small: there is always one in flight.
        "mirror.fetch.max.bytes": str(64 * 1024),
        "mirror.fetch.partition.max.bytes": str(8 * 1024),
        "mirror.batch.passthrough.min.bytes": str(4 * 1024),
        "mirror.batch.max.bytes": str(8 * 1024),
        "mirror.ledger.url": ledger_url,
        **own,
    }


def write(path: Path, settings: Mapping[str, str]) -> Path:
    """Write a properties file. The keys and values used here need no escapes."""
    path.write_text("".join(f"{name} = {value}\n" for name, value in settings.items()), encoding="utf-8")
    return path
