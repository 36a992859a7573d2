"""Expiration of producer state on the target's brokers: read once per run, from one broker."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.cluster.admin.client import ClusterAdmin
from mirror_lib.errors import AuthorizationError
from mirror_lib.planning.model import ProducerMemory

_EXPIRATION = "producer.id.expiration.ms"
_VERIFICATION = "transaction.partition.verification.enable"


def producer_memory(admin: ClusterAdmin) -> ProducerMemory:
    """Read it from a broker of the target.

    Raises:
        MirrorError: the cluster did not respond in time.
    """
    try:
        configs = admin.broker_configs()
    except AuthorizationError:
        # Most users may not read a broker's configs. Kafka's defaults are a good guess, and the copy task checks
        # whether brokers are too old for them.
        return ProducerMemory(verifies_transactions=True)
    return memory_by(configs)


def memory_by(configs: Mapping[str, str | None]) -> ProducerMemory:
    """The values in a broker's configs. Brokers before Kafka 3.6 do not have the verification (KIP-890)."""
    expiration = configs.get(_EXPIRATION)
    memory = ProducerMemory(verifies_transactions=configs.get(_VERIFICATION) == "true")
    if expiration is None or not expiration.isdigit():
        return memory
    return ProducerMemory(int(expiration) / 1000, memory.verifies_transactions)
