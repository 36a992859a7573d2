"""From the effective texts of a flow to its typed `FlowConfig`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from mirror_lib.config.data_plane import UNCHANGED, FlowChains
from mirror_lib.config.file.derive import FlowSettings, Settings
from mirror_lib.config.model import ClientSettings, FlowClients, FlowConfig, IsolationLevel
from mirror_lib.config.settings.definition import Definition
from mirror_lib.config.settings.feature_keys import feature_setting
from mirror_lib.config.settings.keys_of_transforms import CONNECT_TRANSFORMS
from mirror_lib.config.settings.mirror_keys import OWN_BY_NAME, REQUEST_MAX_BYTES, own_values
from mirror_lib.config.settings.mm2_keys import MM2_BY_NAME, WORKER_BY_NAME
from mirror_lib.config.settings.rate_keys import READ_RATE_LIMIT, WRITE_RATE_LIMIT
from mirror_lib.config.settings.values import REQUEST_SIZE, parse_request_size
from mirror_lib.topology.java_types import parse_raw_boolean

_POLICY_PREFIX = "replication.policy"
_SEPARATOR = "replication.policy.separator"
_INTERNAL_SEPARATOR = "replication.policy.internal.topic.separator.enabled"


def _fields(definitions: Iterable[Definition]) -> Mapping[str, Definition]:
    # Connect's `transforms` are a part of the field of that name, not a list of names.
    typed = FlowConfig.model_fields.keys() - {CONNECT_TRANSFORMS}
    return {each.field: each for each in definitions if each.field in typed}


_CONNECTOR_FIELDS, _WORKER_FIELDS = _fields(MM2_BY_NAME.values()), _fields(WORKER_BY_NAME.values())


def flow_config(settings: FlowSettings, transforms: FlowChains = UNCHANGED) -> FlowConfig:
    """Return the typed settings of a flow.

    Args:
        transforms: that `transforms_reader` found from the same settings.

    Raises:
        ValueError: a value is not valid; `check.key_problems` names them all before this is called.
    """
    values: dict[str, Any] = {}
    for fields, texts in ((_CONNECTOR_FIELDS, settings.connector), (_WORKER_FIELDS, settings.worker)):
        for field, definition in fields.items():
            if definition.name in texts:
                values[field] = definition.parse(texts[definition.name].value)
    values |= _policy(settings.connector)
    isolation = settings.clients["data_consumer"].get("isolation.level")
    if isolation is not None:
        values["isolation_level"] = IsolationLevel(isolation.value.strip().lower())
    values |= _own(settings.connector)
    request_size = settings.clients["data_producer"].get(REQUEST_SIZE)
    if request_size is not None:
        update = {REQUEST_MAX_BYTES: parse_request_size(request_size.value)}
        values["copy_settings"] = replace(values["copy_settings"], **update)
    return FlowConfig(
        flow=settings.flow,
        **values,
        transforms=transforms,
        of_features={name: each.value.strip() for name, each in settings.connector.items() if feature_setting(name)},
        clients=flow_clients(settings),
    )


def _policy(connector: Settings) -> dict[str, Any]:
    """Policies use the texts unchanged: a separator keeps its blanks (`DefaultReplicationPolicy.configure`)."""
    values: dict[str, Any] = {
        "replication_policy_options": {
            name: setting.value for name, setting in connector.items() if name.startswith(_POLICY_PREFIX)
        }
    }
    if _SEPARATOR in connector:
        values["replication_policy_separator"] = connector[_SEPARATOR].value
    if _INTERNAL_SEPARATOR in connector:
        enabled = parse_raw_boolean(connector[_INTERNAL_SEPARATOR].value)
        values["replication_policy_internal_topic_separator_enabled"] = enabled
    return values


def _own(connector: Settings) -> dict[str, Any]:
    texts = tuple([effective(connector, definition) for definition in OWN_BY_NAME.values()])
    return {
        **_own_of(texts),
        "source_rate_limit_read_bytes": _of_cluster(connector, "source", READ_RATE_LIMIT),
        "target_rate_limit_write_bytes": _of_cluster(connector, "target", WRITE_RATE_LIMIT),
    }


@lru_cache(maxsize=64)
def _own_of(texts: tuple[str | None, ...]) -> Mapping[str, Any]:
    """Most flows of a file have the same settings: hundreds of clusters make tens of thousands of pairs.

    Args:
        texts: the effective ones, in the order of `OWN_BY_NAME`.
    """
    return own_values(dict(zip(OWN_BY_NAME, texts, strict=True)).__getitem__)


def _of_cluster(connector: Settings, side: str, name: str) -> Any:
    definition, setting = OWN_BY_NAME[name], connector.get(f"{side}.cluster.{name}")
    return definition.parse(str(definition.default) if setting is None else setting.value)


def effective(connector: Settings, definition: Definition) -> str | None:
    """Return the effective text of a setting: the file's, else the default."""
    setting = connector.get(definition.name)
    return definition.default if setting is None else setting.value


def flow_clients(settings: FlowSettings) -> FlowClients:
    """Return the flow's clients with their Java properties."""
    clients = {
        name: ClientSettings(
            cluster=_cluster(settings, name), role=name.replace("_", "-"), properties=_texts(settings.clients[name])
        )
        for name in FlowClients.model_fields
    }
    return FlowClients(**clients)


def _cluster(settings: FlowSettings, client: str) -> str:
    if client.startswith("offset_syncs"):
        location = settings.connector.get("offset-syncs.topic.location")
        at_target = location is not None and location.value.strip() == "target"
        return settings.flow.target if at_target else settings.flow.source
    return settings.flow.source if client in ("data_consumer", "source_admin") else settings.flow.target


def _texts(settings: Settings) -> Mapping[str, str]:
    # ConfigDef trims the values of every client setting; passwords too.
    return {name: setting.value.strip() for name, setting in settings.items()}
