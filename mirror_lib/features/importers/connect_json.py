"""MM2's connectors as described by Kafka Connect: JSON, or the properties file of a standalone worker. Pure.

The forms are those of Connect's REST API (`PUT /connectors/NAME/config`, `POST /connectors`, `GET /connectors/NAME`,
`GET /connectors?expand=info`), of lists of them, and of the descriptions of MSK Connect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mirror_lib.errors import ConfigurationError
from mirror_lib.features.importers.model import Connector, ConnectorKind, kind_of

CLASS = "connector.class"
_AS_STORED = "Pass the JSON as Kafka Connect's REST API returns it."
_PAUSED = frozenset({"PAUSED", "STOPPED"})
_EXPAND = "curl -s 'http://connect:8083/connectors?expand=info&expand=status'"


def connectors_in(document: Any, origin: str) -> tuple[Connector, ...]:
    """Return the connectors of MM2 in a JSON document; other connectors are skipped.

    Raises:
        ConfigurationError: the document has another form, or no connector of MM2.
    """
    found = tuple(_connectors(document, origin, ""))
    if not found:
        raise ConfigurationError(
            f"{origin} has no MirrorMaker 2 connector.",
            action=f"Pass connectors whose {CLASS} is {_kinds()}; {_EXPAND} prints all connectors.",
        )
    return found


def connector_of_properties(settings: Mapping[str, str], origin: str) -> Connector:
    """Return the connector of a standalone worker's properties file.

    Raises:
        ConfigurationError: it is not one of MM2's.
    """
    kind = kind_of(settings[CLASS])
    if kind is None:
        raise ConfigurationError(
            f"{origin}: {CLASS}={settings[CLASS]} is not a MirrorMaker 2 connector.", action=f"Pass {_kinds()}."
        )
    return Connector(origin, settings.get("name", "").strip() or kind.value, kind, dict(settings))


def text_of(value: Any, where: str) -> str | None:
    """Return a scalar as Connect stores it; None for null, which is equivalent to absent.

    Raises:
        ConfigurationError: it is an object or a list.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    raise ConfigurationError(f"{where} must be a text or a number, not {_json_type(value)}.", action=_AS_STORED)


def texts_of(value: Any, where: str) -> dict[str, str]:
    """Return an object of scalars as Connect stores it.

    Raises:
        ConfigurationError: it is not an object.
    """
    if not isinstance(value, dict):
        raise ConfigurationError(f"{where} must be an object of settings, not {_json_type(value)}.", action=_AS_STORED)
    texts = {str(key): text_of(each, f"{where}.{key}") for key, each in value.items()}
    return {key: text for key, text in texts.items() if text is not None}


def _connectors(document: Any, origin: str, path: str) -> Iterator[Connector]:
    if isinstance(document, list):
        if document and all(isinstance(each, str) for each in document):
            raise ConfigurationError(
                f"{origin} contains only the names of connectors.", action=f"Pass the output of: {_EXPAND}"
            )
        for index, each in enumerate(document):
            yield from _connectors(each, origin, f"{path}[{index}]")
    elif not isinstance(document, dict):
        raise ConfigurationError(
            f"{_where(origin, path)} must be a connector, not {_json_type(document)}.",
            action="Pass the JSON of Connect.",
        )
    elif CLASS in document:
        yield from _one(document, document.get("name"), origin, path, None)
    elif "connectorConfiguration" in document:
        # `aws kafkaconnect describe-connector`
        yield from _one(document["connectorConfiguration"], document.get("connectorName"), origin, path, document)
    elif isinstance(document.get("config"), dict):
        yield from _one(document["config"], document.get("name"), origin, path, None)
    elif "error_code" in document:
        raise ConfigurationError(
            f"{_where(origin, path)} is an error from Connect: {text_of(document.get('message'), 'message')}.",
            action="Query Connect again.",
        )
    elif isinstance(document.get("connectors"), list):
        yield from _connectors(document["connectors"], origin, f"{path}.connectors")
    elif document and all(isinstance(each, dict) and {"info", "status"} & each.keys() for each in document.values()):
        yield from _connectors_of_expanded(document, origin, path)
    else:
        raise ConfigurationError(
            f"{_where(origin, path)} has neither {CLASS} nor config.",
            action=f"Pass the JSON of a connector, or the output of: {_EXPAND}",
        )


def _connectors_of_expanded(document: Mapping[str, Any], origin: str, path: str) -> Iterator[Connector]:
    for name, each in document.items():
        where = f"{path}[{name!r}]"
        info = each.get("info")
        if not isinstance(info, dict):
            raise ConfigurationError(
                f"{_where(origin, where)} has no settings.", action=f"Query with expand=info too: {_EXPAND}"
            )
        yield from _one(info.get("config"), name, origin, f"{where}.info.config", each.get("status"))


def _one(config: Any, name: Any, origin: str, path: str, status: Any) -> Iterator[Connector]:
    texts = texts_of(config, _where(origin, path))
    kind = kind_of(texts.get(CLASS, ""))
    if kind is None:
        return
    about = status.get("connector") if isinstance(status, dict) else None
    state = about.get("state") if isinstance(about, dict) else None
    version = about.get("version") if isinstance(about, dict) else None
    if version is None and isinstance(status, dict):
        version = status.get("kafkaConnectVersion")
    title = text_of(name, f"{_where(origin, path)}: name") or texts.get("name") or kind.value
    yield Connector(
        f"{origin}: {title}",
        title,
        kind,
        texts,
        paused=str(state).upper() in _PAUSED,
        version=text_of(version, f"{_where(origin, path)}: version"),
    )


def _where(origin: str, path: str) -> str:
    return f"{origin}, {path.lstrip('.')}" if path else origin


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", type(None): "null", bool: "true or false"}
    return names.get(type(value), "a number")


def _kinds() -> str:
    return ", ".join(f"org.apache.kafka.connect.mirror.{kind.value}" for kind in ConnectorKind)
