"""Packages that must never be wrong: mutants are made in these."""

from __future__ import annotations

from collections.abc import Mapping

#: Of each group its folders, in earlier commits, too: of these may be another than the newest.
GROUPS: Mapping[str, tuple[str, ...]] = {
    "auth": ("mirror_lib/cluster/auth", "mirror_lib/features/kerberos", "mirror_lib/features/oauth"),
    "batches": ("mirror_lib/records", "mirror_lib/cluster/batches"),
    "claim": ("mirror_lib/copy/claim", "mirror_lib/relay/claim"),
    "commit": ("mirror_lib/copy/commit", "mirror_lib/relay/commit"),
    "config": ("mirror_lib/config", "mirror_lib/features/airflow_secrets", "mirror_lib/features/lint"),
    "copy": ("mirror_lib/copy/transfer", "mirror_lib/relay/copy"),
    "groups": ("mirror_lib/sync/groups",),
    "ledger": ("mirror_lib/ledger",),
    "offsets": ("mirror_lib/features/translate", "mirror_lib/offsets"),
    "planning": ("mirror_lib/planning", "mirror_lib/relay/planning", "mirror_lib/features/backfill"),
    "protocol": ("mirror_lib/cluster/protocol",),
    "raw": ("mirror_lib/cluster/raw",),
    "runbook": ("mirror_lib/features/cutover", "mirror_lib/runbook"),
    "takeover": ("mirror_lib/copy/takeover", "mirror_lib/relay/takeover"),
    "topology": ("mirror_lib/topology",),
    "transforms": ("mirror_lib/features/transforms",),
    "verify": ("mirror_lib/features/verify", "mirror_lib/verify"),
}
