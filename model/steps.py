"""What the world can do to a flow, as plain data: hypothesis draws sequences of it, and a script is a list of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

#: One step: its `do` names the rule, the rest are the rule's arguments. Plain JSON, so that anybody can write one.
Step = dict[str, Any]

#: The cleaner is at work in the last one.
TOPICS = ("a", "b", "c")
COMPACTED_TOPIC = "c"
GROUPS = ("g", "h")
_ANY_TOPIC = st.sampled_from(["a", "a", "b", "b", "c"])
#: Compacted topics know neither DeleteRecords nor retention, and the model's transactions have records without keys.
_TOPIC = st.sampled_from(["a", "b"])
#: Of topics with fewer partitions it means one of those.
_PARTITION = st.integers(0, 3)
_FIRST = st.integers(0, 1)
_HALF = st.sampled_from([50, 100])
#: Records that are written just before a run is struck, so that there is something to strike.
_BURST = st.integers(1, 40)
_AGE = st.sampled_from(["present", "old"])
#: Of those that end by themselves, for each that starts Spark, which takes half a minute.
_RUNS_WITHOUT_SPARK = 29
_POINTS = ["opened", "before-produce", "produced", "before-closed", "closed", "before-end"]


def _rule(name: str, **arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.fixed_dictionaries({"do": st.just(name), **arguments})


#: Rule -> its weight and how it is drawn.
_RULES: Mapping[str, tuple[int, st.SearchStrategy[Step]]] = {
    "produce": (
        8,
        _rule(
            "produce",
            topic=_ANY_TOPIC,
            partition=_PARTITION,
            count=st.integers(1, 30),
            age=st.sampled_from(["present", "old", "future"]),
            codec=st.sampled_from(["none", "lz4", "zstd", "gzip", "snappy"]),
            batch=st.sampled_from([1, 5, 1000]),
        ),
    ),
    "transaction": (
        2,
        _rule(
            "transaction",
            topic=_TOPIC,
            partition=_FIRST,
            count=st.integers(1, 10),
            commit=st.booleans(),
            age=_AGE,
        ),
    ),
    "hang": (1, _rule("hang", topic=_TOPIC, partition=_FIRST, count=st.integers(1, 10))),
    "unhang": (1, _rule("unhang", commit=st.booleans())),
    "run": (6, _rule("run", spark=st.sampled_from([*[False] * _RUNS_WITHOUT_SPARK, True]))),
    "crash": (
        5,
        _rule(
            "crash",
            at=st.sampled_from(_POINTS),
            nth=st.integers(1, 3),
            topic=_ANY_TOPIC,
            burst=_BURST,
            age=_AGE,
        ),
    ),
    "stop": (2, _rule("stop", nth=st.integers(1, 2), topic=_ANY_TOPIC, burst=_BURST, age=_AGE)),
    "overtake": (2, _rule("overtake", nth=st.integers(1, 2), topic=_ANY_TOPIC, burst=_BURST, age=_AGE)),
    "wake": (2, _rule("wake")),
    "pause": (1, _rule("pause", seconds=st.just(3))),
    "delete-target": (2, _rule("delete-target", topic=_ANY_TOPIC, again=st.booleans())),
    "recreate-source": (1, _rule("recreate-source", topic=_ANY_TOPIC)),
    "trim-source": (2, _rule("trim-source", topic=_TOPIC, partition=_FIRST, percent=_HALF)),
    "trim-target": (2, _rule("trim-target", topic=_TOPIC, partition=_FIRST, percent=_HALF)),
    "expire-source": (1, _rule("expire-source", topic=_TOPIC)),
    "expire-target": (1, _rule("expire-target", topic=_TOPIC)),
    "compact": (2, _rule("compact", partition=_FIRST)),
    "grow": (1, _rule("grow", topic=_ANY_TOPIC)),
    "commit": (
        7,
        _rule(
            "commit",
            group=st.sampled_from(GROUPS),
            topic=_ANY_TOPIC,
            partition=_PARTITION,
            percent=st.sampled_from([0, 30, 70, 100]),
        ),
    ),
    "groups": (4, _rule("groups")),
    "decide": (3, _rule("decide", how=st.sampled_from(["accept", "recopy"]))),
    "position": (1, _rule("position", topic=_ANY_TOPIC, partition=_FIRST, to=st.sampled_from(["earliest", "latest"]))),
    "rename": (1, _rule("rename", topic=_ANY_TOPIC, back=st.booleans())),
    "foreign": (1, _rule("foreign", topic=_TOPIC, partition=_FIRST)),
    "misaddress": (1, _rule("misaddress", which=st.sampled_from(["source", "target"]))),
    "backfill": (
        1,
        _rule("backfill", topic=_TOPIC, at=st.sampled_from([None, *_POINTS]), nth=st.integers(1, 2)),
    ),
}
_SETTINGS = _rule(
    "settings", guarded=st.booleans(), committed=st.booleans(), latest=st.sampled_from([False, False, True])
)


def _any_step() -> st.SearchStrategy[Step]:
    weighted = [name for name, (weight, _) in _RULES.items() for _ in range(weight)]
    return st.sampled_from(weighted).flatmap(lambda name: _RULES[name][1])


def sequence(number: int, length: int) -> list[Step]:
    """The steps of a seed: the same for the same seed, length and version of hypothesis."""
    drawn: list[list[Step]] = []

    # The first example of a seed is the simplest one for every seed.
    @seed(number)
    @settings(
        max_examples=3,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(_SETTINGS, st.lists(_any_step(), min_size=length - 1, max_size=length - 1))
    def draw(first: Step, steps: list[Step]) -> None:
        drawn.append([first, *steps])

    draw()
    return drawn[-1]


def text_of(step: Step) -> str:
    """One line for people."""
    rest = " ".join(f"{name}={value}" for name, value in step.items() if name != "do")
    return f"{step['do']} {rest}".rstrip()


def texts_of(steps: Sequence[Step]) -> list[str]:
    """One numbered line a step."""
    return [f"{number:3}  {text_of(step)}" for number, step in enumerate(steps)]
