"""Previews as people and programs read them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from mirror_lib.errors import MirrorError, Where
from mirror_lib.features.transforms.preview.preview import (
    Change,
    Headers,
    MadeRecord,
    Preview,
    PreviewResult,
    RecordPlace,
    SourceRecord,
)
from mirror_lib.features.transforms.preview.text import PreviewText, as_data, moment, readable, summary

FIRST = RecordPlace(2, 10)
NEW_YEAR = 1_704_067_200_123
POLICY = "mirror.poison.policy=skip: it is left out"


def record(place: RecordPlace = FIRST, value: bytes | None = b"v", headers: Headers = ()) -> SourceRecord:
    return SourceRecord(place, b"k", value, headers, NEW_YEAR)


def unchanged(given: SourceRecord) -> MadeRecord:
    return MadeRecord(given.key, given.value, given.headers, given.timestamp)


def preview(
    records: list[SourceRecord], result: PreviewResult, unreadable: Mapping[RecordPlace, MirrorError] | None = None
) -> Preview:
    return Preview.of("orders", "A.orders", records, unreadable or {}, result)


def lines(found: Preview) -> list[str]:
    """What is shown, without the blanks that make columns."""
    return [" ".join(line.split()) for line in PreviewText(POLICY).lines(found) if line]


def test_bytes_are_text_in_one_line_where_they_can_be_and_what_is_long_is_cut() -> None:
    for content, shown in [
        (None, "(null)"),
        (b"", "(empty)"),
        (b'{"id": 1, "name": "Z\xc3\xbcrich"}', '{"id": 1, "name": "Zürich"}'),
        (b"two\nlines\twith\r", "two\\nlines\\twith\\r"),
        (b"\0\0\0\0\x07", "0x0000000007"),
        (b"no \xff text", "0x6e6f20ff2074657874"),
        (b"\x1b[2J", "0x1b5b324a"),
        ("right \u202e left".encode(), "right \\u202e left"),
    ]:
        assert readable(content) == shown, shown

    text, octets = "ü" * 1000, b"\xff" * 1000

    assert readable(text.encode()) == "ü" * 200 + "... (2,000 bytes)"
    assert readable(octets) == "0x" + "ff" * 64 + "... (1,000 bytes)"
    assert readable(b"x" * 200) == "x" * 200


@given(st.binary() | st.text().map(str.encode))
def test_whatever_bytes_there_are_what_is_shown_is_one_harmless_line(content: bytes) -> None:
    assert readable(content).isprintable()


@given(st.none() | st.binary() | st.text().map(str.encode))
def test_programs_get_all_bytes_back(content: bytes | None) -> None:
    found = json.loads(json.dumps(as_data(content)))

    if found is None:
        assert content is None
    else:
        assert content == (found["text"].encode() if "text" in found else bytes.fromhex(found["hex"]))


def test_moments_are_in_utc_and_none_is_too_far_away() -> None:
    assert moment(NEW_YEAR) == "2024-01-01 00:00:00.123 UTC"
    assert moment(-1) == "1969-12-31 23:59:59.999 UTC"
    assert moment(2**62) == f"{2**62} ms"
    assert moment(None) == "no timestamp"


def test_a_changed_record_shows_what_changed_and_names_the_rest() -> None:
    given = record(headers=(("trace", b"1"), ("absent", None)))
    made = MadeRecord(given.key, b"other", given.headers, NEW_YEAR)

    found = preview([given], PreviewResult({FIRST: (made,)}))

    assert lines(found) == [
        "orders-2 offset 10, 2024-01-01 00:00:00.123 UTC",
        "key k",
        "value v",
        "headers trace=1, absent=(null)",
        "to A.orders-2",
        "* value other",
        "unchanged: key, headers",
    ]
    assert summary(found) == "1 record: 1 changed."
    same = preview([given], PreviewResult({FIRST: (unchanged(given),)}))
    assert lines(same)[-1] == "to A.orders-2, unchanged"
    none = preview([], PreviewResult())
    assert (lines(none), summary(none), none.failures) == ([], "No records.", ())


def test_the_topic_and_the_partition_count_as_changed_where_a_transform_chose_others() -> None:
    given = record()

    def made(topic: str | None, partition: int | None) -> MadeRecord:
        return MadeRecord(given.key, given.value, given.headers, given.timestamp, topic, partition)

    found = preview([given], PreviewResult({FIRST: (made("A.orders", 2), made("late", 0), made(None, None))}))

    changes = [found.changes(given, each) for each in (made("A.orders", 2), made("late", 0), made(None, None))]
    assert changes == [(), (Change.TOPIC, Change.PARTITION), ()]
    shown = lines(found)
    assert "to A.orders-2 (1 of 3), unchanged" in shown
    second = shown.index("to late-0 (2 of 3)")
    assert shown[second + 1 : second + 3] == ["* topic late", "* partition 0"]
    assert summary(found) == "1 record: 1 split into several records."


def test_a_dropped_record_names_what_drops_it_where_that_is_known() -> None:
    second = RecordPlace(2, 11)

    found = preview([record(), record(second)], PreviewResult(dropped_by={second: "live"}))

    assert [line for line in lines(found) if line.startswith("dropped")] == ["dropped", "dropped by live"]
    assert summary(found) == "2 records: 2 dropped."
    assert found.failures == ()


def test_a_failing_record_says_why_and_what_the_flow_would_do() -> None:
    error = MirrorError("no\n JSON \x1b[2J", where=Where(topic="orders", partition=2, offset=10))

    found = preview([record()], PreviewResult(failed={FIRST: error}))

    assert lines(found)[-2:] == ["cannot be transformed: no\\n JSON \\x1b[2J", POLICY]
    (told,) = PreviewText(POLICY).data(found)
    assert (told["becomes"], told["error"]["offset"], told["policy"]) == ("failed", 10, POLICY)
    assert [each.place for each in found.failures] == [FIRST]


def test_a_record_that_cannot_be_read_stands_in_its_place_and_counts_as_failing() -> None:
    before, after = record(RecordPlace(2, 9)), record(RecordPlace(3, 1))
    made = {each.place: (unchanged(each),) for each in (before, after)}

    found = preview([before, after], PreviewResult(made), {FIRST: MirrorError("damaged")})

    assert [each.place for each in found.records] == [before.place, FIRST, after.place]
    assert "orders-2 offset 10" in lines(found)
    told = PreviewText(POLICY).data(found)[1]
    assert ("value" in told, told["becomes"], told["error"]["what"]) == (False, "failed", "damaged")


def test_programs_get_a_record_before_and_after() -> None:
    given = record(value=b"\xff", headers=(("trace", None),))
    made = MadeRecord(None, b"text", (), 5)

    (told,) = PreviewText(POLICY).data(preview([given], PreviewResult({FIRST: (made,)})))

    assert told == {
        "topic": "orders",
        "partition": 2,
        "offset": 10,
        "timestamp": NEW_YEAR,
        "key": {"text": "k"},
        "value": {"hex": "ff"},
        "headers": [{"key": "trace", "value": None}],
        "becomes": "changed",
        "made": [
            {
                "topic": "A.orders",
                "partition": 2,
                "timestamp": 5,
                "key": None,
                "value": {"text": "text"},
                "headers": [],
                "changed": ["key", "value", "headers", "timestamp"],
            }
        ],
    }


class Schemas:
    """Stands for registries: everything that begins with a zero is written by a schema."""

    def text(self, side: Change, content: bytes | None, *, made: bool) -> str | None:
        if content is None or content[:1] != b"\0":
            return None
        return json.dumps({side.value: content[1:].decode(), "made": made})


def test_what_is_written_by_a_schema_is_shown_as_json_and_programs_get_the_bytes_too() -> None:
    given = SourceRecord(FIRST, b"k", b"\0old", (), NEW_YEAR)
    made = MadeRecord(b"k", b"\0new", (), NEW_YEAR)
    found, text = preview([given], PreviewResult({FIRST: (made,)})), PreviewText(POLICY, Schemas())

    shown = [" ".join(line.split()) for line in text.lines(found)]
    assert 'value {"value": "old", "made": false}' in shown
    assert '* value {"value": "new", "made": true}' in shown
    (told,) = text.data(found)
    assert told["value"] == {"text": "\0old", "json": '{"value": "old", "made": false}'}
    assert told["key"] == {"text": "k"}
