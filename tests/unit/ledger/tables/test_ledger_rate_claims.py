"""How runs share what clusters allow them, on SQLite and PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import update

from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.rows import RateSide
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.rate_claims import LEAST_PART, RateAsk, fair_share, grant

LIMIT = 12_000_000
READ_A = RateAsk(RateSide.READ, "A", LIMIT)
WRITE_B = RateAsk(RateSide.WRITE, "B", 4_000_000)

WANTS = st.lists(st.none() | st.integers(1, 10**9), min_size=1, max_size=8)


def begin(ledger: Ledger, flow: str, run_id: str = "r1") -> None:
    """A run of the flow lives."""
    ledger.acquire_lock(flow=flow, run_id=run_id, holder=f"process of {run_id}", lease_seconds=30.0)


def share(
    ledger: Ledger, flow: str, *, wanted: int | None = None, asks: Sequence[RateAsk] = (READ_A,), run_id: str = "r1"
) -> int:
    claims = ledger.claim_rate(flow=flow, run_id=run_id, wanted=wanted, asks=asks)
    assert len({claim.bytes_per_second for claim in claims}) == 1
    return claims[0].bytes_per_second


@given(st.integers(100, 10**9), WANTS)
def test_the_shares_of_all_are_never_above_the_limit_and_use_all_of_it_that_is_wanted(
    limit: int, wants: list[int | None]
) -> None:
    shares = [fair_share(limit, want, wants[:at] + wants[at + 1 :]) for at, want in enumerate(wants)]

    wanted = sum(limit if want is None else want for want in wants)
    # A share is a whole number of bytes.
    assert min(limit, wanted) - len(wants) <= sum(shares) <= limit
    assert all(want is None or share <= want for share, want in zip(shares, wants, strict=True))


@given(st.integers(100, 10**9), WANTS)
def test_nobody_gets_less_than_another_unless_it_wants_less(limit: int, wants: list[int | None]) -> None:
    shares = [fair_share(limit, want, wants[:at] + wants[at + 1 :]) for at, want in enumerate(wants)]

    for want, own in zip(wants, shares, strict=True):
        assert own >= max(shares) - 1 or own == want


@given(st.integers(1_000, 10**9), st.lists(st.integers(0, 7), min_size=1, max_size=40))
def test_whoever_comes_and_claims_anew_the_sum_is_above_the_limit_by_a_tenth_of_a_share_each_at_most(
    limit: int, order: list[int]
) -> None:
    claimed: dict[int, int] = {}

    for member in order:
        claimed.pop(member, None)
        fair = fair_share(limit, None, [None] * len(claimed))
        claimed[member] = grant(limit, fair, claimed.values())

        assert sum(claimed.values()) <= limit + sum(limit // parts // LEAST_PART + 1 for parts in range(1, 9))


@given(st.integers(1_000, 10**9), st.integers(1, 8))
def test_once_everybody_has_claimed_anew_all_have_the_same_and_the_limit_is_kept(limit: int, members: int) -> None:
    claimed: dict[int, int] = {}

    for _ in range(3):
        for member in range(members):
            claimed.pop(member, None)
            fair = fair_share(limit, None, [None] * len(claimed))
            claimed[member] = grant(limit, fair, claimed.values())

    assert sum(claimed.values()) <= limit
    assert set(claimed.values()) == {limit // members}


def test_given_a_second_run_then_it_gets_a_little_at_once_and_its_half_when_the_first_has_claimed_anew(
    ledger: Ledger,
) -> None:
    begin(ledger, "A->B")
    begin(ledger, "A->C")

    assert share(ledger, "A->B") == LIMIT
    assert share(ledger, "A->C") == LIMIT // 2 // LEAST_PART
    assert share(ledger, "A->B") == LIMIT // 2
    assert share(ledger, "A->C") == LIMIT // 2


def test_given_a_run_that_wants_little_then_the_other_has_the_rest(ledger: Ledger) -> None:
    begin(ledger, "A->B")
    begin(ledger, "A->C")

    assert share(ledger, "A->B", wanted=1_000) == 1_000
    assert share(ledger, "A->C") == LIMIT - 1_000


def test_given_limits_on_both_sides_then_the_lower_counts_and_the_rest_of_the_higher_is_free(ledger: Ledger) -> None:
    begin(ledger, "A->B")
    begin(ledger, "A->C")

    assert share(ledger, "A->B", asks=(READ_A, WRITE_B)) == WRITE_B.limit
    assert share(ledger, "A->C") == LIMIT - WRITE_B.limit


def test_reading_and_writing_and_other_clusters_do_not_count(ledger: Ledger) -> None:
    for flow, ask in (
        ("A->B", READ_A),
        ("C->A", RateAsk(RateSide.WRITE, "A", LIMIT)),
        ("C->B", RateAsk(RateSide.READ, "C", LIMIT)),
    ):
        begin(ledger, flow)

        assert share(ledger, flow, asks=(ask,)) == LIMIT


def test_given_shares_that_were_given_back_then_they_are_free(ledger: Ledger) -> None:
    begin(ledger, "A->B")
    begin(ledger, "A->C")
    share(ledger, "A->B")

    ledger.release_rate(flow="A->B", run_id="another run")
    assert [claim.flow for claim in ledger.rate_claims()] == ["A->B"]
    ledger.release_rate(flow="A->B", run_id="r1")

    assert ledger.rate_claims() == ()
    assert share(ledger, "A->C") == LIMIT


def test_given_a_run_that_died_when_its_lease_has_ended_then_its_share_is_free(ledger: Ledger) -> None:
    begin(ledger, "A->B")
    share(ledger, "A->B")
    row = ledger.lock_holder("A->B")
    assert row is not None
    with ledger.database.write() as connection:
        connection.execute(
            update(METADATA.tables["run_lock"]).values(renewed_at=row.renewed_at - timedelta(seconds=31))
        )
    begin(ledger, "A->C")

    assert share(ledger, "A->C") == LIMIT


def test_given_many_that_claim_at_the_same_time_then_each_is_counted(ledger: Ledger) -> None:
    flows = [f"A->{number}" for number in range(6)]
    for flow in flows:
        begin(ledger, flow)

    with ThreadPoolExecutor(len(flows)) as pool:
        for _ in range(3):
            list(pool.map(lambda flow: share(ledger, flow), flows))

    claims = ledger.rate_claims()
    assert len(claims) == len(flows)
    assert sum(claim.bytes_per_second for claim in claims) <= LIMIT + LIMIT // LEAST_PART
