"""The replica that a partition is read from: a follower in the reader's rack if the leader names one (KIP-392).

As in Java's consumer (`AbstractFetch`, `SubscriptionState.preferredReadReplica`): a leader that receives a rack may
return a replica instead of records; that replica is read until `metadata.max.age.ms` have passed, and then the leader
again. But only records are accepted from a follower. It may lag, and records that it lacks are not lost: only the
leader decides that an offset is out of range, that the log diverges, or that there are no more records. So after any
other response the partition is read from its leader for as long as from a follower, without a rack in the request:
the leader would name the same follower again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import NamedTuple

from mirror_lib.cluster.protocol.fetch import FetchedPartition
from mirror_lib.records.validation import sound_batches
from mirror_lib.topology.names import TopicPartition

_log = logging.getLogger(__name__)
#: How many empty responses in a row a follower may give although it should have records: each takes half a second.
_PATIENCE = 3


class Place(NamedTuple):
    """The replica to read from: a node, and the rack in the request."""

    node: int
    #: Rack in the request to a leader, so that it may name a replica there; "" requests the leader's own records.
    rack: str = ""
    follower: bool = False


class ReadReplicas:
    """The replicas that the partitions of a task are read from."""

    def __init__(self, rack: str, max_age_seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Args:
        rack: the reader's rack; "" reads from leaders only.
        max_age_seconds: how long a choice is valid.
        clock: monotonic seconds.
        """
        self._rack = rack
        self._max_age = max_age_seconds
        self._clock = clock
        self._followers: dict[TopicPartition, tuple[int, float]] = {}
        self._leaders_until: dict[TopicPartition, float] = {}
        self._silences: dict[TopicPartition, int] = {}

    def place(self, partition: TopicPartition, leader: int) -> Place:
        """The replica for the next request of a partition."""
        if not self._rack:
            return Place(leader)
        now = self._clock()
        follower, until = self._followers.get(partition, (leader, now))
        if follower != leader and now < until:
            return Place(follower, follower=True)
        return Place(leader, "" if now < self._leaders_until.get(partition, now) else self._rack)

    def takes(self, place: Place, response: FetchedPartition, *, readable_to: int, end: int, alone: bool) -> bool:
        """Return whether a response is accepted; if not, another replica is asked next.

        Args:
            place: the replica that sent it.
            response: response for one partition.
            readable_to: the offset up to which the replica lets consumers read.
            end: the offset to reach.
            alone: the request had no other partition, so the response must hold a batch if there is one.
        """
        partition = TopicPartition(response.topic, response.partition)
        if not place.follower:
            return not self._switch_to_preferred(partition, place, response)
        if response.error_code:
            return self._leave(partition, place, f"it returns error code {response.error_code}")
        if response.diverging_end is not None:
            return self._leave(partition, place, "it does not have that leader epoch yet, or is lagging")
        if not len(response.records):
            return self._silent(partition, place, behind=readable_to < end, alone=alone)
        batches = sound_batches(response.records)
        if batches is None or (alone and not batches):
            return self._leave(partition, place, "it returns malformed data")
        self._silences.pop(partition, None)
        return True

    def leave_follower(self, place: Place, partition: TopicPartition) -> bool:
        """Return True if a follower did not respond: the leader is asked next."""
        if place.follower:
            self._leave(partition, place, "it does not respond")
        return place.follower

    def _switch_to_preferred(self, partition: TopicPartition, place: Place, response: FetchedPartition) -> bool:
        follower = response.preferred_replica
        if not place.rack or response.error_code or follower is None or follower == place.node:
            return False
        self._followers[partition] = follower, self._clock() + self._max_age
        _log.debug("%s-%d: fetching from broker %d in rack %s", *partition, follower, place.rack)
        return True

    def _silent(self, partition: TopicPartition, place: Place, *, behind: bool, alone: bool) -> bool:
        """Handle an empty response: other partitions may have used up the response size."""
        if not behind:
            return not alone or self._leave(partition, place, "it has no more records")
        self._silences[partition] = self._silences.get(partition, 0) + 1
        if self._silences[partition] >= _PATIENCE:
            self._leave(partition, place, "it is lagging")
        return False

    def _leave(self, partition: TopicPartition, place: Place, why: str) -> bool:
        """Return to the leader; always False."""
        self._followers.pop(partition, None)
        self._silences.pop(partition, None)
        self._leaders_until[partition] = self._clock() + self._max_age
        _log.info("%s-%d: fetching from its leader instead of broker %d: %s", *partition, place.node, why)
        return False
