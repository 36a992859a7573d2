"""A whole campaign: start everything, play fault after fault from a seed, and check everything at the end."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tools.faults import flow_config
from tools.faults.clusters.side import Side
from tools.faults.drivers.drivers import Drivers
from tools.faults.errors import FaultsError
from tools.faults.final_check import check_everything
from tools.faults.kinds.all_kinds import Kind
from tools.faults.kinds.scene import Scene
from tools.faults.postgres import PostgresServer
from tools.faults.records.input import Input
from tools.faults.records.reading import Reader
from tools.faults.records.sequences import Findings
from tools.faults.results import Complete, Results, Strike
from tools.faults.schedule import schedule
from tools.faults.world import Configs, Log, World

#: Topics of the input with their partitions at the start; the first one's number may be chosen.
_TOPICS = {f"{flow_config.INPUT_PREFIX}{name}": count for name, count in (("orders", 4), ("audit", 3), ("clicks", 2))}
#: Interval at which the target's brokers check for expired producers.
_FORGET_SECONDS = 2.0
_FORGETTING: Mapping[str, str] = {"producer.id.expiration.check.interval.ms": f"{_FORGET_SECONDS * 1000:.0f}"}
#: The maximum of brokers.
_REMEMBERING: Mapping[str, str] = {"producer.id.expiration.ms": str(2**31 - 1)}


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a campaign.

    Attributes:
        kinds: of faults, in the order of the table.
        faults: their number; None: until the time is over.
        seconds: no fault begins after this time; None: no limit.
        rate: records per second of the constant input.
        brokers: of each cluster, 1 or 3.
        partitions: of the first topic; None: its usual number.
        keep: leave the folder with logs and data.
        age_seconds: age of the input's timestamps. The source's brokers then remember their producers for longer, so
            that the input itself is exact, and the target's brokers expire producers every two seconds.
        settings: further properties of the flow.
    """

    kinds: Sequence[Kind]
    faults: int | None
    seconds: float | None = None
    seed: int = 0
    rate: float = 300.0
    brokers: int = 3
    partitions: int | None = None
    keep: bool = False
    age_seconds: float = 0.0
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def topics(self) -> dict[str, int]:
        """The input's topics with their partitions at the start."""
        first = next(iter(_TOPICS))
        return _TOPICS if self.partitions is None else {**_TOPICS, first: self.partitions}


def run(options: Options, results: Results, log: Log) -> None:
    """Play the faults; everything that was started has ended when this returns or raises.

    Args:
        results: filled during the campaign, so that an interrupt keeps the results so far.
        log: called with one sentence about the present step.

    Raises:
        MirrorError: something could not be started, or the flow did not catch up any more.
    """
    with _folder(keep=options.keep, log=log) as folder, ExitStack() as stack:
        world = _start(options, folder, stack, log)
        deadline = None if options.seconds is None else time.monotonic() + options.seconds
        for number, kind in enumerate(schedule(options.kinds, options.seed, options.faults), 1):
            if deadline is not None and time.monotonic() > deadline:
                break
            # Each fault has its own random numbers: its draws do not change the others.
            strike = _play(world, kind, random.Random(f"{options.seed}/{number}"))
            results.strikes.append(strike)
            log(_sentence(number, strike))
        same_offsets = options.settings.get("mirror.offsets") == "same"
        results.complete = _finish(world, same_offsets=same_offsets)


def _start(options: Options, folder: Path, stack: ExitStack, log: Log) -> World:
    log(f"starting two clusters of {options.brokers} brokers and two Spark sessions in {folder}")
    drivers = stack.enter_context(Drivers(folder))
    brokers = {"source": _REMEMBERING, "target": _FORGETTING} if options.age_seconds else {"source": {}, "target": {}}
    source, target = (
        Side(name, folder / name, brokers=options.brokers, overrides=overrides) for name, overrides in brokers.items()
    )
    with ThreadPoolExecutor(max_workers=2) as pool:
        for side in (source, target):
            stack.callback(side.stop)
        list(pool.map(Side.start, (source, target)))
    postgres = stack.enter_context(PostgresServer()) if any(kind.postgres for kind in options.kinds) else None
    for name, partitions in options.topics.items():
        source.topics.create(name, partitions, options.brokers)
    world = World(
        source=source,
        target=target,
        drivers=drivers,
        input=stack.enter_context(
            Input(
                source.topics.bootstrap_servers,
                options.topics,
                rate=options.rate,
                seed=options.seed,
                age_seconds=options.age_seconds,
            )
        ),
        configs=_configs(folder, source, target, postgres, options.settings),
        postgres=postgres,
        reader=stack.enter_context(Reader(target.topics.bootstrap_servers, prefix=flow_config.TARGET_PREFIX)),
        log=log,
        forget_seconds=2 * _FORGET_SECONDS if options.age_seconds else 0.0,
    )
    scene = Scene(world, random.Random(options.seed))
    scene.prepare()
    scene.catch_up()
    log(
        f"all processes run; the input writes {options.rate:.0f} records/s into {sum(options.topics.values())} "
        "partitions"
    )
    return world


def _configs(
    folder: Path, source: Side, target: Side, postgres: PostgresServer | None, own: Mapping[str, str]
) -> Configs:
    def config(name: str, ledger_url: str) -> Path:
        settings = flow_config.properties(
            source.flow_bootstrap, target.flow_bootstrap, ledger_url, brokers=source.brokers, own=own
        )
        return flow_config.write(folder / f"{name}.properties", settings)

    ledger = folder / "ledger.sqlite3"
    return Configs(
        main=config("mirror", f"sqlite:///{ledger}"),
        main_ledger=ledger,
        stranger=config("stranger", f"sqlite:///{folder}/stranger.sqlite3"),
        postgres=config("postgres", postgres.url) if postgres is not None else None,
    )


def _play(world: World, kind: Kind, rng: random.Random) -> Strike:
    before = world.arrivals.findings()
    scene = Scene(world, rng)
    try:
        try:
            hit = kind.play(scene)
            scene.catch_up()
        finally:
            scene.close()
    except FaultsError as error:
        error.add_note(kind.name)
        raise
    return Strike(
        kind=kind.name,
        mid_copy=hit,
        findings=world.check().since(before),
        seconds=time.monotonic() - scene.began,
        runs=scene.runs,
        recovered=scene.recovered,
        recovery_seconds=scene.recovery_seconds,
        reasons=tuple(scene.reasons),
        errors=tuple(scene.errors),
    )


def _finish(world: World, *, same_offsets: bool) -> Complete:
    world.log("writing the end markers, copying the rest")
    written = world.input.finish()
    Scene(world, random.Random()).catch_up()
    world.log("reading all records on both clusters")
    return check_everything(world.source.topics, world.target.topics, written.streams, same_offsets=same_offsets)


def _sentence(number: int, strike: Strike) -> str:
    what = "no finding" if strike.findings == Findings() else str(strike.findings)
    extra = "" if strike.mid_copy else ", not in mid-copy"
    if strike.recovery_seconds is not None:
        extra += f", copied again after {strike.recovery_seconds:.1f} s"
    reasons = f" ({', '.join(dict.fromkeys(strike.reasons))})" if strike.reasons else ""
    return f"{number}. {strike.kind}: {what} in {strike.runs} runs, {strike.seconds:.1f} s{extra}{reasons}"


@contextmanager
def _folder(*, keep: bool, log: Log) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="mirror-faults-"))
    try:
        yield folder
    finally:
        if keep:
            log(f"logs and data are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
