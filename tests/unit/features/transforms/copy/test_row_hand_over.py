"""What the halves of transformed jobs say to each other, as JSON."""

from __future__ import annotations

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib import errors
from mirror_lib.errors import MirrorError, Where, error_from_json, error_to_json
from mirror_lib.features.transforms.copy.model import ReadEnd, ends_from_json, ends_to_json
from mirror_lib.features.transforms.record_mark import UntransformableRecordError
from mirror_lib.features.transforms.smt.errors import SmtError
from mirror_lib.features.verify.findings import Stopped
from mirror_lib.features.verify.transformed.model import Progress, RangeEnd
from mirror_lib.planning.model import Poison
from mirror_lib.records.last_records import LastRecord

_KINDS = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, MirrorError)]
_OFFSETS = st.integers(0, 2**63 - 1)
#: Lone surrogates too: file names and broken texts bring them.
_TEXTS = st.text(st.characters(), max_size=20)
_PLACES = st.builds(
    Where,
    flow=st.none() | _TEXTS,
    cluster=st.none() | _TEXTS,
    topic=st.none() | _TEXTS,
    partition=st.none() | st.integers(0, 2**31 - 1),
    offset=st.none() | _OFFSETS,
)


@st.composite
def mirror_errors(draw: st.DrawFn) -> MirrorError:
    return draw(st.sampled_from(_KINDS))(draw(_TEXTS), where=draw(_PLACES), action=draw(_TEXTS))


_POISON = st.builds(
    Poison,
    first_offset=_OFFSETS,
    next_offset=_OFFSETS,
    records=st.none() | _OFFSETS,
    cause=_TEXTS,
    detail=_TEXTS,
    first_timestamp=st.none() | st.integers(-(2**63), 2**63 - 1),
    last_timestamp=st.none() | st.integers(-(2**63), 2**63 - 1),
    quarantined=st.booleans(),
)
_READ_ENDS = st.builds(
    ReadEnd,
    source_next=_OFFSETS,
    error=st.none() | mirror_errors(),
    poison=st.lists(_POISON, max_size=3).map(tuple),
    leader_epoch=st.none() | st.integers(-1, 2**31 - 1),
    last_record=st.none() | st.builds(LastRecord, _OFFSETS, _OFFSETS, _OFFSETS),
)
_RANGE_ENDS = st.builds(
    RangeEnd,
    source_next=_OFFSETS,
    bytes=_OFFSETS,
    log_start=_OFFSETS,
    skipped=_OFFSETS,
    stopped=st.none() | st.sampled_from(Stopped),
    error=st.none() | mirror_errors(),
)


def same(error: MirrorError | None) -> object:
    return error if error is None else (type(error), error.what, error.where, error.action)


def parts(end: ReadEnd | RangeEnd) -> tuple[object, object]:
    """What is equal for the same ends, although no error is equal to another one."""
    return replace(end, error=None), same(end.error)


@given(st.dictionaries(st.integers(0, 100_000), _READ_ENDS, max_size=4))
def test_given_the_ends_of_reading_when_they_go_through_json_then_they_are_the_same(ends: dict[int, ReadEnd]) -> None:
    back = ends_from_json(json.loads(json.dumps(ends_to_json(ends))))

    assert [(number, parts(end)) for number, end in back.items()] == [(n, parts(end)) for n, end in ends.items()]


@given(st.dictionaries(st.integers(0, 100_000), _RANGE_ENDS, max_size=4), st.integers(-1, 10), _OFFSETS)
def test_given_the_progress_of_a_comparison_when_it_goes_through_json_then_it_is_the_same(
    ends: dict[int, RangeEnd], number: int, log_start: int
) -> None:
    progress = Progress(ends, number, log_start)

    back = Progress.from_json(json.loads(json.dumps(progress.to_json())))

    assert (back.number, back.log_start) == (number, log_start)
    assert [(key, parts(end)) for key, end in back.ends.items()] == [(key, parts(end)) for key, end in ends.items()]


def test_given_an_error_with_parts_of_its_own_when_it_goes_through_json_then_its_nearest_type_is_kept() -> None:
    error = SmtError("transforms.mask", "MaskField$Value", "it has no fields", where=Where(topic="t"))

    back = error_from_json(error_to_json(error))

    assert back is not None
    assert isinstance(error, type(back))
    assert (back.what, back.where, back.action) == (error.what, error.where, error.action)


def test_given_an_error_of_another_module_when_it_goes_through_json_then_it_is_of_the_same_type() -> None:
    error = UntransformableRecordError("it has no fields", where=Where(topic="t", offset=7), action="mend it")

    assert same(error_from_json(error_to_json(error))) == same(error)
