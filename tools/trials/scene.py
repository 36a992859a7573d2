"""What a trial works with: two clusters, a topic of its own, and patience."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from mirror_lib.errors import MirrorError
from mirror_lib.features.demo.broker import KafkaCluster
from tests.support.kafka import Record, consume, create_topic, topic_names
from tools.trials.model import Expected

_WAIT_SECONDS = 180.0
_POLL_SECONDS = 0.2


class TrialError(MirrorError):
    """A trial could not make the copy that it is about, so that its audit would prove nothing."""

    reason = "trial"


@dataclass(frozen=True, slots=True)
class Scene:
    """The place of one trial."""

    source: KafkaCluster
    target: KafkaCluster
    #: The name of the trial's topic on the source.
    topic: str
    #: An empty folder.
    folder: Path
    #: The source's alias; by default one for the topic alone.
    source_alias: str = ""
    #: Closed when the audit has ended.
    stack: ExitStack = field(default_factory=ExitStack)
    #: Set when all trials are to end.
    cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def copy(self) -> str:
        """The name of the copy by MirrorMaker's default policy, from an alias that is the topic's own."""
        return f"{self.alias}.{self.topic}"

    @property
    def alias(self) -> str:
        """The alias of the source: internal topics of MirrorMaker are named for it."""
        return self.source_alias or f"from-{self.topic}"

    def create_both(
        self,
        *,
        partitions: int = 1,
        source: Mapping[str, str] | None = None,
        target: Mapping[str, str] | None = None,
        copy: str = "",
    ) -> None:
        """Create the topic on both clusters with these configs; the copy has MirrorMaker's name unless one is given."""
        create_topic(self.source, self.topic, partitions=partitions, configs=source)
        create_topic(self.target, copy or self.copy, partitions=partitions, configs=target)

    def wait(self, condition: Callable[[], bool], what: str, *, detail: Callable[[], str] = str) -> None:
        """Wait until a condition is true.

        Raises:
            TrialError: it is not true in time, or the trials are cancelled.
        """
        deadline = time.monotonic() + _WAIT_SECONDS
        while not condition():
            if self.cancelled.is_set():
                raise TrialError("cancelled")
            if time.monotonic() > deadline:
                raise TrialError(f"{what} did not happen within {_WAIT_SECONDS:.0f} s. {detail()}".strip())
            time.sleep(_POLL_SECONDS)

    def copied(self, topic: str = "", *, isolation: str = "read_committed") -> list[Record]:
        """Return the records of the copy as an independent consumer reads them; none if there is no copy yet."""
        name = topic or self.copy
        if name not in topic_names(self.target):
            return []
        return consume(self.target, name, isolation=isolation, timeout_seconds=_WAIT_SECONDS)

    def written(self, *, isolation: str = "read_committed") -> list[Record]:
        """Return the records of the source as an independent consumer reads them."""
        return consume(self.source, self.topic, isolation=isolation, timeout_seconds=_WAIT_SECONDS)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy that was made, and what an audit of it has to find."""

    expected: Expected
    #: Options of `mirror audit` besides the brokers and the topic.
    options: tuple[str, ...] = ()
    #: Seconds that records are awaited; where something is missing every second of it is waited.
    wait: float = 0.0
    #: The configuration file and the flow, if the audit reads those instead of the brokers and the topic.
    flow: tuple[Path, str] | None = None


#: Makes a copy.
Make = Callable[[Scene], Copy]


@dataclass(frozen=True, slots=True)
class Trial:
    """One copy to audit."""

    name: str
    #: The replicator.
    by: str
    make: Make
    #: True if it takes minutes.
    large: bool = False
