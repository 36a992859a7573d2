"""Headers that a replicator adds can be left out of the comparison; nothing else of a record changes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.features.audit.ignored_headers import without_headers
from mirror_lib.features.verify.compare.record_columns import columns
from tests.support.records.logs import spans
from tests.support.records.record_batches import SourceRecord, batch

_BYTES = st.none() | st.binary(max_size=200)
_HEADERS = st.lists(st.tuples(st.sampled_from(["kept", "added", "other"]), _BYTES), max_size=5)


def tail(record: SourceRecord) -> bytes:
    """What follows the record's deltas on the wire, as kafka-python writes it."""
    (span,) = spans(batch([record]))
    return columns(span).tails[0]


@given(key=_BYTES, value=_BYTES, headers=_HEADERS)
def test_given_ignored_headers_then_the_rest_is_as_if_they_had_never_been_there(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    rewrite = without_headers(["added", "absent"])
    whole = SourceRecord(0, key=key, value=value, headers=tuple(headers))
    rest = SourceRecord(0, key=key, value=value, headers=tuple(each for each in headers if each[0] != "added"))

    assert rewrite is not None
    assert rewrite(tail(whole)) == tail(rest)


@given(st.binary(max_size=40))
def test_given_bytes_that_are_no_record_then_they_are_compared_as_they_are_or_changed_without_an_error(
    data: bytes,
) -> None:
    rewrite = without_headers(["added"])

    assert rewrite is not None
    assert len(rewrite(data)) <= len(data)


def test_given_no_names_then_nothing_is_rewritten() -> None:
    assert without_headers(()) is None
