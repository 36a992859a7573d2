"""The folders of stored formats, one per version: where they are, and how their files are read."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
MANIFEST = "MANIFEST"
SQLITE = "ledger.sqlite3"
POSTGRES = "ledger.postgres.sql"
#: Files with what each ledger has to say; records and reports are of the same story as the ledger on SQLite.
FACTS = {SQLITE: "ledger.sqlite3.expected.json", POSTGRES: "ledger.postgres.expected.json"}
#: Longer bytes of a record are stored compressed.
_LONG = 4096


def version_folders() -> list[Path]:
    """Folders of all versions that have stored their formats."""
    return sorted(path.parent for path in HERE.glob(f"*/{MANIFEST}"))


def digests(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder by its path, without the manifest."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def write_manifest(folder: Path) -> None:
    """Store the digests in the form that `sha256sum --check` reads."""
    text = "".join(f"{digest}  {name}\n" for name, digest in digests(folder).items())
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def read_manifest(folder: Path) -> dict[str, str]:
    """Digests of a folder's files as they were when it was written."""
    lines = (folder / MANIFEST).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, name in (line.split("  ", 1) for line in lines)}


def read_json(path: Path) -> Any:
    """Content of a JSON file."""
    return json.loads(path.read_text(encoding="utf-8"))


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file, and the folder that holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """One Kafka record as it is in its topic.

    Attributes:
        form: name of the record's form within its kind.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    form: str = ""

    def to_line(self) -> str:
        """One line of a JSON-lines file."""
        return json.dumps(
            {
                "form": self.form,
                "topic": self.topic,
                "partition": self.partition,
                "offset": self.offset,
                "timestamp_ms": self.timestamp_ms,
                "key": _readable(self.key),
                "value": _readable(self.value),
                "headers": [[name, _readable(value)] for name, value in self.headers],
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_line(cls, line: str) -> StoredRecord:
        """Return the record that `to_line` wrote."""
        data = json.loads(line)
        return cls(
            topic=data["topic"],
            partition=data["partition"],
            offset=data["offset"],
            timestamp_ms=data["timestamp_ms"],
            key=_bytes(data["key"]),
            value=_bytes(data["value"]),
            headers=tuple((name, _bytes(value)) for name, value in data["headers"]),
            form=data["form"],
        )


def read_records(path: Path) -> list[StoredRecord]:
    """Records of a JSON-lines file in their order."""
    return [StoredRecord.from_line(line) for line in path.read_text(encoding="utf-8").splitlines()]


def write_records(path: Path, records: Iterator[StoredRecord]) -> int:
    """Write a JSON-lines file; return the number of records."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [record.to_line() for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return len(lines)


def _readable(value: bytes | None) -> str | Mapping[str, str] | None:
    """Text for UTF-8 without control characters, else base64."""
    if value is None:
        return None
    if len(value) > _LONG:
        return {"zlib": base64.b64encode(zlib.compress(value, 9)).decode()}
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
    return text if text.isprintable() else {"base64": base64.b64encode(value).decode()}


def _bytes(stored: str | Mapping[str, str] | None) -> bytes | None:
    if stored is None or isinstance(stored, str):
        return None if stored is None else stored.encode()
    if "zlib" in stored:
        return zlib.decompress(base64.b64decode(stored["zlib"]))
    return base64.b64decode(stored["base64"])
