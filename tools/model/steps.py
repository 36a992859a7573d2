"""Events and commands as plain data: a seed generates a sequence of them, and a script is a list of them.

Sequences of independent steps rarely find problems that need several steps on one partition. So each seed

- has the rules of a few themes (swarm testing: Groce et al. 2012), since many undo the preparations of others,
- focuses on few partitions, so that steps meet, and
- continues every other step with one of those that its rule leads to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

#: One step: its `do` names the rule, the rest are the rule's arguments. Plain JSON, so that it can be written by hand.
Step = dict[str, Any]

TOPICS = ("a", "b", "c", "d")
COMPACTED_TOPIC = "c"
#: It does not exist from the beginning.
LATE_TOPIC = "d"
GROUPS = ("g", "h")
#: For topics with fewer partitions, the number is reduced to one of those.
_PARTITIONS = (0, 1, 2, 3)
#: Of names that the default policy makes; None: topics keep their names.
_SEPARATORS = (".", "--", None, None)
_AGES = ("present", "old")
#: Of runs that end normally, one in this many starts Spark, which takes as long as fifty others.
_RUNS_WITHOUT_SPARK = 299
_POINTS = ("opened", "before-produce", "produced", "before-closed", "closed", "before-end")
#: Of cutovers, one in this many is killed.
_CUTOVERS_WITHOUT_KILL = 3
_FOLLOWS, _SAME_PLACE = 0.5, 0.7
_DISKS = ("source", "source", "target", "target", "both")
#: That the clock is ahead.
_HOURS = (0, 0, 1, -1, 30, -30, 24 * 30)


class _Draw:
    """The random source of a sequence's steps."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.topics = random.choice([("a",), ("a",), ("b",), ("c",), ("a", "c"), ("a", "b"), ("a", "d"), TOPICS])
        self.partitions = random.choice([(0,), (0,), (1,), _PARTITIONS])
        self.groups = random.choice([("g",), GROUPS])
        self._last: tuple[str, int] | None = None

    def place(self, *, compacted: bool = True, first: bool = False) -> dict[str, Any]:
        """Draw a partition.

        Args:
            compacted: True if it may be one of the compacted topic.
            first: True if it exists from the beginning.
        """
        topic, partition = self.random.choice(self.topics), self.random.choice(self.partitions)
        if self._last is not None and self.random.random() < _SAME_PLACE:
            topic, partition = self._last
        if topic == COMPACTED_TOPIC and not compacted:
            topic = "a"
        if first:
            partition %= 2
        self._last = topic, partition
        return {"topic": topic, "partition": partition}

    def topic(self, *, compacted: bool = True) -> dict[str, Any]:
        """Draw a topic."""
        return {"topic": self.place(compacted=compacted)["topic"]}

    def number(self, first: int, last: int) -> int:
        """Draw a number, both ends included."""
        return self.random.randint(first, last)

    def one(self, *choices: Any) -> Any:
        """Draw one of them."""
        return self.random.choice(choices)

    def yes(self) -> bool:
        """Draw true or false."""
        return self.random.random() < 0.5

    def burst(self, **more: Any) -> dict[str, Any]:
        """Draw records that are written just before a run is hit, so that it is copying."""
        return {**more, **self.topic(), "burst": self.number(1, 40), "age": self.one(*_AGES)}


@dataclass(frozen=True, slots=True)
class _Rule:
    weight: int
    #: The arguments.
    draw: Callable[[_Draw], dict[str, Any]]
    #: Rules for which it prepares something.
    leads_to: tuple[str, ...] = ("run",)


def _produce(draw: _Draw) -> dict[str, Any]:
    return {
        **draw.place(),
        "count": draw.number(1, 30),
        "age": draw.one("present", "old", "future"),
        "codec": draw.one("none", "lz4", "zstd", "gzip", "snappy"),
        "batch": draw.one(1, 5, 1000),
    }


def _transaction(draw: _Draw) -> dict[str, Any]:
    place = draw.place(compacted=False, first=True)
    return {**place, "count": draw.number(1, 10), "commit": draw.yes(), "age": draw.one(*_AGES)}


def _trim(draw: _Draw) -> dict[str, Any]:
    # Compacted topics have neither DeleteRecords nor retention.
    return {**draw.place(compacted=False, first=True), "percent": draw.one(50, 100)}


_RULES: Mapping[str, _Rule] = {
    "produce": _Rule(6, _produce, ("run", "run", "crash", "commit", "stop")),
    "transaction": _Rule(2, _transaction),
    "hang": _Rule(1, lambda d: {**d.place(compacted=False, first=True), "count": d.number(1, 10)}, ("run", "unhang")),
    "unhang": _Rule(1, lambda d: {"commit": d.yes()}),
    "run": _Rule(
        5,
        lambda d: {"spark": d.random.random() * (_RUNS_WITHOUT_SPARK + 1) < 1},
        ("commit", "groups", "trim-target", "delete-target", "trim-source", "produce", "verify", "compact", "cutover"),
    ),
    "crash": _Rule(
        4, lambda d: d.burst(at=d.one(*_POINTS), nth=d.number(1, 3)), ("run", "run", "crash", "decide", "verify")
    ),
    "stop": _Rule(2, lambda d: d.burst(nth=d.number(1, 2)), ("run", "crash", "wake")),
    "overtake": _Rule(
        4,
        # Old records are mostly fenced by their transactions, with any kind of fencing.
        lambda d: {**d.burst(nth=d.number(1, 2)), "age": d.one("present", "present", "present", "old")},
    ),
    "wake": _Rule(2, lambda _: {}),
    "pause": _Rule(1, lambda _: {"seconds": 3}, ("run", "wake", "compact")),
    "delete-target": _Rule(3, lambda d: {**d.topic(), "again": d.yes()}, ("run", "commit", "groups", "decide")),
    "recreate-source": _Rule(
        1,
        lambda d: {**d.topic(), "runs": d.yes(), "partitions": d.one(None, None, 1, 3)},
        ("produce", "run", "decide"),
    ),
    "trim-source": _Rule(2, _trim, ("run", "decide")),
    "trim-target": _Rule(3, _trim, ("commit", "groups", "run")),
    "expire-source": _Rule(1, lambda d: d.topic(compacted=False), ("run", "decide")),
    "expire-target": _Rule(1, lambda d: d.topic(compacted=False), ("commit", "groups", "run")),
    "compact": _Rule(2, lambda d: {"partition": d.place(first=True)["partition"]}, ("pause", "run", "verify")),
    "delete-keys": _Rule(2, lambda _: {}, ("run", "groups", "verify")),
    "select": _Rule(
        2, lambda d: {**d.topic(), "how": d.one("drop", "drop", "exclude", "again")}, ("produce", "account", "decide")
    ),
    "account": _Rule(3, lambda _: {}, ("select", "decide", "transaction", "recreate-source")),
    "grow-target": _Rule(
        1, lambda d: {**d.topic(compacted=False), "count": d.one(0, 5)}, ("commit", "groups", "cutover")
    ),
    "grow": _Rule(1, lambda d: d.topic(), ("produce", "run")),
    "commit": _Rule(
        6,
        lambda d: {"group": d.random.choice(d.groups), **d.place(), "percent": d.one(0, 30, 70, 100)},
        ("groups", "groups", "trim-target", "run"),
    ),
    "groups": _Rule(5, lambda _: {}, ("commit", "run")),
    "decide": _Rule(3, lambda d: {"how": d.one("accept", "accept", "recopy", "recopy", "stop", "resume")}),
    "position": _Rule(1, lambda d: {**d.place(first=True), "to": d.one("earliest", "middle", "latest")}),
    "first-start": _Rule(1, lambda d: {"latest": d.yes()}, ("grow", "run", "produce")),
    "rename": _Rule(1, lambda d: {**d.topic(), "back": d.yes()}, ("run", "groups", "decide")),
    "policy": _Rule(1, lambda d: {"separator": d.one(*_SEPARATORS)}, ("run", "groups", "decide")),
    "foreign": _Rule(1, lambda d: d.place(compacted=False, first=True), ("run", "verify", "position")),
    "backup-ledger": _Rule(2, lambda _: {}, ("run", "delete-target", "position", "restore-ledger")),
    "restore-ledger": _Rule(2, lambda d: {"empty": d.one(False, False, True)}, ("groups", "run", "verify", "commit")),
    "lose-positions": _Rule(1, lambda _: {}, ("run", "groups", "crash")),
    "snapshot": _Rule(
        1, lambda d: {"which": d.one(*_DISKS)}, ("produce", "run", "delete-target", "trim-source", "restore-snapshot")
    ),
    "restore-snapshot": _Rule(
        2,
        lambda d: {"which": d.one(*_DISKS), "grow": d.one(None, "less", "same", "same", "more")},
        ("decide", "groups", "run", "verify", "commit", "cutover"),
    ),
    "create": _Rule(1, lambda d: {"topic": LATE_TOPIC, "count": d.number(1, 20)}),
    "appear": _Rule(
        1, lambda d: d.burst(what=d.one("topic", "partition"), at=d.one(*_POINTS)), ("produce", "run", "groups")
    ),
    "clock": _Rule(
        2,
        lambda d: d.burst(ahead=d.one(*_HOURS) * 3600, at=d.one(None, *_POINTS), nth=d.number(1, 2)),
        ("run", "crash", "produce", "groups", "stop", "clock"),
    ),
    "misaddress": _Rule(1, lambda d: {"which": d.one("source", "target")}),
    "restore": _Rule(
        2,
        lambda d: d.burst(which=d.one("source", "target"), at=d.one(None, *_POINTS), nth=d.number(1, 2)),
        ("run", "groups", "verify", "crash"),
    ),
    "resettle": _Rule(1, lambda _: {}, ("run", "groups")),
    "backfill": _Rule(
        1, lambda d: {**d.topic(compacted=False), "at": d.one(None, *_POINTS), "nth": d.number(1, 2)}, ("run", "verify")
    ),
    "verify": _Rule(2, lambda d: {"mode": d.one("full", "recent", "state")}),
    "cutover": _Rule(
        2,
        lambda d: {
            **d.topic(compacted=False),
            "groups": d.yes(),
            "at": d.one(*[None] * _CUTOVERS_WITHOUT_KILL, d.one(*_POINTS)),
            "nth": d.number(1, 2),
        },
        ("produce", "produce", "run-back", "failback", "commit", "wake", "foreign"),
    ),
    "run-back": _Rule(1, lambda d: {"at": d.one(None, None, d.one(*_POINTS)), "nth": d.number(1, 2)}, ("failback",)),
    "failback": _Rule(1, lambda d: d.topic(compacted=False), ("produce", "run", "verify", "cutover")),
}


@dataclass(frozen=True, slots=True)
class _Theme:
    #: Rules that prepare something for each other.
    rules: tuple[str, ...]
    #: Steps that meet, with the settings that they need. Random ones meet like this in one of ten sequences.
    plot: Callable[[_Draw], list[Step]] = lambda _: []
    settings: Mapping[str, Any] = field(default_factory=dict)


def _steps(draw: _Draw, place: Mapping[str, Any], *names: str, **fixed: Any) -> list[Step]:
    """Return steps on one place; arguments named here are set in all steps that have them."""
    made = []
    for name in names:
        drawn = _RULES[name].draw(draw)
        made.append({"do": name, **drawn, **{key: value for key, value in {**place, **fixed}.items() if key in drawn}})
    return made


def _lose_target(draw: _Draw) -> list[Step]:
    place = {"topic": draw.one("a", "b"), "partition": draw.number(0, 1)}
    group = _steps(draw, place, "produce", "run", "commit", "trim-target", "groups", percent=draw.one(50, 100))
    # The group stays before the records that the target loses.
    group[2]["percent"] = 0
    return [*group, *_steps(draw, place, "delete-target", "run", "produce", "run", "groups", again=True, spark=False)]


def _restore_ledger(draw: _Draw) -> list[Step]:
    place = {"topic": draw.one("a", "b"), "partition": draw.number(0, 1)}
    before = _steps(draw, place, "produce", "run", "commit", "backup-ledger", percent=70, spark=False)
    again = _steps(
        draw,
        place,
        "trim-source",
        "delete-target",
        "run",
        "decide",
        "run",
        again=True,
        how="recopy",
        spark=False,
        percent=50,
    )
    return [
        *before,
        *again,
        *_steps(draw, place, "restore-ledger", "produce", "run", "groups", empty=False, spark=False),
    ]


def _restore_source(draw: _Draw) -> list[Step]:
    place = {"topic": draw.one("a", "b"), "partition": draw.number(0, 1)}
    names = ("snapshot", "produce", "run", "restore-snapshot", "verify", "decide", "run")
    return _steps(draw, place, *names, which="source", grow="same", how="accept", spark=False)


def _restore_target(draw: _Draw) -> list[Step]:
    place = {"topic": draw.one("a", "b"), "partition": draw.number(0, 1)}
    names = ("snapshot", "produce", "run", "commit", "groups", "restore-snapshot", "groups", "verify", "decide", "run")
    return _steps(draw, place, *names, which="target", grow=draw.one(None, "same"), how="accept", spark=False)


def _appear(draw: _Draw) -> list[Step]:
    named = draw.one("create", "appear")
    return _steps(draw, {"topic": LATE_TOPIC}, named, "run", what="topic", spark=False)


def _copy_again(draw: _Draw) -> list[Step]:
    """A group gets a checkpoint that is beyond its place in the next copy."""
    place = {"topic": draw.one("a", "b"), "partition": draw.number(0, 1)}
    first = _steps(draw, place, "produce", "run", "commit", "groups", percent=100, count=30, spark=False)
    again = ("delete-target", "trim-source", "run", "decide", "run", "produce", "run", "produce", "run", "groups")
    return [*first, *_steps(draw, place, *again, again=False, percent=50, how="recopy", count=30, spark=False)]


def _jump(draw: _Draw) -> list[Step]:
    names = ("clock", "crash", "clock", "run")
    return _steps(draw, {"topic": draw.one("a", "b")}, *names, nth=1, spark=False)


def _overtake(draw: _Draw) -> list[Step]:
    return _steps(draw, {"topic": draw.one("a", "b")}, "overtake", "run", nth=1, age="present", spark=False)


def _interrupt(draw: _Draw) -> list[Step]:
    return _steps(draw, {"topic": draw.one("a", "b")}, "crash", "run", at="produced", nth=1, spark=False)


def _deselect(draw: _Draw) -> list[Step]:
    """A topic leaves the selection with records that were not copied."""
    place = {"topic": draw.one("a", "b"), "partition": draw.number(0, 1)}
    return _steps(draw, place, "produce", "run", "produce", "select", "account", how="drop", spark=False)


def _leave_uncommitted(draw: _Draw) -> list[Step]:
    """A group has an offset in one of two partitions with records."""
    topic = draw.one("a", "b")
    first, second = ({"topic": topic, "partition": number} for number in range(2))
    return [
        *_steps(draw, second, "produce"),
        *_steps(draw, first, "produce", "run", "commit", "groups", group="g", spark=False),
    ]


def _abort(draw: _Draw) -> list[Step]:
    """A transaction is aborted before its records are copied, and another one afterwards."""
    place = {"topic": draw.one("a", "b"), "partition": draw.number(0, 1)}
    return _steps(draw, place, "transaction", "account", "hang", "account", "unhang", "account", commit=False)


#: A sequence has the rules of a few themes, besides writing and running.
_THEMES = (
    _Theme(
        ("delete-target", "trim-target", "expire-target", "commit", "groups", "decide"),
        _lose_target,
        {"latest": False},
    ),
    _Theme(
        ("crash", "stop", "overtake", "wake", "transaction", "hang", "unhang"),
        _overtake,
        {"guarded": True, "latest": False},
    ),
    _Theme(
        ("crash", "stop", "overtake", "wake", "delete-target", "trim-target", "rename", "decide", "verify"),
        _interrupt,
        {"latest": False},
    ),
    _Theme(("misaddress", "restore", "resettle", "crash")),
    _Theme(
        ("backup-ledger", "restore-ledger", "delete-target", "position", "commit", "groups", "decide", "verify"),
        _restore_ledger,
        {"latest": False, "ends": None},
    ),
    _Theme(
        ("snapshot", "restore-snapshot", "trim-source", "commit", "groups", "decide", "verify"),
        _restore_source,
        {"latest": False},
    ),
    _Theme(
        ("snapshot", "restore-snapshot", "trim-target", "crash", "commit", "groups", "decide", "verify"),
        _restore_target,
        {"latest": False},
    ),
    _Theme(("create", "appear", "grow", "crash", "first-start", "commit", "groups"), _appear, {"latest": True}),
    _Theme(
        ("delete-target", "trim-source", "recreate-source", "commit", "groups", "decide", "snapshot"),
        _copy_again,
        {"latest": False, "translation": "mm2"},
    ),
    _Theme(("clock", "crash", "stop", "wake", "overtake", "compact", "verify", "groups"), _jump),
    _Theme(("lose-positions", "crash", "position", "commit", "groups", "verify")),
    _Theme(("recreate-source", "trim-source", "expire-source", "grow", "commit", "groups", "decide")),
    _Theme(("compact", "pause", "delete-keys", "crash", "verify", "trim-target")),
    _Theme(("first-start", "rename", "policy", "grow", "commit", "groups", "decide")),
    _Theme(("foreign", "position", "backfill", "decide", "verify")),
    _Theme(("cutover", "run-back", "failback", "commit", "stop", "overtake", "wake", "foreign", "decide", "verify")),
    _Theme(("select", "account", "recreate-source", "commit", "groups", "decide"), _deselect, {"latest": False}),
    _Theme(
        ("commit", "groups", "grow-target", "cutover", "failback"),
        _leave_uncommitted,
        {"latest": False, "translation": "exact"},
    ),
    _Theme(
        ("transaction", "hang", "unhang", "account", "crash", "verify"), _abort, {"latest": False, "committed": False}
    ),
)
#: Number of themes: as many seeds in a row have different ones.
THEMES = len(_THEMES)
_ALWAYS = ("produce", "run")
#: Those of `mirror.offsets = same`. The others decide about copies in ways that it refuses.
_SAME_OFFSETS = (
    *("produce", "transaction", "hang", "unhang", "run", "crash", "stop", "overtake", "wake", "pause", "compact"),
    *("trim-source", "expire-source", "trim-target", "expire-target", "delete-target", "recreate-source", "grow"),
    *("commit", "groups", "decide", "verify", "account", "create", "appear", "clock", "backup-ledger", "foreign"),
    *("restore-ledger", "lose-positions"),
)
_THEMES_OF_A_SEQUENCE = (1, 1, 2, 2, 3)


def _settings(draw: _Draw) -> Step:
    return {
        "do": "settings",
        "guarded": draw.yes(),
        "committed": draw.yes(),
        "latest": draw.one(False, False, True),
        "ends": draw.one(None, None, "a", "b"),
        "separator": draw.one(*_SEPARATORS),
        "translation": draw.one("exact", "exact", "mm2"),
    }


def sequence(number: int, length: int) -> list[Step]:
    """Return the steps of a seed: the same for the same seed and length."""
    draw = _Draw(Random(number))
    # Dealt like cards: as many seeds in a row as there are themes have different ones, in the first deal with plots.
    deal, card = divmod(number - 1, len(_THEMES))
    first = _THEMES[card]
    others = [theme for theme in _THEMES if theme is not first]
    themes = [first, *draw.random.sample(others, draw.one(*_THEMES_OF_A_SEQUENCE) - 1)]
    kept = [name for name in _RULES if name in _ALWAYS or any(name in theme.rules for theme in themes)]
    settings = _settings(draw)
    plotted = draw.yes() or deal == 0
    # Most events matter only for records that have been copied.
    begin: list[Step] = [
        {**settings, **(first.settings if plotted else {})},
        {"do": "produce", **_produce(draw)},
        {"do": "run", "spark": False},
        *(first.plot(draw) if plotted else ()),
    ]
    return _continued(draw, begin, kept, length)


def _continued(draw: _Draw, steps: list[Step], kept: Sequence[str], length: int) -> list[Step]:
    """Return these steps and others after them, of the rules that are kept."""
    weights, last = [_RULES[name].weight for name in kept], "run"
    while len(steps) < length:
        led_to = [name for name in _RULES[last].leads_to if name in kept]
        follows = bool(led_to) and draw.random.random() < _FOLLOWS
        last = draw.random.choice(led_to) if follows else draw.random.choices(kept, weights)[0]
        steps.append({"do": last, **_RULES[last].draw(draw)})
    return steps[:length]


def same_offsets_sequence(number: int, length: int) -> list[Step]:
    """Return the steps of a seed for a flow with `mirror.offsets = same`."""
    draw = _Draw(Random(number))
    kept = [name for name in _SAME_OFFSETS if name in _ALWAYS or draw.yes()]
    settings = {**_settings(draw), "guarded": False, "latest": False, "ends": None, "same": True}
    begin: list[Step] = [settings, *({"do": name, **_RULES[name].draw(draw)} for name in ("transaction", "produce"))]
    return _continued(draw, begin, kept, length)


def text_of(step: Step) -> str:
    """Return one line for display."""
    rest = " ".join(f"{name}={value}" for name, value in step.items() if name != "do")
    return f"{step['do']} {rest}".rstrip()


def texts_of(steps: Sequence[Step]) -> list[str]:
    """Return one numbered line for each step."""
    return [f"{number:3}  {text_of(step)}" for number, step in enumerate(steps)]
