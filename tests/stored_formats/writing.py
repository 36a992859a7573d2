"""Writing the folder of a version: the story on either database, what it left in Kafka, and the configuration."""

from __future__ import annotations

import getpass
import os
import re
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from unittest.mock import patch

from mirror_lib.features.demo.broker import KafkaCluster
from mirror_lib.features.demo.broker_config import WITH_ACLS
from mirror_lib.features.demo.jars import fetch, kafka_broker
from mirror_lib.ledger.store import Ledger
from tests.stored_formats import at_work, control, copies, moves, seldom, transforms
from tests.stored_formats.config_files import write_config_files
from tests.stored_formats.folder import FACTS, HERE, POSTGRES, SQLITE, write_json, write_manifest
from tests.stored_formats.kafka_files import write_kafka_files
from tests.stored_formats.scene import Scene
from tests.stored_formats.snapshots import empty_tables, one_sided_columns, store_postgres, store_sqlite
from tests.support.clusters import KafkaPair, run_folder, start_together
from tests.support.ledger.postgres import postgres_server

_HOST, _USER = "mirror-1", "marta"


class IncompleteError(Exception):
    """The folder would lack something, or tell something of the machine that wrote it."""


def write_folder(folder: Path) -> None:
    """Write everything; the folder is complete when this returns.

    Raises:
        IncompleteError: a table of the ledger has no row, or a file names this machine.
    """
    folder.mkdir()
    real_host = socket.gethostname()
    with _as_somebody(), tempfile.TemporaryDirectory(prefix="mirror-stored-") as work, postgres_server() as postgres:
        _play_on(
            f"sqlite:///{work}/ledger.sqlite3", folder, partial(store_sqlite, Path(work) / "ledger.sqlite3"), SQLITE
        )
        _play_on(postgres, folder, partial(store_postgres, postgres), POSTGRES)
        _tell("writing files of the configuration")
        write_config_files(folder / "config")
        _check_anonymous(
            folder,
            ["mirror-story-", "mirror-stored-", f"@{real_host}", f"on {real_host} ", str(Path.home()), str(HERE)],
        )
    write_manifest(folder)


def _tell(text: str) -> None:
    print(f"{datetime.now():%H:%M:%S} {text}", file=sys.stderr, flush=True)  # for people here


@contextmanager
def _as_somebody() -> Iterator[None]:
    """Let the product take this machine and this user for others, since it stores both."""
    with (
        patch.object(socket, "gethostname", lambda: _HOST),
        patch.object(getpass, "getuser", lambda: _USER),
    ):
        yield


def _play_on(url: str, folder: Path, store: Callable[[Path], None], name: str) -> None:
    """The whole story with its ledger in one database; Kafka's records are kept of the first time."""
    _tell(f"starting two brokers for {name}")
    with _clusters() as pair, tempfile.TemporaryDirectory(prefix="mirror-story-") as work:
        scene = Scene(pair, Path(work), url)
        scene.facts.add("written", first=datetime.now(UTC).isoformat())
        _play(scene)

        def keep() -> None:
            _tell(f"storing {name}")
            with Ledger.open(url) as ledger:
                _check_filled(ledger)
            store(folder / name)

        at_work.play(scene, keep)
        scene.facts.add("written", last=datetime.now(UTC).isoformat())
        write_json(folder / FACTS[name], dict(scene.facts.by_kind))
        if not (folder / "kafka").exists():
            _tell("storing the records of the product's topics")
            for kind, count in write_kafka_files(scene, folder / "kafka").items():
                _tell(f"  {count} {kind}")
            _write_outputs(scene, folder / "reports")


def _play(scene: Scene) -> None:
    began = time.monotonic()
    flow = copies.open_flow(scene)
    chapters: dict[str, Callable[[], None]] = {
        "copies": lambda: copies.play(scene, flow),
        "transforms": lambda: transforms.play(scene),
        "moves": lambda: moves.play(scene),
        "sync steps": lambda: control.play(scene, flow),
        "rare rows": lambda: seldom.play(scene, flow),
    }
    for name, play in chapters.items():
        _tell(f"{name}, after {time.monotonic() - began:.0f} s")
        play()


@contextmanager
def _clusters() -> Iterator[KafkaPair]:
    jars = fetch(kafka_broker())
    with run_folder() as folder:
        source, target = (
            KafkaCluster(name, directory=folder / name, jars=jars, overrides=WITH_ACLS) for name in ("source", "target")
        )
        with start_together(source, target):
            yield KafkaPair(source, target)


def _check_filled(ledger: Ledger) -> None:
    if empty := empty_tables(ledger):
        raise IncompleteError(f"tables without a row: {', '.join(empty)}")
    never, always = one_sided_columns(ledger)
    _tell(f"  columns that are NULL everywhere: {', '.join(never) or 'none'}")
    _tell(f"  nullable columns that are set everywhere: {', '.join(always) or 'none'}")


def _write_outputs(scene: Scene, folder: Path) -> None:
    folder.mkdir()
    for name, content in scene.outputs.items():
        if isinstance(content, str):
            (folder / name).write_text(content, encoding="utf-8")
        else:
            write_json(folder / name, content)


def _check_anonymous(folder: Path, words: list[str]) -> None:
    """Nobody who reads the files has to know where they were written."""
    wanted = re.compile(b"|".join(re.escape(os.fsencode(word)) for word in words))
    named = [path for path in folder.rglob("*") if path.is_file() and wanted.search(path.read_bytes())]
    if named:
        raise IncompleteError(f"files that name this machine: {', '.join(str(path) for path in named)}")
