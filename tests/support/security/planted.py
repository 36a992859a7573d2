"""Secrets that a test plants, and the search for them in everything that a run leaves behind."""

from __future__ import annotations

import base64
import html
import json
import os
import re
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, quote_plus

import httpx
from sqlalchemy import MetaData, create_engine, select

_SAMPLE_SECONDS = 0.1
_PIECE = re.compile(r"[0-9a-f]{16,}")


def new_secret(special: str = "") -> str:
    """A text that stands nowhere else.

    Args:
        special: characters that other notations write in another way.
    """
    return f"{secrets.token_hex(8)}{special}{secrets.token_hex(8)}"


def forms(secret: str) -> set[bytes]:
    """The secret in each notation in which a program may have passed it on."""
    quoted = json.dumps(secret)[1:-1]
    texts = {
        secret,
        quoted,
        json.dumps(quoted)[1:-1],
        repr(secret)[1:-1],
        quote(secret),
        quote(secret, safe=""),
        quote_plus(secret),
        html.escape(secret),
        # Half of it is too much, and looks the same in all of these.
        *_PIECE.findall(secret),
    }
    plain = secret.encode()
    # Within other base64 text the secret may begin at any of three places; the characters at its edges hold others.
    inner = (base64.b64encode(b"\0" * shift + plain)[4 if shift else 0 : -4] for shift in range(3))
    return {text.encode() for text in texts} | {text.encode("utf-16-le") for text in texts} | set(inner)


class Planted:
    """All secrets of a test by their names."""

    def __init__(self, **named: str) -> None:
        self._forms: dict[str, set[bytes]] = {}
        for name, secret in named.items():
            self.add(name, secret)

    def add(self, name: str, secret: str) -> str:
        """Plant one more."""
        self._forms[name] = forms(secret)
        return secret

    def names(self) -> set[str]:
        """Of all."""
        return set(self._forms)

    def found_in(self, content: bytes | str) -> set[str]:
        """The names of those that stand in a content."""
        data = content.encode() if isinstance(content, str) else content
        return {name for name, texts in self._forms.items() if any(text in data for text in texts)}

    def found_under(self, folder: Path, but: Iterable[Path] = ()) -> dict[str, set[str]]:
        """File -> the names of those that stand in it or in its name.

        Args:
            folder: searched with all that is below.
            but: folders and files that are left out.
        """
        kept = tuple(but)
        found: dict[str, set[str]] = {}
        for path in folder.rglob("*"):
            if path.is_symlink() or not path.is_file() or any(path.is_relative_to(each) for each in kept):
                continue
            with suppress(FileNotFoundError):
                names = self.found_in(path.read_bytes()) | self.found_in(str(path))
                if names:
                    found[str(path.relative_to(folder))] = names
        return found


def dump_sqlite(file: Path) -> str:
    """Every table of a database, as text."""
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        return "\n".join(database.iterdump())


def dump_database(url: str) -> dict[str, list[str]]:
    """Table -> its rows, as text."""
    engine = create_engine(url)
    try:
        tables = MetaData()
        tables.reflect(engine)
        with engine.connect() as connection:
            return {
                name: [repr(tuple(row)) for row in connection.execute(select(table))]
                for name, table in tables.tables.items()
            }
    finally:
        engine.dispose()


class Watch:
    """Looks again and again, while a run goes on, at the command lines of all processes and at Spark's own pages."""

    def __init__(self, spark_ui: str) -> None:
        self._spark_ui = spark_ui
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.command_lines: set[str] = set()
        self.spark_pages: set[str] = set()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        with httpx.Client(base_url=self._spark_ui, trust_env=False, timeout=30, follow_redirects=True) as client:
            while not self._ended.wait(_SAMPLE_SECONDS):
                self.command_lines.update(_command_lines())
                with suppress(httpx.HTTPError, ValueError, KeyError):
                    self.spark_pages.update(_spark_pages(client))


def _command_lines() -> Iterator[str]:
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with suppress(OSError):
                yield Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def _spark_pages(client: httpx.Client) -> Iterator[str]:
    for application in client.get("/api/v1/applications").json():
        for part in ("environment", "allexecutors", "jobs", "sql?details=true"):
            yield client.get(f"/api/v1/applications/{application['id']}/{part}").text
    for page in ("environment/", "SQL/", "executors/"):
        yield client.get(f"/{page}").text


def flattened(tables: Mapping[str, list[str]]) -> str:
    """All rows of all tables as one text."""
    return "\n".join(f"{name}: {row}" for name, rows in tables.items() for row in rows)


def as_text(answer: Any) -> str:
    """An answer of an HTTP server with what stands before its body."""
    return f"{answer.status_code} {dict(answer.headers)}\n{answer.text}"
