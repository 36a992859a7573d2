"""Whether an assignment of a file has no effect, since others win over it wherever it would count. Pure.

MirrorMaker 2 validates the settings that count (`ConfigDef.parse`), not the lines of the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mirror_lib.config.derive import NOT_OF_A_CLIENT, OLD_NAMES, FileSettings, FlowSettings, flow_settings
from mirror_lib.config.kafka_names import CLIENT_SET
from mirror_lib.config.model import Provenance

_LOCATION = "offset-syncs.topic.location"
#: Names of a connector's settings that count for its clients only; those have slots of their own.
_FOR_CLIENTS = ("source.", "target.", "consumer.", "producer.", "admin.")


def winner_over(setting: Provenance, file: FileSettings, flows: Iterable[FlowSettings]) -> Provenance | None:
    """One of the assignments that win over another in every flow; None where it counts in some, or reaches none.

    Args:
        setting: of the file.
        flows: all that the file selects.
    """
    assert setting.key is not None
    # Which clients there are depends on where the offset-syncs are.
    places = {} if setting.key.endswith(_LOCATION) else file
    alone = FileSettings({key: each for key, each in places.items() if key.endswith(_LOCATION)})
    alone[setting.key] = setting
    winners = []
    for settings in flows:
        counting = dict(_counting(settings))
        for slot, reached in _counting(flow_settings(alone, settings.flow)):
            if reached.key != setting.key:
                continue
            winner = counting.get(slot)
            if winner is None or winner.key in (None, setting.key):
                return None
            winners.append(winner)
    return winners[0] if winners else None


def _counting(settings: FlowSettings) -> Iterator[tuple[tuple[str, str], Provenance]]:
    """Every setting of a flow that something reads, by who reads it and its name."""
    for name, setting in settings.connector.items():
        of_clients = name.startswith(_FOR_CLIENTS) and name not in NOT_OF_A_CLIENT
        if not of_clients and name not in CLIENT_SET and name not in OLD_NAMES.values():
            yield ("connector", name), setting
    yield from ((("worker", name), setting) for name, setting in settings.worker.items())
    for client, properties in settings.clients.items():
        yield from (((client, name), setting) for name, setting in properties.items())
