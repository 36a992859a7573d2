"""Chains of Connect's transforms, from settings as a properties file has them."""

from __future__ import annotations

from collections.abc import Mapping

from mirror_lib.features.transforms.smt.chain import SmtChain
from mirror_lib.features.transforms.smt.settings import parse_settings

PACKAGE = "org.apache.kafka.connect.transforms"
_CONVERTERS = {
    "bytes": "org.apache.kafka.connect.converters.ByteArrayConverter",
    "text": "org.apache.kafka.connect.storage.StringConverter",
    "json": "org.apache.kafka.connect.json.JsonConverter",
    "simple": "org.apache.kafka.connect.storage.SimpleHeaderConverter",
}
Options = Mapping[str, str]
TOMBSTONE: Mapping[str, Options] = {"tombstone": {"type": "RecordIsTombstone"}}


def smt_settings(
    *transforms: Options, predicates: Mapping[str, Options] = TOMBSTONE, **converters: str
) -> dict[str, str]:
    """Settings of transforms t0, t1... and of predicates.

    Args:
        converters: for `key`, `value` and `header`; JSON is without schemas.
    """
    lines = {"transforms": ",".join(f"t{number}" for number in range(len(transforms)))}
    for number, options in enumerate(transforms):
        lines |= {f"transforms.t{number}.{option}": text for option, text in options.items()}
        lines[f"transforms.t{number}.type"] = f"{PACKAGE}.{options['type']}"
    lines["predicates"] = ",".join(predicates)
    for name, options in predicates.items():
        lines |= {f"predicates.{name}.{option}": text for option, text in options.items()}
        lines[f"predicates.{name}.type"] = f"{PACKAGE}.predicates.{options['type']}"
    for side, kind in converters.items():
        lines[f"{side}.converter"] = _CONVERTERS[kind]
        lines[f"{side}.converter.schemas.enable"] = "false"
    return lines


def smt_chain(*transforms: Options, predicates: Mapping[str, Options] = TOMBSTONE, **converters: str) -> SmtChain:
    """The chain of `smt_settings`."""
    parsed = parse_settings(smt_settings(*transforms, predicates=predicates, **converters))
    assert parsed.chain is not None, parsed.problems
    return SmtChain(parsed.chain)
