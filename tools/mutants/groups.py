"""Packages that must never be wrong: mutants are made in these."""

from __future__ import annotations

from collections.abc import Mapping

GROUPS: Mapping[str, str] = {
    "auth": "mirror_lib/cluster/auth",
    "batches": "mirror_lib/records",
    "claim": "mirror_lib/relay/claim",
    "commit": "mirror_lib/relay/commit",
    "config": "mirror_lib/config",
    "copy": "mirror_lib/relay/copy",
    "groups": "mirror_lib/sync/groups",
    "ledger": "mirror_lib/ledger",
    "offsets": "mirror_lib/offsets",
    "planning": "mirror_lib/relay/planning",
    "protocol": "mirror_lib/cluster/protocol",
    "raw": "mirror_lib/cluster/raw",
    "runbook": "mirror_lib/features/cutover",
    "takeover": "mirror_lib/relay/takeover",
    "topology": "mirror_lib/topology",
    "verify": "mirror_lib/features/verify",
}
