"""The state of the schema registry for development: schemas by ids and subjects, in contexts, with modes.

Ids, contexts, modes, references, deletion and error codes are as in Java's `KafkaSchemaRegistry`. Compatibility is not
checked.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from mirror_lib.features.transforms.schemas.model import DEFAULT_CONTEXT, qualify, split_subject
from mirror_lib.features.transforms.schemas.wire import LARGEST_ID

TYPES = frozenset({"AVRO", "JSON", "PROTOBUF"})
#: As a prefix of subjects: subjects of all contexts.
ALL_CONTEXTS = ":*:"
_MODES = frozenset({"READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD"})


class Refusal(Exception):
    """An error response."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        #: Three digits of HTTP, and two of the registry's own, if any.
        self.code = code

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.code if self.code < 1000 else self.code // 100


@dataclass(frozen=True, slots=True)
class Content:
    """The content that identifies a schema."""

    type: str
    text: str
    #: Name, subject, version.
    references: tuple[tuple[str, str, int], ...] = ()
    metadata: str = "null"
    rule_set: str = "null"

    @property
    def guid(self) -> UUID:
        """Java's `Schema.getGuid`, for schemas without a data contract; for others it is only unique."""
        digest = hashlib.md5(self.text.encode(), usedforsecurity=False)
        for name, subject, version in self.references:
            digest.update(name.encode() + subject.encode() + version.to_bytes(4))
        if (self.metadata, self.rule_set) != ("null", "null"):
            digest.update(f"\1{self.metadata}\1{self.rule_set}".encode())
        return UUID(bytes=digest.digest())

    def answer(self) -> dict[str, Any]:
        """Return its part of a response; the type Avro and empty fields are omitted."""
        parts: dict[str, Any] = {"schema": self.text, "guid": str(self.guid)}
        if self.type != "AVRO":
            parts["schemaType"] = self.type
        if self.references:
            parts["references"] = [
                dict(zip(("name", "subject", "version"), each, strict=True)) for each in self.references
            ]
        contract = {"metadata": json.loads(self.metadata), "ruleSet": json.loads(self.rule_set)}
        return parts | {name: value for name, value in contract.items() if value is not None}


@dataclass(slots=True)
class _Version:
    number: int
    id: int
    deleted: bool = False


@dataclass(slots=True)
class _Context:
    contents: dict[int, Content] = field(default_factory=dict)
    ids: dict[Content, int] = field(default_factory=dict)
    subjects: dict[str, list[_Version]] = field(default_factory=lambda: defaultdict(list))


class SchemaStore:
    """The registered schemas. Names of subjects are qualified by their context. Every method may raise `Refusal`."""

    def __init__(self) -> None:
        self.contexts: dict[str, _Context] = defaultdict(_Context)
        #: By subject, or by the context alone; "" is the whole registry.
        self.modes: dict[str, str] = {"": "READWRITE"}

    def register(self, subject: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Register a schema; the same one again gets the same id, and in its subject the same version."""
        context_name, bare = split_subject(subject)
        if not bare or any(ord(letter) < 32 for letter in bare):
            raise Refusal(42208, f"The specified subject '{subject}' is not a valid.")
        asked = -1 if body.get("id") is None else body["id"]
        self._check_mode(subject, asked)
        content = self._content(subject, body)
        context = self.contexts[context_name]
        versions = context.subjects.get(bare, [])
        known = context.ids.get(content)
        if known is not None and asked in (-1, known):
            asked = known
            for version in versions:
                if version.id == known and not version.deleted:
                    return {"id": known, "version": version.number, **content.answer()}
        if asked == -1:
            asked = max(context.contents, default=0) + 1
        if not 0 <= asked <= LARGEST_ID or context.contents.get(asked, content) != content:
            raise Refusal(42205, f"Overwrite new schema with id {asked} in context {context_name} is not permitted.")
        number = body.get("version") or max((each.number for each in versions), default=0) + 1
        if any(each.number == number for each in versions):
            raise Refusal(42205, f"Overwrite version {number} of subject {subject} is not permitted.")
        context.contents[asked] = content
        context.ids.setdefault(content, asked)
        context.subjects[bare].append(_Version(number, asked))
        return {"id": asked, "version": number, **content.answer()}

    def lookup(self, subject: str, body: Mapping[str, Any], *, deleted: bool) -> dict[str, Any]:
        """Return the newest version of a subject that holds a schema."""
        versions = self._versions(subject, deleted=deleted)
        context = self.contexts[split_subject(subject)[0]]
        content = self._content(subject, body)
        for version in reversed(versions):
            if context.contents[version.id] == content:
                return self._answer(subject, version)
        raise Refusal(40403, "Schema not found")

    def version(self, subject: str, asked: str, *, deleted: bool) -> dict[str, Any]:
        """Return a version by its number, or `latest`."""
        versions = self._versions(subject, deleted=deleted)
        if asked in ("latest", "-1"):
            return self._answer(subject, versions[-1])
        if not asked.isdigit() or not 1 <= int(asked) <= LARGEST_ID:
            raise Refusal(42202, f"The specified version '{asked}' is not a valid version id.")
        for version in versions:
            if version.number == int(asked):
                return self._answer(subject, version)
        raise Refusal(40402, f"Version {asked} not found.")

    def versions(self, subject: str, *, deleted: bool) -> list[int]:
        """Return the numbers of the versions of a subject."""
        return [version.number for version in self._versions(subject, deleted=deleted)]

    def by_id(self, number: int, subject: str) -> Content:
        """Return a schema in a subject's context; a subject without a context may be of any."""
        context_name, bare = split_subject(subject)
        names = [context_name]
        if bare and context_name == DEFAULT_CONTEXT:
            names += [name for name, each in self.contexts.items() if self._holds(each, bare, number)]
        for name in names:
            context = self.contexts.get(name)
            if context is not None and number in context.contents and self._held(context, number):
                return context.contents[number]
        raise Refusal(40403, f"Schema {number} not found")

    def places(self, number: int, subject: str, *, deleted: bool) -> list[dict[str, Any]]:
        """Return the subjects and versions that hold the schema of an id."""
        self.by_id(number, subject)
        context_name, _ = split_subject(subject)
        return [
            {"subject": qualify(context_name, bare), "version": version.number}
            for bare, versions in self.contexts[context_name].subjects.items()
            for version in versions
            if version.id == number and (deleted or not version.deleted)
        ]

    def by_guid(self, guid: str) -> Content:
        """Return the schema of a GUID, in any context."""
        for context in self.contexts.values():
            for content in context.ids:
                if str(content.guid) == guid:
                    return content
        raise Refusal(40403, f"Schema {guid} not found")

    def subjects(self, prefix: str, *, deleted: bool) -> list[str]:
        """Return names with a prefix; an empty one means those of the default context."""
        names = self._names(deleted=deleted)
        if prefix == ALL_CONTEXTS:
            return sorted(names)
        context_name, _ = split_subject(prefix)
        return sorted(each for each in names if each.startswith(prefix) and split_subject(each)[0] == context_name)

    def delete(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete a subject, permanently only if it is deleted already; return the versions."""
        versions = self._versions(subject, deleted=permanent)
        context = self.contexts[split_subject(subject)[0]]
        if permanent and not all(version.deleted for version in versions):
            raise Refusal(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")
        for number in (version.number for version in versions):
            if (subject, number) in self._referenced():
                raise Refusal(
                    42206, f"One or more references exist to the schema {{subject={subject}, version={number}}}."
                )
        if permanent:
            del context.subjects[split_subject(subject)[1]]
        for version in versions:
            version.deleted = True
        return [version.number for version in versions]

    def mode(self, subject: str, *, or_wider: bool) -> str:
        """Return the mode of a subject, of a context, or of the whole registry."""
        for scope in self._scopes(subject) if or_wider else (subject,):
            if scope in self.modes:
                return self.modes[scope]
        raise Refusal(40409, f"Subject '{subject}' does not have subject-level mode configured")

    def set_mode(self, subject: str, mode: object, *, force: bool) -> dict[str, Any]:
        """Change a mode; to IMPORT only if nothing is registered, unless it is forced."""
        if mode not in _MODES:
            raise Refusal(
                42204, "Invalid mode. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT and FORWARD."
            )
        inside = [name for name in self._names(deleted=False) if subject in self._scopes(name)]
        if mode == "IMPORT" and inside and not force:
            raise Refusal(42205, "Cannot import since found existing subjects")
        self.modes[subject] = str(mode)
        return {"mode": mode}

    def _check_mode(self, subject: str, asked: object) -> None:
        mode = self.mode(subject, or_wider=True)
        if not isinstance(asked, int):
            raise Refusal(422, "The id is no number")
        if mode.startswith("READONLY"):
            raise Refusal(42205, f"Subject {subject} is in read-only mode")
        if asked >= 0 and mode not in ("IMPORT", "FORWARD"):
            raise Refusal(42205, f"Subject {subject} is not in import mode")
        if asked < 0 and mode != "READWRITE":
            raise Refusal(42205, f"Subject {subject} is not in read-write mode")

    def _content(self, subject: str, body: Mapping[str, Any]) -> Content:
        kind, text = body.get("schemaType") or "AVRO", body.get("schema")
        if kind not in TYPES or not isinstance(text, str) or not text.strip():
            raise Refusal(42201, f"Invalid schema of type {kind}")
        references = tuple((each["name"], each["subject"], each["version"]) for each in body.get("references") or ())
        for _, imported, number in references:
            try:
                self.version(_beside(subject, imported), str(number), deleted=True)
            except Refusal as refusal:
                raise Refusal(42201, f"Invalid schema, details: no schema reference found: {refusal}") from refusal
        contract = (json.dumps(body.get(name), sort_keys=True) for name in ("metadata", "ruleSet"))
        return Content(kind, _canonical(kind, text), references, *contract)

    def _answer(self, subject: str, version: _Version) -> dict[str, Any]:
        content = self.contexts[split_subject(subject)[0]].contents[version.id]
        return {"subject": subject, "version": version.number, "id": version.id, **content.answer()}

    def _versions(self, subject: str, *, deleted: bool) -> list[_Version]:
        context_name, bare = split_subject(subject)
        context = self.contexts.get(context_name, _Context())
        found = [version for version in context.subjects.get(bare, ()) if deleted or not version.deleted]
        if not found:
            raise Refusal(40401, f"Subject '{subject}' not found.")
        return sorted(found, key=lambda version: version.number)

    def _names(self, *, deleted: bool) -> Iterator[str]:
        for context_name, context in self.contexts.items():
            for bare, versions in context.subjects.items():
                if any(deleted or not version.deleted for version in versions):
                    yield qualify(context_name, bare)

    def _referenced(self) -> set[tuple[str, int]]:
        """Return the schemas that subjects import which are not deleted."""
        return {
            (_beside(qualify(name, bare), imported), number)
            for name, context in self.contexts.items()
            for bare, versions in context.subjects.items()
            for version in versions
            if not version.deleted
            for _, imported, number in context.contents[version.id].references
        }

    @staticmethod
    def _holds(context: _Context, bare: str, number: int) -> bool:
        return any(version.id == number for version in context.subjects.get(bare, ()))

    def _held(self, context: _Context, number: int) -> bool:
        """Return True if a version holds the schema: deleted ones do, permanently deleted ones do not."""
        return any(self._holds(context, bare, number) for bare in context.subjects)

    @staticmethod
    def _scopes(subject: str) -> tuple[str, ...]:
        """Return the scopes whose modes apply to a subject, the nearest first."""
        context_name, _ = split_subject(subject)
        return tuple(dict.fromkeys((subject, qualify(context_name, ""), "")))


def _beside(subject: str, imported: str) -> str:
    """Return the name of an imported subject, which is in the importing subject's context by default."""
    return qualify(split_subject(subject)[0], imported)


def _canonical(kind: str, text: str) -> str:
    if kind == "PROTOBUF":
        return text.strip()
    try:
        value = json.loads(text)
    except ValueError:
        if kind == "AVRO" and text.strip().isidentifier():
            return json.dumps(text.strip())
        raise Refusal(42201, f"Invalid schema of type {kind}: it is no JSON") from None
    if kind == "AVRO" and not isinstance(value, str) and not (isinstance(value, list) or "type" in value):
        raise Refusal(42201, "Invalid schema of type AVRO: it has no type")
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
