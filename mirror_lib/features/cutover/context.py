"""The context of a cutover's steps: its definition, the flow, the ledger, and the two Spark jobs."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from mirror_lib.config.loader import enabled_flow
from mirror_lib.config.model import FlowConfig, MirrorConfig
from mirror_lib.config.topology import flow_topology
from mirror_lib.copy.run import replicate
from mirror_lib.copy.run_lock import hold_lock
from mirror_lib.copy.run_options import CopyRunner, RunOptions, RunReport
from mirror_lib.errors import ConfigurationError, RunLockedError
from mirror_lib.features.cutover.model import Attempt, CutoverDefinition, Step
from mirror_lib.features.cutover.order import has_passed
from mirror_lib.features.cutover.scope import ScopeTopic, exactly, without_handovers
from mirror_lib.features.verify.model import VerifyMode, VerifyPlan
from mirror_lib.features.verify.report import VerifyReport
from mirror_lib.features.verify.run import VerifyOptions, VerifyRunner, verify_flow
from mirror_lib.ledger.handovers import all_with_handovers, enabled_opposite_of
from mirror_lib.ledger.store import Ledger
from mirror_lib.topology.flow_topology import FlowTopology


@dataclass(frozen=True, slots=True)
class Engine:
    """Copies and compares: Spark in production. Kept warm over all steps, because writers are stopped meanwhile."""

    copy: Callable[[], CopyRunner]
    compare: Callable[[VerifyPlan], VerifyRunner]


@dataclass(slots=True)
class CutoverContext:
    """One cutover in execution. Its properties are read anew each time; only the ledger keeps state."""

    definition: CutoverDefinition
    config: MirrorConfig
    ledger: Ledger
    #: Operator who runs it, for the ledger.
    by: str
    #: None if no step of this run copies or compares.
    engine: Engine | None = None
    #: The newest attempt at each step; the machine keeps it up to date.
    last: Mapping[Step, Attempt] = field(default_factory=dict)
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    #: Called with progress messages for waiting operators.
    report_progress: Callable[[str], None] = lambda _: None
    #: Stores facts of the current attempt that must survive any failure.
    keep: Callable[[Mapping[str, Any]], None] = lambda _: None

    @property
    def flow(self) -> FlowConfig:
        """The flow as it runs now: without topics that were handed over.

        Raises:
            ConfigurationError: the file has no such flow, or it is not enabled.
        """
        return enabled_flow(all_with_handovers(self.config, self.ledger), self.definition.flow)

    @property
    def whole_flow(self) -> FlowConfig:
        """The flow as configured in its file."""
        return without_handovers(enabled_flow(self.config, self.definition.flow))

    @property
    def opposite(self) -> FlowConfig | None:
        """The failback flow, if the file has one and it is enabled."""
        return enabled_opposite_of(all_with_handovers(self.config, self.ledger), self.whole_flow)

    @property
    def topics(self) -> tuple[ScopeTopic, ...]:
        """The topics that the inventory found.

        Raises:
            ConfigurationError: there was no inventory.
        """
        attempt = self.last.get(Step.INVENTORY)
        if attempt is None or not has_passed(attempt):
            raise ConfigurationError(
                f"cutover {self.definition.name} has no inventory.", action="Run the inventory step first."
            )
        return tuple(ScopeTopic(**each) for each in attempt.facts["topics"])

    @property
    def topic_regexes(self) -> tuple[str, ...]:
        """Regexes that limit a run to the topics of the scope."""
        return exactly(topic.source for topic in self.topics)

    def topology(self) -> FlowTopology:
        """Return the rules of the whole flow for the topics of the scope."""
        return flow_topology(self.whole_flow, self.topic_regexes)

    def run_options(self) -> RunOptions:
        """Return the options of a run of the scope."""
        trigger = f"cutover {self.definition.name}"
        return RunOptions(trigger=trigger, topics=self.topic_regexes, max_seconds=0.0)

    def copy(self) -> RunReport | None:
        """Copy one round of the scope; return None if another run of the flow holds the lock and copies anyway."""
        engine = self._engine()
        try:
            return replicate(self.flow, ledger=self.ledger, make_runner=engine.copy, options=self.run_options())
        except RunLockedError as error:
            self.report_progress(f"Another run of the flow is copying: {error.what}")
            return None

    def compare(self, mode: VerifyMode) -> VerifyReport:
        """Compare the topics of the scope."""
        options = VerifyOptions(topics=self.topic_regexes, mode=mode)
        return verify_flow(self.whole_flow, ledger=self.ledger, make_runner=self._engine().compare, options=options)

    @contextmanager
    def hold_lock(self, flow: FlowConfig) -> Iterator[None]:
        """Hold the run lock of a flow; wait for a current run to end.

        Raises:
            RunLockedError: it has not ended within the drain time.
        """
        with hold_lock(
            self.ledger,
            flow=str(flow.flow),
            run_id=f"cutover-{self.definition.name}-{uuid.uuid4()}",
            lease_seconds=flow.run_lease_seconds,
            wait_seconds=self.definition.drain_seconds,
            waiting=lambda error: self.report_progress(f"Waiting for another run to end: {error.what}"),
        ):
            yield

    def now(self) -> datetime:
        """Return the current time."""
        return datetime.now(UTC)

    def facts_of(self, step: Step) -> Mapping[str, Any]:
        """Return the facts of the newest attempt at a step."""
        attempt = self.last.get(step)
        return {} if attempt is None else attempt.facts

    def _engine(self) -> Engine:
        if self.engine is None:
            raise ConfigurationError(
                "this step needs Spark to copy and compare.",
                action="Run it with `mirror cutover run`, or with the cutover DAG.",
            )
        return self.engine
