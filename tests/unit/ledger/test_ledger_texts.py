"""Texts that no database takes, from people, brokers and records: every column of the ledger takes them."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import JSON, Boolean, String
from sqlalchemy.dialects import sqlite

from mirror_lib.ledger.metadata import StoredJson, StoredString
from mirror_lib.ledger.store import Ledger
from tests.support.ledger.tables import METADATA

ODD = "half \ud800 and \udfff, NUL \x00, Zürich"
STORED = "half ? and ?, NUL \ufffd, Zürich"


def test_given_odd_texts_of_a_person_when_noted_then_the_audit_can_be_read_and_sent(ledger: Ledger) -> None:
    detail = {"note": ODD, ODD: [ODD, {"deep": ODD}], "number": 7, "none": None}

    ledger.audits.note(by=ODD, action="gap-stop", subject=ODD, flow=ODD, detail=detail)

    (row,) = ledger.audits.newest()
    assert (row.by, row.subject, row.flow) == (STORED, STORED, STORED)
    assert row.detail == {"note": STORED, STORED: [STORED, {"deep": STORED}], "number": 7, "none": None}
    json.dumps(row.detail, ensure_ascii=False).encode()
    assert ledger.audits.newest(flow=ODD) == (row,)


def test_given_a_note_that_an_earlier_version_has_stored_when_read_then_it_can_be_sent() -> None:
    assert StoredJson().process_result_value(json.loads(r'{"note": "\ud800"}'), sqlite.dialect()) == {"note": "?"}


def test_no_column_takes_texts_as_they_come() -> None:
    for table in METADATA.sorted_tables:
        for column in table.columns:
            assert not isinstance(column.type, String | JSON) or isinstance(column.type, Boolean), column


@given(st.text(st.characters()))
def test_any_text_becomes_one_that_can_be_stored_and_most_stay(text: str) -> None:
    stored = StoredString().process_bind_param(text, sqlite.dialect())

    assert stored is not None
    assert "\x00" not in stored
    assert stored.encode().decode() == stored
    assert len(stored) == len(text)
    if not any(char == "\x00" or 0xD800 <= ord(char) <= 0xDFFF for char in text):
        assert stored == text
