"""A preview as text for the console and as data for programs. Pure.

Records may contain anything: only plain text of them is written to a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from mirror_lib.features.transforms.preview.preview import (
    Becomes,
    Change,
    Dropped,
    Fails,
    Headers,
    MadeRecord,
    Outcome,
    Preview,
    PreviewedRecord,
    SourceRecord,
)
from mirror_lib.printable import printable

#: Maximum number of characters shown of a key, a value or a header, and of bytes of one that is not text.
_LONGEST_TEXT, _LONGEST_BYTES = 200, 64
_NULL, _EMPTY = "(null)", "(empty)"
_BLANKS = "\n\r\t"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: The columns of a record in the order they are shown, as wide as the longest name.
_WIDTH = 9


def readable(content: bytes | None) -> str:
    """Return bytes for display: UTF-8 text in one line, else hexadecimal; long ones are cut with a mark."""
    if content is None:
        return _NULL
    if not content:
        return _EMPTY
    text = _as_text(content)
    if text is None:
        return f"0x{content[:_LONGEST_BYTES].hex()}{_size_text(content, len(content) > _LONGEST_BYTES)}"
    shown = printable(text[:_LONGEST_TEXT])
    return f"{shown}{_size_text(content, len(text) > _LONGEST_TEXT)}"


def as_data(content: bytes | None, json: str | None = None) -> dict[str, str] | None:
    """Return all bytes for programs: as `text` if they are UTF-8, else as `hex`.

    Args:
        json: the decoded content, added to it.
    """
    if content is None:
        return None
    more = {} if json is None else {"json": json}
    try:
        return {"text": content.decode(), **more}
    except UnicodeDecodeError:
        return {"hex": content.hex(), **more}


def moment(timestamp: int | None) -> str:
    """Return a time in UTC, from epoch milliseconds."""
    if timestamp is None:
        return "no timestamp"
    try:
        found = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return f"{timestamp} ms"
    return f"{found:%Y-%m-%d %H:%M:%S}.{found.microsecond // 1000:03} UTC"


class Texts(Protocol):
    """Decodes keys and values with a schema."""

    def text(self, side: Change, content: bytes | None, *, made: bool) -> str | None:
        """Return the JSON of a key or a value; None if there is none.

        Args:
            made: True for a record to be written, False for one that was read.
        """


class PreviewText:
    """Previews of one flow as text and as data."""

    def __init__(self, policy: str, texts: Texts | None = None) -> None:
        """Use texts.

        Args:
            policy: what the flow does with a poison record, as a sentence.
            texts: for keys and values with schemas.
        """
        self._policy = policy
        self._texts = texts

    def lines(self, preview: Preview) -> Iterator[str]:
        """Yield every record, and below it its outcome."""
        for each in preview.records:
            yield f"{preview.topic}-{each.place.partition} offset {each.place.offset}{_time(each.record)}"
            if each.record is not None:
                yield from self._record_lines(each.record)
            yield from self._outcome_lines(preview, each)
            yield ""

    def data(self, preview: Preview) -> list[dict[str, Any]]:
        """The same for programs."""
        return [self._record_data(preview, each) for each in preview.records]

    def _record_lines(self, record: SourceRecord) -> Iterator[str]:
        yield _column(" ", Change.KEY, self._side_text(Change.KEY, record.key))
        yield _column(" ", Change.VALUE, self._side_text(Change.VALUE, record.value))
        if record.headers:
            yield _column(" ", Change.HEADERS, _headers(record.headers))

    def _outcome_lines(self, preview: Preview, each: PreviewedRecord) -> Iterator[str]:
        outcome: Outcome = each.outcome
        if isinstance(outcome, Fails):
            yield f"  cannot be transformed: {_one_line(outcome.error.what)}"
            yield f"  {self._policy}"
        elif isinstance(outcome, Dropped):
            yield "  dropped" if outcome.by is None else f"  dropped by {outcome.by}"
        elif each.record is not None:
            count = len(outcome.records)
            for number, made in enumerate(outcome.records, 1):
                yield from self._made_lines(preview, each.record, made, f" ({number} of {count})" if count > 1 else "")

    def _made_lines(self, preview: Preview, record: SourceRecord, made: MadeRecord, which: str) -> Iterator[str]:
        topic, partition = preview.target(record, made)
        changes = preview.changes(record, made)
        yield f"  to {_one_line(topic)}-{partition}{which}{'' if changes else ', unchanged'}"
        shown = {
            Change.KEY: self._side_text(Change.KEY, made.key, made=True),
            Change.VALUE: self._side_text(Change.VALUE, made.value, made=True),
            Change.HEADERS: _headers(made.headers),
            Change.TIMESTAMP: moment(made.timestamp),
            Change.TOPIC: _one_line(topic),
            Change.PARTITION: str(partition),
        }
        for change in changes:
            yield _column("*", change, shown[change])
        same = [change.value for change in (Change.KEY, Change.VALUE, Change.HEADERS) if change not in changes]
        if changes and same:
            yield f"    unchanged: {', '.join(same)}"

    def _record_data(self, preview: Preview, each: PreviewedRecord) -> dict[str, Any]:
        record, outcome = each.record, each.outcome
        found: dict[str, Any] = {"topic": preview.topic, **each.place._asdict()}
        if record is not None:
            found |= {"timestamp": record.timestamp, **self._content(record)}
        found["becomes"] = kind_of(preview, each)
        if isinstance(outcome, Fails):
            found |= {"error": outcome.error.attributes(), "policy": self._policy}
        elif isinstance(outcome, Dropped):
            found["dropped_by"] = outcome.by
        elif record is not None:
            found["made"] = [self._made_data(preview, record, made) for made in outcome.records]
        return found

    def _made_data(self, preview: Preview, record: SourceRecord, made: MadeRecord) -> dict[str, Any]:
        topic, partition = preview.target(record, made)
        return {
            "topic": topic,
            "partition": partition,
            "timestamp": made.timestamp,
            **self._content(made),
            "changed": [change.value for change in preview.changes(record, made)],
        }

    def _content(self, record: SourceRecord | MadeRecord) -> dict[str, Any]:
        made = isinstance(record, MadeRecord)
        return {
            "key": as_data(record.key, self._by_schema(Change.KEY, record.key, made=made)),
            "value": as_data(record.value, self._by_schema(Change.VALUE, record.value, made=made)),
            "headers": [{"key": name, "value": as_data(value)} for name, value in record.headers],
        }

    def _side_text(self, side: Change, content: bytes | None, *, made: bool = False) -> str:
        found = self._by_schema(side, content, made=made)
        return readable(content if found is None else found.encode())

    def _by_schema(self, side: Change, content: bytes | None, *, made: bool) -> str | None:
        return None if self._texts is None else self._texts.text(side, content, made=made)


def summary(preview: Preview) -> str:
    """Return the number of records, by outcome."""
    counts = dict.fromkeys(("changed", "unchanged", "several", "dropped", "failed"), 0)
    for each in preview.records:
        counts[kind_of(preview, each)] += 1
    figures = {
        "changed": "changed",
        "unchanged": "not changed",
        "several": "split into several records",
        "dropped": "dropped",
        "failed": "cannot be transformed",
    }
    parts = [f"{count:,} {figures[kind]}" for kind, count in counts.items() if count]
    count = len(preview.records)
    return f"{count:,} {'record' if count == 1 else 'records'}: {', '.join(parts)}." if parts else "No records."


def kind_of(preview: Preview, each: PreviewedRecord) -> str:
    """Return the outcome of a record in a word: changed, unchanged, several, dropped or failed."""
    match each.outcome:
        case Fails():
            return "failed"
        case Dropped():
            return "dropped"
        case Becomes((made,)) if each.record is not None:
            return "changed" if preview.changes(each.record, made) else "unchanged"
        case _:
            return "several"


def _as_text(content: bytes) -> str | None:
    """Return the text of bytes, if it is readable."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return None
    return text if all(each >= " " or each in _BLANKS for each in text) else None


def _size_text(content: bytes, is_cut: bool) -> str:
    return f"... ({len(content):,} bytes)" if is_cut else ""


def _time(record: SourceRecord | None) -> str:
    return "" if record is None else f", {moment(record.timestamp)}"


def _column(marked: str, change: Change, content: str) -> str:
    return f"  {marked} {change.value:{_WIDTH}}  {content}"


def _headers(headers: Headers) -> str:
    pairs = (f"{_NULL if name is None else readable(name.encode())}={readable(value)}" for name, value in headers)
    return ", ".join(pairs) or "(none)"


def _one_line(text: str) -> str:
    """Return an error's text, which may quote a record, in one line."""
    return printable(" ".join(text.split()))
