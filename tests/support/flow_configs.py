"""The configuration of a flow, for tests that connect to no cluster."""

from __future__ import annotations

from typing import Any

from mirror_lib.config.model import ClientSettings, FlowClients, FlowConfig
from mirror_lib.topology.names import FlowId

FLOW = FlowId("A", "B")
_CLIENT = ClientSettings(cluster="A", role="test", properties={"bootstrap.servers": "localhost:1"})
_CLIENTS = FlowClients(**dict.fromkeys(FlowClients.model_fields, _CLIENT))


def flow_config(**settings: Any) -> FlowConfig:
    """The flow A->B with these settings; all others have their defaults."""
    return FlowConfig(flow=FLOW, clients=_CLIENTS, **settings)
