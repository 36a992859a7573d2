"""Compares the schema ids in copied records between source and target, and plans the required changes.

An id belongs to one registry. A byte-exact copy is readable at the target only if the same id means the same schema
there; otherwise the schema must be registered, or the ids must be rewritten during the copy. This module sends no
requests: the registries are passed as look-ups.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, Protocol

from mirror_lib.features.transforms.schemas.model import RegisteredSchema, Schema, SubjectVersion, same_text


class Verdict(StrEnum):
    """The state of a source id at the target."""

    #: The same schema has the same id: records are readable unchanged.
    SAME = "same"
    #: The same schema has another id, and this one is free: rewrite it.
    ELSEWHERE = "elsewhere"
    #: The target does not have the schema, and the id is free: register it, then rewrite, unless it gets the same id.
    MISSING = "missing"
    #: The id belongs to another schema at the target: unless it is rewritten, records are read with a wrong schema.
    CONFLICT = "conflict"


class SourceSchema(NamedTuple):
    """A schema of the source's registry with its subjects."""

    schema: Schema
    #: In order of preference: subjects that hold it, or the subjects of the records' topics if all are deleted.
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SourceSchemas:
    """The schemas of the ids in use, from the source's registry."""

    #: By id; None for an id that the source does not know either.
    in_use: Mapping[int, SourceSchema | None]
    #: All schemas that they import, directly or not.
    imported: Mapping[SubjectVersion, Schema]


class TargetSchemas(Protocol):
    """Look-ups in the target's registry."""

    def find(self, schema_id: int) -> Schema | None:
        """The schema of an id."""
        ...

    def lookup(self, subject: str, schema: Schema) -> RegisteredSchema | None:
        """The version of a subject with exactly this schema, its imports named as they are stored there."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """One id in use, and its state at the target."""

    source_id: int
    verdict: Verdict
    #: The id of the same schema at the target; None if the target does not have it.
    target_id: int | None = None
    #: The subject at the target that holds it, or under which it must be registered.
    subject: str | None = None

    def __str__(self) -> str:
        match self.verdict:
            case Verdict.SAME:
                return f"{self.source_id}: same id on the target"
            case Verdict.ELSEWHERE:
                return f"{self.source_id}: has the id {self.target_id} on the target ({self.subject})"
            case Verdict.MISSING:
                return f"{self.source_id}: missing on the target, to be registered under {self.subject}"
            case Verdict.CONFLICT if self.target_id is not None:
                return f"{self.source_id}: another schema on the target; this schema has the id {self.target_id} there"
            case _:
                return (
                    f"{self.source_id}: another schema on the target; this schema is to be registered under "
                    f"{self.subject}"
                )


@dataclass(frozen=True, slots=True)
class Registration:
    """A schema that the target lacks."""

    #: At the target.
    subject: str
    #: As at the source: its references name places at the source.
    schema: Schema
    #: The places at the source from which others import it.
    imported_from: tuple[SubjectVersion, ...] = ()

    def __str__(self) -> str:
        return f"register {self.schema.type} under {self.subject}"


@dataclass(frozen=True, slots=True)
class IdentityPlan:
    """The changes that make records readable at the target."""

    #: Ascending by source id.
    identities: tuple[Identity, ...]
    #: In order: a schema comes after all its imports.
    registrations: tuple[Registration, ...] = ()
    #: The target's places of imports that exist there, by the place at the source.
    kept: tuple[tuple[SubjectVersion, SubjectVersion], ...] = ()
    #: Ids in use that the source's registry does not know.
    unknown: tuple[int, ...] = ()

    @property
    def in_order(self) -> bool:
        """True if records are readable at the target unchanged."""
        return not self.unknown and all(each.verdict is Verdict.SAME for each in self.identities)

    def of(self, verdict: Verdict) -> tuple[Identity, ...]:
        """The ids of one verdict."""
        return tuple(each for each in self.identities if each.verdict is verdict)

    def __str__(self) -> str:
        lines = [str(each) for each in (*self.identities, *self.registrations)]
        lines += [f"{number}: unknown on the source" for number in self.unknown]
        return "\n".join(lines) or "no schema ids in use"


def plan_identities(
    source: SourceSchemas, target: TargetSchemas, *, target_subject: Callable[[str], str] = str
) -> IdentityPlan:
    """Compare the ids in use with the target.

    Args:
        source: the ids in use with all that their schemas import.
        target: look-ups.
        target_subject: the name at the target of a subject of the source, for example for a renamed topic.

    Raises:
        KeyError: an import is not in `source.imported`.
    """
    return _Planning(source, target, target_subject).plan()


class _Planning:
    def __init__(self, source: SourceSchemas, target: TargetSchemas, target_subject: Callable[[str], str]) -> None:
        self._source = source
        self._target = target
        self._target_subject = target_subject
        self._registrations: dict[tuple[str, Schema], Registration] = {}
        #: The target's places of imported schemas; None for those to be registered.
        self._kept: dict[SubjectVersion, SubjectVersion | None] = {}

    def plan(self) -> IdentityPlan:
        known = {number: found for number, found in sorted(self._source.in_use.items()) if found is not None}
        identities = tuple(self._identity(number, found) for number, found in known.items())
        return IdentityPlan(
            identities,
            tuple(self._registrations.values()),
            tuple(sorted((here, there) for here, there in self._kept.items() if there is not None)),
            tuple(sorted(self._source.in_use.keys() - known.keys())),
        )

    def _identity(self, number: int, found: SourceSchema) -> Identity:
        schema, subjects = found.schema, [self._target_subject(each) for each in found.subjects]
        moved = self._with_target_references(schema)
        holder = None if moved is None else self._holder(subjects, moved)
        there = self._target.find(number)
        if holder is not None and holder.id == number:
            return Identity(number, Verdict.SAME, number, holder.subject)
        # Under a subject with another name, or a deleted one, which no look-up by subject finds.
        if there is not None and moved is not None and same_text(there, moved) and there.references == moved.references:
            return Identity(number, Verdict.SAME, number)
        verdict = Verdict.CONFLICT if there is not None else Verdict.MISSING if holder is None else Verdict.ELSEWHERE
        if holder is not None:
            return Identity(number, verdict, holder.id, holder.subject)
        subject = subjects[0]
        self._register(subject, schema)
        return Identity(number, verdict, None, subject)

    def _holder(self, subjects: list[str], schema: Schema) -> RegisteredSchema | None:
        for subject in subjects:
            found = self._target.lookup(subject, schema)
            if found is not None:
                return found
        return None

    def _with_target_references(self, schema: Schema) -> Schema | None:
        """The schema as it would be registered at the target; None while one of its imports is missing there."""
        places = [self._place(reference.place) for reference in schema.references]
        there = [place for place in places if place is not None]
        return schema.with_references(there) if len(there) == len(places) else None

    def _place(self, here: SubjectVersion) -> SubjectVersion | None:
        if here not in self._kept:
            schema, subject = self._source.imported[here], self._target_subject(here.subject)
            moved = self._with_target_references(schema)
            found = None if moved is None else self._target.lookup(subject, moved)
            if found is None:
                self._register(subject, schema, here)
            self._kept[here] = None if found is None else found.place
        return self._kept[here]

    def _register(self, subject: str, schema: Schema, imported_from: SubjectVersion | None = None) -> None:
        """Once per subject, at its first occurrence: schemas that import it come later."""
        known = self._registrations.setdefault((subject, schema), Registration(subject, schema))
        if imported_from is not None:
            places = (*known.imported_from, imported_from)
            self._registrations[subject, schema] = Registration(subject, schema, places)
