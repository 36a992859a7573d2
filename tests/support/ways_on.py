"""Which file tests the ways on that the message of a reason code names, from the command line or by the settings named.

The one place that says it. `tests/unit/project/test_ways_on.py` holds it complete: a new code that stops a partition
needs an entry, and an entry a file that names the code or its error, or the gate.
"""

from __future__ import annotations

from collections.abc import Mapping

_DECISIONS = "tests/integration/cli/test_decisions_lead_on.py"
_LOSSES = "tests/integration/copy/losses/test_source_losses.py"
_TARGETS = "tests/integration/copy/losses/test_target_changes.py"
_POISON = "tests/integration/copy/transfer/test_poison_policies.py"
_RUNS = "tests/integration/cli/test_runs_lead_on.py"

#: Files by reason code that stops a partition.
WAYS_ON: Mapping[str, str] = {
    "beyond-task-memory": "tests/integration/copy/transfer/test_bombs.py",
    "corrupt-batch": _POISON,
    "deletions-possibly-lost": "tests/integration/copy/losses/test_lost_deletions_ways_on.py",
    "ledger-behind": "tests/integration/sync/test_restored_ledgers.py",
    "no-longer-selected": "tests/integration/cli/test_no_longer_selected.py",
    "offset-out-of-range": _DECISIONS,
    "offsets-differ": "tests/integration/features/same_offsets/test_same_offsets.py",
    "oversized-batch": _DECISIONS,
    "position-lost": "tests/integration/copy/losses/test_lost_positions.py",
    "record-refused": _POISON,
    "record-too-large": _POISON,
    "retention-gap": _LOSSES,
    "source-cluster-changed": _TARGETS,
    "source-recreated": _LOSSES,
    "source-transaction-open": "tests/integration/copy/health/test_source_transactions.py",
    "source-truncated": _LOSSES,
    "target-cluster-changed": _DECISIONS,
    "target-deleted": _TARGETS,
    "target-diverged": _DECISIONS,
    "target-not-empty": _DECISIONS,
    "target-recreated": _TARGETS,
    "target-renamed": _DECISIONS,
    "target-transaction-open": "tests/integration/copy/takeover/test_transactions_on_target.py",
    "target-truncated": _DECISIONS,
    "topic-missing": _DECISIONS,
    "topic-not-creatable": "tests/integration/sync/test_needed_topics.py",
    "topology": _DECISIONS,
    "unclean-start": _DECISIONS,
    "written-after-cutover": "tests/integration/features/cutover/test_late_writes.py",
}
#: Codes that wait for somebody too, and why no decision about a partition leads on from them.
ELSEWHERE: Mapping[str, str] = {
    "authentication": "the login is corrected",
    "authorization": "the operation is granted (tests/integration/access)",
    "checkpoint-folder": "`mirror translate` refuses a folder; no run stops",
    "offset-map": "a map of many runs is stored whole (tests/integration/copy/takeover/test_unclean_start.py)",
    "plan-changed": "`cutover after-disaster` is planned again (tests/integration/features/cutover/test_disaster.py)",
    "replication": "the summary of a run whose partitions have codes of their own",
}

#: Files by reason code of runs that were refused as a whole, or died: the next run, or a corrected file, leads on.
RUNS: Mapping[str, str] = {
    "broker-unreachable": _RUNS,
    "configuration": _RUNS,
    "ledger": _RUNS,
    "no-executors": "tests/e2e/test_spark_no_executors.py",
    "run-died": _RUNS,
    "run-locked": _RUNS,
    "spark-job": _RUNS,
}
#: Other codes of runs, and where it is seen that the next run copies.
RUNS_ELSEWHERE: Mapping[str, str] = {
    "cluster": "what a broker says that has no code of its own",
    "error": "the root of codes that say more",
    "fenced": "a run that was overtaken writes no more (tests/integration/copy/takeover/test_unclean_start.py)",
    "many-skipped-ranges": "the next run continues (tests/integration/copy/transfer/test_poison_policies.py)",
    "retries-exhausted": "a broker that stays away is given up (tests/unit/copy/transfer/test_fetcher.py)",
    "spark-unreachable": "the server is named (tests/unit/airflow/spark/test_airflow_spark_connect.py)",
    "transient": "retried by the run itself (tests/unit/copy/transfer/test_copy_faults.py)",
}

#: The file of all states and stops of a backfill (`mirror_lib.features.backfill.states`).
BACKFILLS = "tests/integration/cli/test_backfill_ways_on.py"
#: Stops whose way is the same command as of another code, which has a test.
BACKFILL_STOPS_ALIKE: Mapping[str, str] = {
    "deletions-possibly-lost": "target-diverged",
    "offset-out-of-range": "retention-gap",
    "oversized-batch": "target-diverged",
    "source-cluster-changed": "source-recreated",
    "source-truncated": "source-recreated",
    "target-cluster-changed": "target-diverged",
    "target-renamed": "target-diverged",
    "target-truncated": "target-diverged",
    "topology": "topic-missing",
}

_RETURNS = "tests/integration/cli/test_disaster_ways_on.py"
#: Files by state of a return after a disaster (`mirror_lib.features.cutover.states.disaster.DisasterState`).
RETURN_STATES: Mapping[str, str] = {
    "source-away": _RETURNS,
    "planned": _RETURNS,
    "asking": "tests/e2e/one_airflow/test_runbook_dags.py",
    "not-agreed": "tests/unit/airflow/cutover/test_airflow_after_disaster.py",
    "changed": "tests/integration/features/cutover/test_disaster.py",
    "flow-runs": _RETURNS,
    "refused": _RETURNS,
    "interrupted": _RETURNS,
    "handed-over": _RETURNS,
}

_GATES = "tests/integration/features/cutover/test_cutover_ways_on.py"
_CUTOVERS = "tests/integration/features/cutover/test_cutover.py"
#: Files by gate of a cutover that can fail: what it says is done, and the cutover ends.
CUTOVER_GATES: Mapping[str, str] = {
    "answered": "tests/unit/features/cutover/test_cutover_events.py",
    "copied": _GATES,
    "equal": _GATES,
    "failback": _GATES,
    "gaps": _GATES,
    "group translation": _GATES,
    "groups ready": _GATES,
    "inventory": _CUTOVERS,
    "limits": _GATES,
    "no longer selected": _GATES,
    "no writer on the source": _GATES,
    "not split": "tests/integration/features/cutover/test_cutover_belonging.py",
    "only cutover": _CUTOVERS,
    "partitions copy": _GATES,
    "pending offsets": "tests/integration/features/cutover/test_cutover_uncommitted.py",
    "readers arrived": _GATES,
    "retention": _GATES,
    "skipped": _GATES,
    "source read to the end": _GATES,
    "target topics": _GATES,
    "topics": _GATES,
    "transactions": _GATES,
    "writers arrived": _GATES,
    "uncommitted partitions": "tests/integration/features/cutover/test_cutover_uncommitted.py",
    "uncommitted topics": "tests/integration/features/cutover/test_cutover_belonging.py",
}
#: Gates without such a test, and why.
CUTOVER_GATES_ELSEWHERE: Mapping[str, str] = {
    "approved": "asked again (tests/integration/features/cutover/test_cutover_interrupted.py)",
    "compared up to the cut": "fails with `equal` only",
    "duplicates": "`mirror map rebuild` is tested for itself (tests/integration/cli/test_translate_command.py)",
    "fence": "the file's clusters need an authorizer, or another cutover another fence",
    "grants to write": "the replicator gets a permission (tests/integration/access)",
    "group offsets": "fails for a moment, with the reason of `mirror groups status`",
    "lag": "the cutover copies itself until it is small",
    "no DENY ACLs": "an ACL is removed with Kafka's tools",
    "no new source records": f"a writer that goes on opens the freeze again ({_CUTOVERS})",
    "no unexpected records": "the way of `equal`, in the same words",
    "same logs": "names the reasons of the copy, which have ways on of their own",
    "readers stopped": f"a group waits for its readers on the source ({_CUTOVERS})",
}
