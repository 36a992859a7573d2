"""Results of copies over a distance: rates in relation to the local one and to the maximum of the line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from rich.table import Table

from tools.bench.comparison.results import Goal
from tools.bench.copiers.settings import Copier
from tools.bench.distance.model import Allowed, Case

#: Over a distance, a copy has at least this share of the local rate, or of the line's maximum if that is less.
SHARE_OF_LOCAL = 0.5
_UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class Copied:
    """One copy."""

    case: Case
    copier: Copier
    round: int
    records: int
    #: Of values, uncompressed.
    bytes: int
    #: Of the source's batches.
    batch_bytes: int
    allowed: Allowed | None
    #: From the first record on the target to the last; 0 if it failed.
    seconds: float = 0.0
    #: This project only: around the copy tasks, with connecting; and everything, with topic sync, planning and commit.
    copy_seconds: float | None = None
    run_seconds: float | None = None
    #: Of the copier, in the window.
    cpu_seconds: float = 0.0
    #: Of the process of the line, during the whole copy.
    line_cpu_seconds: float = 0.0
    #: Counts, log starts, end offsets and samples equal the source's.
    equal: bool = False
    #: Why it did not finish.
    failure: str = ""

    @property
    def rate_seconds(self) -> float | None:
        """The base of rates: for this project the copy stage, because over a distance much is read, and held in memory,
        before the first record arrives and the window begins; for MM2 the window. None if it failed.
        """
        return self.copy_seconds or self.seconds or None

    def per_second(self, amount: float) -> float | None:
        """Return the amount per second, by `rate_seconds`."""
        return amount / self.rate_seconds if self.rate_seconds else None


@dataclass(frozen=True, slots=True)
class Standing:
    """Medians of all rounds of one case by one copier."""

    case: Case
    copier: Copier
    records: int
    allowed: Allowed | None
    records_per_second: float | None
    megabytes_per_second: float | None
    batch_rate: float | None
    #: As a share of the same copier's local rate.
    of_local: float | None
    #: The same by the window from the first record on the target to the last.
    window_of_local: float | None
    #: As a share of the line's maximum.
    of_allowed: float | None
    equal: bool


def standings(results: Sequence[Copied]) -> tuple[Standing, ...]:
    """Return one for each case and copier, in the order in which they were measured."""
    found = []
    for copier, case in dict.fromkeys((each.copier, each.case) for each in results):
        here = _of(results, copier, case)
        local = _of(results, copier, Case.LOCAL)
        rate = _middle(here, _batch_rate)
        limit = here[0].allowed.most if here[0].allowed else None
        found.append(
            Standing(
                case,
                copier,
                records=here[0].records,
                allowed=here[0].allowed,
                records_per_second=_middle(here, lambda each: each.per_second(each.records)),
                megabytes_per_second=_middle(here, lambda each: each.per_second(each.bytes / 1e6)),
                batch_rate=rate,
                of_local=_share(rate, _middle(local, _batch_rate)),
                window_of_local=_share(_middle(here, _window_rate), _middle(local, _window_rate)),
                of_allowed=_share(rate, limit),
                equal=all(each.equal for each in here),
            )
        )
    return tuple(found)


def goals(results: Sequence[Copied]) -> tuple[Goal, ...]:
    """Return a goal for each case of this project: by the local rate, or by the line's maximum if that is less."""
    ours = [each for each in standings(results) if each.copier is Copier.MIRROR]
    local = next((each.batch_rate for each in ours if each.case is Case.LOCAL), None)
    found = []
    for each in ours:
        if each.case is Case.LOCAL:
            continue
        limits = [rate for rate in (local, each.allowed.most if each.allowed else None) if rate is not None]
        value = _share(each.batch_rate, min(limits)) if local is not None else None
        allows = _share(each.allowed.most if each.allowed else None, local)
        found.append(
            Goal(
                text=f"{each.case.value}: rate, as a share of the local one or of what the line allows if that is less",
                limit=SHARE_OF_LOCAL,
                value=value,
                detail=f"{_percent(each.of_local)} of local; the line allows {_percent(allows)}",
                # A failed copy has no rate, and missed the goal.
                reached=None if local is None else value is not None and value >= SHARE_OF_LOCAL,
            )
        )
    return tuple(found)


def distance_table(results: Sequence[Copied]) -> Table:
    """Return every case by every copier."""
    table = Table(title="Over a distance (medians of the rounds)", title_justify="left")
    table.add_column("copier")
    table.add_column("case")
    for head in (
        "records",
        "records/s",
        "MB/s",
        "of local",
        "by window",
        "run s",
        "CPU s",
        "line CPU s",
        "batches MB/s",
        "connections",
        "windows allow",
        "loss allows",
        "of the allowed",
        "equal",
    ):
        table.add_column(head, justify="right")
    for each in standings(results):
        here = _of(results, each.copier, each.case)
        limit = each.allowed
        table.add_row(
            each.copier.label,
            each.case.value,
            f"{each.records:,}",
            _number(each.records_per_second, "{:,.0f}"),
            _number(each.megabytes_per_second, "{:,.1f}"),
            _percent(each.of_local),
            _percent(each.window_of_local),
            _number(_middle(here, lambda one: one.run_seconds), "{:.2f}"),
            _number(_middle(here, lambda one: one.cpu_seconds or None), "{:.2f}"),
            _number(_middle(here, lambda one: one.line_cpu_seconds or None), "{:.2f}"),
            _megabytes(each.batch_rate),
            str(limit.connections) if limit else _UNKNOWN,
            _megabytes(limit.window if limit else None),
            _megabytes(limit.loss if limit else None),
            _percent(each.of_allowed),
            "[green]yes[/]" if each.equal else "[bold red]no[/]",
        )
    return table


def to_plain(results: Sequence[Copied]) -> list[dict[str, Any]]:
    """Return the results for JSON."""
    return [asdict(each) for each in results]


def _of(results: Iterable[Copied], copier: Copier, case: Case) -> list[Copied]:
    return [each for each in results if (each.copier, each.case) == (copier, case)]


def _batch_rate(copied: Copied) -> float | None:
    return copied.per_second(copied.batch_bytes)


def _window_rate(copied: Copied) -> float | None:
    return copied.batch_bytes / copied.seconds if copied.seconds else None


def _middle(results: Sequence[Copied], value: Callable[[Copied], float | None]) -> float | None:
    known = [found for each in results if (found := value(each)) is not None]
    return median(known) if known else None


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def _percent(share: float | None) -> str:
    return _UNKNOWN if share is None else f"{share:.0%}" if share >= 0.1 else f"{share:.1%}"


def _megabytes(size: float | None) -> str:
    return _UNKNOWN if size is None else f"{size / 1e6:,.1f}"


def _number(value: float | None, form: str) -> str:
    return _UNKNOWN if value is None else form.format(value)
