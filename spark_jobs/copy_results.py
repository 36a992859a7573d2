"""The classes of a copy's results, one of each module, for `sealing.seal`. Only drivers import this."""

from __future__ import annotations

from mirror_lib.offsets import OffsetRun
from mirror_lib.planning import PartitionResult
from mirror_lib.records import LastRecord, TransactionCount
from mirror_lib.topology import TopicPartition

COPY_RESULTS = (PartitionResult, OffsetRun, LastRecord, TransactionCount, TopicPartition)
