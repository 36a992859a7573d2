"""Tables of the processes that run cutovers, and of their questions. Each change is one conditional transaction."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy import CheckConstraint, ColumnElement, Connection, ForeignKey, Table, and_, select, update

from mirror_lib.ledger.metadata import StoredText, column, key, optional
from mirror_lib.ledger.models import METADATA
from mirror_lib.ledger.store import Ledger
from mirror_lib.ledger.tables.writing import now

# See `CarrierRow`.
_CARRIERS = Table(
    "cutover_carrier",
    METADATA,
    key("cutover", str, ForeignKey("cutover.name", ondelete="CASCADE")),
    key("id", str),
    column("kind", str),
    column("by", str),
    column("holder", str),
    column("since", datetime),
    optional("step", str),
    optional("ended_at", datetime),
    optional("ended_as", str),
    CheckConstraint("kind IN ('run', 'rollback')", name="kind"),
)
# See `QuestionRow`.
_QUESTIONS = Table(
    "cutover_question",
    METADATA,
    key("cutover", str, ForeignKey("cutover.name", ondelete="CASCADE")),
    key("step", str),
    key("attempt", int),
    column("carrier", str),
    column("asked_at", datetime),
    optional("waits_until", datetime),
    optional("answer", str),
    optional("answered_by", str),
    optional("answered_at", datetime),
    optional("note", StoredText()),
    optional("ended_at", datetime),
    optional("ended_as", str),
    CheckConstraint("answer IN ('yes', 'no')", name="answer"),
)
DIED = "died"


@dataclass(frozen=True, slots=True, kw_only=True)
class CarrierRow:
    """One process that runs or rolls back a cutover, for as long as it holds the cutover's lock."""

    cutover: str
    #: The run that the lock names.
    id: str
    #: `run` or `rollback`.
    kind: str
    by: str
    #: The same as in the lock.
    holder: str
    since: datetime
    #: The current or last step; None before the process has observed the clusters.
    step: str | None = None
    ended_at: datetime | None = None
    #: The cutover's state at the end of the process, one of `model.CutoverState`; `died` if it recorded none.
    ended_as: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRow:
    """A question that one attempt at a step asks an operator. Open until it is answered or ended."""

    cutover: str
    step: str
    attempt: int
    #: The process that asks.
    carrier: str
    asked_at: datetime
    #: When that process stops waiting.
    waits_until: datetime | None = None
    #: `yes` or `no`.
    answer: str | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None
    note: str | None = None
    ended_at: datetime | None = None
    #: `taken`, `unanswered`, or `died` with the process that asked.
    ended_as: str | None = None


class Carriers:
    """Processes and questions of cutovers. Every method is one transaction and raises `LedgerError`."""

    def __init__(self, ledger: Ledger) -> None:
        self._database = ledger.database

    def begin(self, row: CarrierRow) -> None:
        """Record that a process holds a cutover's lock; all earlier processes and their questions end."""
        with self._database.write() as connection:
            before = (_CARRIERS.c.cutover == row.cutover) & _CARRIERS.c.ended_at.is_(None)
            connection.execute(update(_CARRIERS).where(before).values(ended_at=now(), ended_as=DIED))
            _end_questions(connection, _QUESTIONS.c.cutover == row.cutover, DIED)
            connection.execute(_CARRIERS.insert().values(asdict(row)))

    def move(self, cutover: str, carrier: str, step: str) -> None:
        """Record the current step of a process."""
        with self._database.write() as connection:
            connection.execute(update(_CARRIERS).where(_carrier(cutover, carrier)).values(step=step))

    def end(self, cutover: str, carrier: str, *, ended_as: str) -> None:
        """Record the end of a process; its questions end with it."""
        with self._database.write() as connection:
            mine = _carrier(cutover, carrier) & _CARRIERS.c.ended_at.is_(None)
            connection.execute(update(_CARRIERS).where(mine).values(ended_at=now(), ended_as=ended_as))
            open_questions = (_QUESTIONS.c.cutover == cutover) & (_QUESTIONS.c.carrier == carrier)
            _end_questions(connection, open_questions, "unanswered")

    def of(self, cutover: str) -> tuple[CarrierRow, ...]:
        """All processes that ran a cutover, oldest first."""
        return tuple(self.of_all((cutover,))[cutover])

    def of_all(self, cutovers: Collection[str]) -> dict[str, list[CarrierRow]]:
        """As `of` for each of these cutovers, by name."""
        query = select(_CARRIERS).where(_CARRIERS.c.cutover.in_(cutovers)).order_by(_CARRIERS.c.since, _CARRIERS.c.id)
        found: dict[str, list[CarrierRow]] = {name: [] for name in cutovers}
        with self._database.read() as connection:
            for row in connection.execute(query).mappings():
                found[row["cutover"]].append(CarrierRow(**row))
        return found

    def ask(self, row: QuestionRow) -> None:
        """Open a question."""
        with self._database.write() as connection:
            connection.execute(_QUESTIONS.insert().values(asdict(row)))

    def questions(self, cutover: str) -> tuple[QuestionRow, ...]:
        """All questions of a cutover, oldest first."""
        return tuple(self.questions_of_all((cutover,))[cutover])

    def questions_of_all(self, cutovers: Collection[str]) -> dict[str, list[QuestionRow]]:
        """As `questions` for each of these cutovers, by name."""
        columns = _QUESTIONS.c
        query = select(_QUESTIONS).where(columns.cutover.in_(cutovers)).order_by(columns.asked_at, columns.attempt)
        found: dict[str, list[QuestionRow]] = {name: [] for name in cutovers}
        with self._database.read() as connection:
            for row in connection.execute(query).mappings():
                found[row["cutover"]].append(QuestionRow(**row))
        return found

    def question(self, cutover: str, step: str, attempt: int) -> QuestionRow | None:
        """One question."""
        query = select(_QUESTIONS).where(_question(cutover, step, attempt))
        with self._database.read() as connection:
            found = connection.execute(query).mappings().one_or_none()
            return None if found is None else QuestionRow(**found)

    def answer(self, question: QuestionRow, answer: str, *, by: str, note: str = "") -> bool:
        """Answer a question; false if it has been answered or has ended in between."""
        is_open = and_(
            _question(question.cutover, question.step, question.attempt),
            _QUESTIONS.c.carrier == question.carrier,
            _QUESTIONS.c.answer.is_(None),
            _QUESTIONS.c.ended_at.is_(None),
        )
        values = {"answer": answer, "answered_by": by, "answered_at": now(), "note": note}
        with self._database.write() as connection:
            return connection.execute(update(_QUESTIONS).where(is_open).values(values)).rowcount == 1

    def take(self, question: QuestionRow) -> QuestionRow | None:
        """End an answered question; None if it has no answer, and it stays open."""
        answered = _question(question.cutover, question.step, question.attempt) & _QUESTIONS.c.answer.is_not(None)
        with self._database.write() as connection:
            connection.execute(update(_QUESTIONS).where(answered).values(ended_at=now(), ended_as="taken"))
            found = connection.execute(select(_QUESTIONS).where(answered)).mappings().one_or_none()
            return None if found is None else QuestionRow(**found)

    def give_up(self, question: QuestionRow) -> bool:
        """End an unanswered question; false if it was answered in between."""
        unanswered = _question(question.cutover, question.step, question.attempt) & _QUESTIONS.c.answer.is_(None)
        with self._database.write() as connection:
            return _end_questions(connection, unanswered, "unanswered") == 1


def _carrier(cutover: str, carrier: str) -> ColumnElement[bool]:
    return and_(_CARRIERS.c.cutover == cutover, _CARRIERS.c.id == carrier)


def _question(cutover: str, step: str, attempt: int) -> ColumnElement[bool]:
    return and_(_QUESTIONS.c.cutover == cutover, _QUESTIONS.c.step == step, _QUESTIONS.c.attempt == attempt)


def _end_questions(connection: Connection, which: ColumnElement[bool], ended_as: str) -> int:
    is_open = and_(which, _QUESTIONS.c.ended_at.is_(None))
    return connection.execute(update(_QUESTIONS).where(is_open).values(ended_at=now(), ended_as=ended_as)).rowcount
