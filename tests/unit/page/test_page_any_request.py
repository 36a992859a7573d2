"""Whatever is asked: an answer or a refusal, never a crash."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.page_client import Client

FLOW = "/api/flows/mirror__berlin__cloud"
PATHS = [
    "/api/overview",
    FLOW,
    *(
        f"{FLOW}/{part}"
        for part in (
            "history",
            "runs",
            "partitions",
            "partitions/strip",
            "groups",
            "groups/partitions",
            "verification",
            "gaps",
            "heartbeats",
            "steps",
            "audit",
        )
    ),
    "/api/cutovers",
    "/metrics",
]
NAMES = [
    "page",
    "size",
    "sort",
    "descending",
    "topic",
    "reason",
    "outlook",
    "lagging",
    "hours",
    "limit",
    "group",
    "name",
]
VALUES = st.one_of(
    st.text(max_size=30),
    st.integers().map(str),
    st.floats().map(str),
    st.sampled_from(["", "behind", "topic", "true", "no", "1e400", "-1", "0", "100000", "%", "_", "\x00", "tight"]),
)


@settings(max_examples=150)
@given(path=st.sampled_from(PATHS), query=st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=5))
def test_no_query_makes_a_route_crash(reading: Client, path: str, query: list[tuple[str, str]]) -> None:
    answer = reading.get(f"{path}?{urlencode(query, errors='replace')}")

    assert answer.status_code in (200, 422)


@settings(max_examples=60)
@given(
    name=st.text(min_size=1, max_size=40), place=st.sampled_from(["/api/flows/{}", "/api/cutovers/{}", "/static/{}"])
)
def test_no_name_makes_a_route_crash(reading: Client, name: str, place: str) -> None:
    answer = reading.get(place.format(quote(name, safe="", errors="replace")))

    assert answer.status_code in (200, 307, 404, 422)
