"""One fault from the beginning of its run until everything is caught up: the common part of all kinds of faults."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tools.faults.clusters.topics import Partition
from tools.faults.drivers.drivers import DRIVER_DIED, Driver
from tools.faults.drivers.fault_points import FaultPoint
from tools.faults.drivers.session import Prepare, Run, RunEnd
from tools.faults.errors import StuckError
from tools.faults.flow_config import FLOW
from tools.faults.world import World

#: Records that exist when a run begins, besides the constant input.
BURST_RECORDS = 3000
#: Progress of the run when it is hit, as a share of the burst.
_EARLIEST, _LATEST = 0.05, 0.6
#: Delay of each response of the source while a fault waits for its moment.
_BRAKE_MS = 40
_LOOK_SECONDS = 0.01
_RUN_SECONDS = 240.0
_CATCH_UP_SECONDS = 300.0
_PREPARE_SECONDS = 60.0
_BETWEEN_RUNS_SECONDS = 0.3
_REASONS_KEPT = 20


class Scene:
    """The stage of a fault: begin a run, wait until it is copying, play the fault, and let the flow catch up."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self.world = world
        self.rng = rng
        self.began = time.monotonic()
        self.runs = 0
        self.recovered = 0
        self.reasons: list[str] = []
        self.errors: list[str] = []
        self.recovery_seconds: float | None = None
        self._config = world.configs.main
        self._before: dict[Partition, int] = {}
        self._watched: dict[str, int] = {}
        self._running: list[Driver] = []
        self._afterwards: list[Callable[[], None]] = []

    @property
    def driver(self) -> Driver:
        """The driver of the next run."""
        return self.world.drivers.current

    def use(self, config: Path) -> None:
        """Use another properties file for the runs of this scene."""
        self._config = config

    def afterwards(self, work: Callable[[], None]) -> None:
        """Call this when everything is caught up, or the scene failed."""
        self._afterwards.append(work)

    # ------------------------------------------------------------ runs

    def begin(
        self,
        *,
        fault_point: FaultPoint | None = None,
        driver: Driver | None = None,
        config: Path | None = None,
        watched: Mapping[str, int] | None = None,
        burst: bool = True,
    ) -> Driver:
        """Write a burst of input and begin a run.

        Args:
            fault_point: where the driver kills itself.
            driver: instead of the current one.
            config: instead of the scene's.
            watched: the target's topics by which `wait_mid_copy` observes the run; by default all of the input.
        """
        driver = driver or self.driver
        driver.wait_warm()
        if burst:
            self.world.input.burst(BURST_RECORDS)
        self._watched = dict(watched or self.world.target_topics())
        self._before = self.world.target.topics.ends(self._watched)
        self.run(driver, fault_point=fault_point, config=config)
        return driver

    def run(self, driver: Driver, *, fault_point: FaultPoint | None = None, config: Path | None = None) -> None:
        """Begin a run with the existing input."""
        self.runs += 1
        self._running.append(driver)
        driver.begin(Run(config or self._config, FLOW, fault_point))

    def wait_mid_copy(self, driver: Driver, *, records: int = BURST_RECORDS) -> bool:
        """Wait until the target's end offsets have advanced enough; return False if the run or its driver ends before.

        Args:
            driver: of the run.
            records: what the run has to copy to the watched topics.
        """
        moved = max(int(records * self.rng.uniform(_EARLIEST, _LATEST)), sum(self._watched.values()) + 1)
        before = sum(self._before.values())
        while driver.alive:
            ends = self.world.target.topics.look_at_ends(self._watched)
            if len(ends) == len(self._before) and sum(ends.values()) - before >= moved:
                return not driver.answered
            if driver.answered:
                return False
            time.sleep(_LOOK_SECONDS)
        return False

    @contextmanager
    def braked(self) -> Iterator[None]:
        """Delay responses of the source, so that a run lasts long enough to be hit."""
        self.world.source.proxy.latency(_BRAKE_MS)
        try:
            yield
        finally:
            self.world.source.proxy.latency(0)

    def end(self, driver: Driver) -> RunEnd:
        """Wait for the end of a driver's run.

        Raises:
            StuckError: it does not end.
        """
        end = driver.finish(_RUN_SECONDS)
        if end is None:
            raise StuckError(f"a run has not ended after {_RUN_SECONDS:.0f} s.", action=f"See {driver.log}.")
        self._note(driver, end)
        return end

    def end_if_over(self, driver: Driver) -> RunEnd | None:
        """Return the end of a driver's run, None while it is running."""
        end = driver.poll()
        if end is not None:
            self._note(driver, end)
        return end

    def _note(self, driver: Driver, end: RunEnd) -> None:
        if driver in self._running:
            self._running.remove(driver)
        self.recovered += end.recovered
        self.reasons += [error.reason for error in end.errors]
        self.errors += [error.text for error in end.errors]
        del self.reasons[_REASONS_KEPT:], self.errors[_REASONS_KEPT:]
        if end is DRIVER_DIED:
            self.world.drivers.lose(driver)

    # ------------------------------------------------------------ recovery

    def prepare(self) -> None:
        """Let the project's topic sync create and grow the target's topics.

        Raises:
            StuckError: it cannot.
        """
        deadline = time.monotonic() + _PREPARE_SECONDS
        while True:
            driver = self.driver
            driver.begin(Prepare(self._config, FLOW))
            end = self.end(driver)
            if not end.errors:
                return
            if time.monotonic() > deadline:
                raise StuckError(f"topic sync failed: {end.errors[0].text}", action=f"See {driver.log}.")
            time.sleep(_BETWEEN_RUNS_SECONDS)

    def keep_running(self, until: Callable[[], bool], seconds: float, what: str) -> None:
        """Start one run after the other, until a condition is true.

        Raises:
            StuckError: it does not become true.
        """
        deadline = time.monotonic() + seconds
        driver = self.driver
        while not until():
            if time.monotonic() > deadline:
                raise StuckError(f"{what} did not happen within {seconds:.0f} s.", action=f"See {driver.log}.")
            if driver not in self._running:
                driver = self.driver
                self.run(driver)
            self.end_if_over(driver)
            time.sleep(_LOOK_SECONDS)

    def keep_running_for(self, seconds: float) -> None:
        """Start one run after the other for this time."""
        deadline = time.monotonic() + seconds
        self.keep_running(lambda: time.monotonic() > deadline, seconds + 1.0, "the end of a pause")

    def moved(self, places: Collection[Partition], since: Mapping[Partition, int]) -> bool:
        """Return True if the target's end offsets of all these partitions are higher than before."""
        topics = {topic: max(number for name, number in places if name == topic) + 1 for topic, _ in places}
        ends = self.world.target.topics.look_at_ends(topics)
        return all(ends.get(place, -1) > since[place] for place in places)

    def catch_up(self) -> None:
        """Run until a run that began now has copied everything without an error.

        Raises:
            StuckError: none does.
        """
        deadline = time.monotonic() + _CATCH_UP_SECONDS
        for driver in list(self._running):
            if driver is self.driver:
                self.end(driver)
        while True:
            driver = self.driver
            driver.wait_warm()
            self.run(driver)
            end = self.end(driver)
            if not end.errors:
                return
            if time.monotonic() > deadline:
                texts = "; ".join(dict.fromkeys(error.text for error in end.errors[:3]))
                raise StuckError(f"the flow did not catch up: {texts}", action=f"See {driver.log}.")
            time.sleep(_BETWEEN_RUNS_SECONDS)

    def close(self) -> None:
        """Undo the effects of the fault."""
        for side in (self.world.source, self.world.target):
            side.proxy.heal()
        while self._afterwards:
            self._afterwards.pop()()
