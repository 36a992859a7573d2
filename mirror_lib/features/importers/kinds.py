"""The kind of a file that is given to `mirror config import`, recognized by its content. Pure."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

from mirror_lib.config.file.properties import read_properties
from mirror_lib.config.settings.kafka_names import BY_CLIENT
from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.connect_json import CLASS, connector_of_properties, connectors_in
from mirror_lib.features.importers.kubernetes_yaml import (
    LARGEST_TEXT,
    TEMPLATE_STARTS,
    read_documents,
    template_error,
)
from mirror_lib.features.importers.model import ConnectCluster, Connector, Worker
from mirror_lib.features.importers.questions import Answers
from mirror_lib.features.importers.strimzi import clusters_in, is_resource
from mirror_lib.outside_json import parse_json

_WORKER_KEYS = frozenset({"offset.storage.topic", "config.storage.topic", "offset.storage.file.filename"})
_KNOWN = (
    "connectors of MirrorMaker 2 (JSON or properties), a Connect worker's properties, resources of Strimzi (YAML or "
    "JSON), and MirrorMaker 1's consumer.properties and producer.properties"
)


@dataclass(slots=True)
class Recognised:
    """The kinds of the files of one import."""

    clusters: list[ConnectCluster] = field(default_factory=list)
    #: Files of MirrorMaker 1.
    consumer: bytes | None = None
    producer: bytes | None = None

    @property
    def of_mirror_maker_1(self) -> bool:
        """True if there is a file of MirrorMaker 1."""
        return self.consumer is not None or self.producer is not None


def recognise(files: Sequence[tuple[str, bytes]], answers: Answers) -> Recognised:
    """Read files of any kind, given as names and contents.

    Connectors in several files belong to one Connect cluster, and so does the worker.

    Raises:
        ConfigurationError: a file is of no known kind, or broken.
    """
    found = Recognised()
    connectors: list[Connector] = []
    workers: list[Worker] = []
    for origin, data in files:
        if len(data) > LARGEST_TEXT:
            raise ConfigurationError(
                f"{origin} is larger than {LARGEST_TEXT // 1024 // 1024} MiB.",
                action="Pass only the files to import.",
            )
        text = _text(data, origin)
        stripped = text.lstrip()
        if stripped.startswith(TEMPLATE_STARTS):
            raise template_error(origin)
        if stripped.startswith(("{", "[")):
            document = _json(text, origin)
            if document is not None and not _is_kubernetes(document):
                connectors += connectors_in(document, origin)
            else:
                resources = read_documents(text, origin) if document is None else (_texts(document),)
                found.clusters += clusters_in(resources, origin, answers)
        elif _looks_like_yaml(text):
            found.clusters += clusters_in(read_documents(dedent(text), origin), origin, answers)
        else:
            _properties(data, origin, found, connectors, workers)
    if len(workers) > 1:
        raise ConfigurationError(
            f"{workers[0].origin} and {workers[1].origin} are both worker files of Connect.",
            action="Import the connectors of one Connect cluster at a time.",
        )
    if connectors:
        found.clusters.append(ConnectCluster(tuple(connectors), workers[0] if workers else None))
    elif workers:
        raise ConfigurationError(
            f"{workers[0].origin} is a worker file of Connect, but no MirrorMaker 2 connector was passed.",
            action="Pass the connectors too: curl -s 'http://connect:8083/connectors?expand=info&expand=status'",
        )
    if found.clusters and found.of_mirror_maker_1:
        raise ConfigurationError(
            "files of MirrorMaker 1 and connectors of MirrorMaker 2 cannot be imported together.",
            action="Import them separately.",
        )
    return found


def _text(data: bytes, origin: str) -> str:
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ConfigurationError(f"{origin} is text in UTF-16.", action="Save it in UTF-8.")
    text = data.removeprefix(codecs.BOM_UTF8).decode("utf-8", errors="replace")
    if not text.strip():
        raise ConfigurationError(f"{origin} is empty.", action=f"Supported: {_KNOWN}.")
    if "\0" in text:
        raise ConfigurationError(f"{origin} is not a text file.", action=f"Supported: {_KNOWN}.")
    return text


def _json(text: str, origin: str) -> Any:
    """Return the document; None if it is YAML that only begins like JSON."""
    try:
        return parse_json(text)
    except ValueError as error:
        if '"' not in text or CLASS in text:
            raise ConfigurationError(
                f"{origin}: {error}{_line_of_error(text)}.", action="Correct it, or query Connect again."
            ) from None
        return None


def _line_of_error(text: str) -> str:
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return f": line {error.lineno}, column {error.colno}: {error.msg}"
    except (ValueError, RecursionError):
        pass
    return ""


def _is_kubernetes(document: Any) -> bool:
    return is_resource(document) or (isinstance(document, list) and any(is_resource(each) for each in document))


def _texts(value: Any) -> Any:
    """Return JSON with every scalar as a text, like YAML."""
    if isinstance(value, dict):
        return {key: _texts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_texts(each) for each in value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if value is None or isinstance(value, str) else str(value)


def _looks_like_yaml(text: str) -> bool:
    """Return True if it looks like YAML: `kind` at the beginning of a line, or documents that begin with three
    hyphens.

    All lines may be indented, as in a copy from a web page.
    """
    lines = [line for line in dedent(text).splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if any(line.startswith("---") for line in lines[:1]):
        return True
    heads = [line for line in lines if line.startswith(("apiVersion:", "kind:", "- apiVersion:", "%YAML"))]
    return bool(heads)


def _properties(
    data: bytes, origin: str, found: Recognised, connectors: list[Connector], workers: list[Worker]
) -> None:
    parsed = read_properties(data, origin)
    settings = {key: entry.value for key, entry in parsed.effective.items()}
    if CLASS in settings:
        connectors.append(connector_of_properties(settings, origin))
    elif any("->" in key for key in settings) or "clusters" in settings:
        raise ConfigurationError(
            f"{origin} is the file of a dedicated MirrorMaker 2, which needs no import.",
            action="Use it directly: mirror config check FILE.",
        )
    elif _WORKER_KEYS & settings.keys():
        workers.append(Worker(origin, settings))
    elif _is_consumer(settings):
        found.consumer = _only_one(found.consumer, data, origin, "consumer")
    elif _is_producer(settings):
        found.producer = _only_one(found.producer, data, origin, "producer")
    else:
        raise ConfigurationError(
            f"the format of {origin} is unknown: {_first_keys(settings)}.",
            action=f"Supported: {_KNOWN}. If the content is ambiguous, use --consumer.config and --producer.config.",
        )


def _only_one(before: bytes | None, data: bytes, origin: str, kind: str) -> bytes:
    if before is not None:
        raise ConfigurationError(
            f"{origin} is a second {kind}.properties of MirrorMaker 1.", action="Import one process at a time."
        )
    return data


def _is_consumer(settings: Mapping[str, str]) -> bool:
    return "group.id" in settings or bool(_only_of("consumer", "producer") & settings.keys())


def _is_producer(settings: Mapping[str, str]) -> bool:
    return bool((_only_of("producer", "consumer") | {"metadata.broker.list"}) & settings.keys())


def _only_of(kind: str, other: str) -> frozenset[str]:
    return BY_CLIENT[kind] - BY_CLIENT[other]


def _first_keys(settings: Mapping[str, str]) -> str:
    if not settings:
        return "it has no settings"
    shown = ", ".join(list(settings)[:3])
    return f"its settings are {shown}{', ...' if len(settings) > 3 else ''}"
