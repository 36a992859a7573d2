"""Requests of a campaign about a cluster's topics, by ordinary clients that share no code with the copy.

Brokers die and leaders move meanwhile, so a listing returns what is available, and a change is retried.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Any, TypeVar

import kafka  # type: ignore[import-untyped]
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic
from kafka.admin import KafkaAdminClient  # type: ignore[import-untyped]

from tools.faults.errors import FaultsError

_T = TypeVar("_T")
#: A partition of this cluster, by this cluster's name of the topic.
Partition = tuple[str, int]
_LATEST: Any = OffsetSpec.latest()  # type: ignore[no-untyped-call]
_LOOK_SECONDS = 2.0
_PATIENCE_SECONDS = 2.0
_CHANGE_SECONDS = 60.0
_POLL_SECONDS = 0.05
_PREFERRED = 0
#: A try that failed here may have succeeded on the broker.
_DONE = (KafkaError.TOPIC_ALREADY_EXISTS, KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError.INVALID_PARTITIONS)


class Topics:
    """Topics of one cluster."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.bootstrap_servers = bootstrap_servers
        self._admin = self._new_admin()
        #: Why the last request for end offsets did not return all of them.
        self._unseen = ""
        self._saw_all = time.monotonic()

    def _new_admin(self) -> AdminClient:
        return AdminClient(
            {"bootstrap.servers": self.bootstrap_servers, "log_level": 0, "reconnect.backoff.max.ms": 300}
        )

    def partitions(self, prefix: str = "") -> dict[str, int]:
        """Return the number of partitions of every topic with this prefix."""
        topics = self._again(lambda: self._admin.list_topics(timeout=_LOOK_SECONDS).topics, "listing topics")
        return {name: len(topic.partitions) for name, topic in topics.items() if name.startswith(prefix)}

    def leaders(self, topics: Collection[str]) -> dict[Partition, int]:
        """Return the node that leads each partition; -1 if there is none."""
        found = self._again(lambda: self._admin.list_topics(timeout=_LOOK_SECONDS).topics, "listing topics")
        return {
            (name, number): partition.leader
            for name in topics
            if name in found
            for number, partition in found[name].partitions.items()
        }

    def look_at_ends(self, topics: Mapping[str, int]) -> dict[Partition, int]:
        """Return the end offsets of these partitions, as far as their leaders respond now."""
        wanted = {TopicPartition(topic, partition): _LATEST for topic in topics for partition in range(topics[topic])}
        if not wanted:
            return {}
        ends: dict[Partition, int] = {}
        try:
            answers = self._admin.list_offsets(wanted, request_timeout=_LOOK_SECONDS)
        except KafkaException as error:
            answers, self._unseen = {}, str(error)
        for place, future in answers.items():
            try:
                ends[place.topic, place.partition] = int(future.result(_LOOK_SECONDS + 1).offset)
            except (KafkaException, TimeoutError) as error:
                self._unseen = f"{place.topic}-{place.partition}: {error or type(error).__name__}"
        self._renew_when_blind(seen=len(ends) == len(wanted))
        return ends

    def renew(self) -> None:
        """Discard what the client knows of the brokers."""
        self._admin, self._saw_all = self._new_admin(), time.monotonic()

    def _renew_when_blind(self, *, seen: bool) -> None:
        """Recreate the client if it is stale: librdkafka's admin client may use old metadata long after a broker's
        return.
        """
        if seen:
            self._saw_all = time.monotonic()
        elif time.monotonic() - self._saw_all > _PATIENCE_SECONDS:
            self.renew()

    def ends(self, topics: Mapping[str, int]) -> dict[Partition, int]:
        """Return the end offsets of all these partitions.

        Raises:
            FaultsError: some are not available in time.
        """

        def all_ends() -> dict[Partition, int] | None:
            found = self.look_at_ends(topics)
            return found if len(found) == sum(topics.values()) else None

        try:
            return self.wait(all_ends, f"the end offsets of {', '.join(topics)}")
        except FaultsError as error:
            raise FaultsError(f"{error.what} {self._unseen}") from None

    def create(self, name: str, partitions: int, replicas: int) -> None:
        """Create a topic and wait until every partition has a leader that responds."""
        self._change(lambda: self._admin.create_topics([NewTopic(name, partitions, replicas)])[name])
        self.ends({name: partitions})

    def grow(self, name: str, partitions: int) -> None:
        """Give a topic more partitions, and wait until they have leaders."""
        self._change(lambda: self._admin.create_partitions([NewPartitions(name, partitions)])[name])
        self.ends({name: partitions})

    def delete(self, name: str) -> None:
        """Delete a topic, and wait until no broker lists it; a missing one is not an error."""
        if name in self.partitions(name):
            self._change(lambda: self._admin.delete_topics([name])[name])
        self.wait(lambda: None if name in self.partitions(name) else True, f"the end of {name}")

    def configure(self, topics: Iterable[str], name: str, value: str | None) -> None:
        """Set one config of topics, or remove it with None."""
        kind = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
        for topic in topics:
            entry = ConfigEntry(name, value, incremental_operation=kind)
            resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
            self._change(partial(self._alter, resource))

    def move_leaders(self, topics: Mapping[str, int]) -> dict[Partition, int]:
        """Make another replica the leader of every partition; return the leaders before.

        The replicas stay the same: only their order changes, so that another one is preferred and elected.
        """
        before = self.leaders(topics)
        described = self._again(lambda: self._admin.list_topics(timeout=_LOOK_SECONDS).topics, "listing topics")
        orders = {
            kafka.TopicPartition(topic, number): _rotated(partition.replicas, partition.leader)
            for topic in topics
            for number, partition in described[topic].partitions.items()
        }
        admin = KafkaAdminClient(bootstrap_servers=self.bootstrap_servers.split(","))
        try:
            admin.alter_partition_reassignments(orders)
            self.wait(lambda: None if admin.list_partition_reassignments() else True, "the reassignment of replicas")
            admin.elect_leaders(_PREFERRED, list(topics), raise_errors=False)
        finally:
            admin.close()
        return before

    def wait(self, look: Callable[[], _T | None], what: str, seconds: float = _CHANGE_SECONDS) -> _T:
        """Repeat a request until it returns something.

        Raises:
            FaultsError: it returns nothing in time.
        """
        deadline = time.monotonic() + seconds
        while (found := look()) is None:
            if time.monotonic() > deadline:
                raise FaultsError(f"{what} did not come within {seconds:.0f} s.")
            time.sleep(_POLL_SECONDS)
        return found

    def _alter(self, resource: ConfigResource) -> Any:
        return self._admin.incremental_alter_configs([resource])[resource]

    def _change(self, ask: Callable[[], Any]) -> None:
        def done() -> bool | None:
            try:
                ask().result(_LOOK_SECONDS * 3)
            except KafkaException as error:
                return True if error.args[0].code() in _DONE else None
            except TimeoutError:
                return None
            return True

        self.wait(done, "a change of topics")

    def _again(self, ask: Callable[[], _T], what: str) -> _T:
        def tried() -> _T | None:
            try:
                return ask()
            except KafkaException:
                return None

        return self.wait(tried, what)


def _rotated(replicas: list[int], leader: int) -> list[int]:
    """Return the same replicas with the one after the leader first."""
    place = replicas.index(leader) + 1 if leader in replicas else 0
    return [*replicas[place:], *replicas[:place]]
