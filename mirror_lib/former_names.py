"""Former names of what users see, each with its present one: the only list of them.

Former names are read wherever something is read: files of the configuration, options, forms, reports and the ledger.
`--json` writes both names until version 0.3.0; the console and what is stored have the present names only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Keys of the configuration.
SETTINGS: Mapping[str, str] = {"mirror.way.back": "mirror.failback"}

#: Options, without their hyphens in front.
OPTIONS: Mapping[str, str] = {
    "max-read-again": "max-duplicates",
    "no-way-back": "no-failback",
    "still-seconds": "quiet-seconds",
    "way-back": "failback",
}

#: Fields of forms, of definitions and facts of cutovers, and of reports of jobs.
FIELDS: Mapping[str, str] = {
    "left_out": "skipped",
    "max_read_again": "max_duplicates",
    "read_again": "duplicates",
    "require_way_back": "require_failback",
    "still_seconds": "quiet_seconds",
    "way_back": "failback",
    "writers_stood_still_seconds": "producer_downtime_seconds",
}

_DEFINITION = {
    "max_duplicates": "max_read_again",
    "quiet_seconds": "still_seconds",
    "require_failback": "require_way_back",
}
_GROUP = {"duplicates": "read_again", "target_offset": "goes_on_at"}
_ACTION = {"action": "what_to_do"}
_SKIPPED = {"skipped": "left_out"}

#: Members of the JSON document: by the path of the member that contains them ("" for the document; lists do not count),
#: each present name with its former one.
JSON_MEMBERS: Mapping[str, Mapping[str, str]] = {
    "": {
        "action": "do",
        "duplicates": "read_again",
        "lag": "backlogs",
        "lagging_partitions": "behind",
        "skipped": "left_out",
        "skipped_denials": "denials_left_out",
        "skipped_groups": "left_out_groups",
    },
    "after_disaster": {"meaning": "what_it_is", **_ACTION},
    "attempts.facts": {
        "duplicates": "read_again",
        "failback": "way_back",
        "producer_downtime_seconds": "writers_stood_still_seconds",
        "quiet_seconds": "still_seconds",
    },
    "attempts.facts.splits": {"excluded": "left_out"},
    "backfills": {"action": "do"},
    "changes": _GROUP,
    "create": {"unsupported": "left_out"},
    "cutover": _DEFINITION,
    "flow": {
        "lag (MB)": "MB behind",
        "lag (records)": "records behind",
        "lag (seconds)": "seconds behind",
        "lagging partitions": "with something to copy",
        "stalled partitions": "standing still",
    },
    "gates": _ACTION,
    "lag": {"lag_offsets": "left", "lagging_partitions": "unfinished"},
    "lagging_partitions": {"lag_records": "behind"},
    "list": {"lag_offsets": "offsets_left", "range": "what_it_copies"},
    "not_in_sync": _GROUP,
    "observed": {"duplicates": "read_again"},
    "other_flows": {"lag_records": "behind"},
    "partitions": _SKIPPED,
    "positions": _SKIPPED,
    "routed": _SKIPPED,
    "rows": {"duplicates": "read_again"},
    "run": _SKIPPED,
    "states": {"meaning": "who_acts", **_ACTION},
    "stops": {"first": "see_to", "resolution": "way_on"},
    "topics.create": {"unsupported": "left_out"},
    "transforms": {"deterministic": "the_same_result_twice"},
    "translations": {"duplicates": "read_again"},
    "verdicts": _SKIPPED,
}


def present_option(name: str) -> str:
    """The present name of an option, without its hyphens in front."""
    return OPTIONS.get(name, name)


def with_present_names(data: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that any version wrote, by their present names; a present name overrides a former one."""
    former = {FIELDS[name]: value for name, value in data.items() if name in FIELDS}
    return former | {name: value for name, value in data.items() if name not in FIELDS}


def with_former_members(value: Any, within: str = "") -> Any:
    """A JSON document with both names of its renamed members."""
    if isinstance(value, list | tuple):
        return [with_former_members(each, within) for each in value]
    if not isinstance(value, Mapping):
        return value
    # Documents may have a hundred thousand rows: only members that contain others have a path.
    found = {
        name: with_former_members(each, f"{within}.{name}".lstrip("."))
        if isinstance(each, list | tuple | Mapping)
        else each
        for name, each in value.items()
    }
    former = JSON_MEMBERS.get(within, {})
    return found | {old: found[new] for new, old in former.items() if new in found and old not in found}
