"""Which test takes the ways on that the message of a reason code names, from the command line or by the settings named.

The one place that says it. `tests/unit/project/test_ways_on.py` holds it complete: a new code that stops a partition
needs an entry, and an entry a test that exists.
"""

from __future__ import annotations

from collections.abc import Mapping

_DECISIONS = "tests/integration/cli/test_decisions_lead_on.py"
_DELETIONS = "tests/integration/relay/losses/test_lost_deletions_ways_on.py"
_LOSSES = "tests/integration/relay/losses/test_source_losses.py"
_TARGETS = "tests/integration/relay/losses/test_target_changes.py"
_POISON = "tests/integration/relay/copy/test_poison_policies.py"

#: Tests by reason code, each `file::function` or `file::class::function`.
WAYS_ON: Mapping[str, tuple[str, ...]] = {
    "corrupt-batch": (f"{_POISON}::TestGivenADamagedBatch::test_its_range_is_left_out_and_the_rest_is_copied",),
    "deletions-possibly-lost": (
        f"{_DELETIONS}::test_a_fresh_copy_has_no_such_keys",
        f"{_DELETIONS}::test_a_stop_is_kept_until_it_is_taken_back_and_accepting_leaves_the_key",
        f"{_DELETIONS}::test_written_deletions_make_both_sides_equal_and_the_flow_goes_on",
    ),
    "offset-map": (
        "tests/integration/relay/takeover/test_unclean_start.py::"
        "test_given_a_map_of_many_runs_when_the_copy_is_interrupted_then_its_position_is_stored_and_the_map_is_whole",
    ),
    "offset-out-of-range": (f"{_DECISIONS}::TestOffsetOutOfRange::test_running_again",),
    "beyond-task-memory": (
        "tests/integration/relay/copy/test_bombs.py"
        "::test_a_record_that_does_not_fit_stops_its_partition_until_the_setting_is_raised",
    ),
    "oversized-batch": (f"{_DECISIONS}::TestOversizedBatch::test_setting_the_position",),
    "record-refused": (
        f"{_POISON}::TestGivenRecordsThatTheTargetRefuses::test_only_they_are_left_out",
        f"{_POISON}::TestGivenRecordsThatTheTargetRefuses::"
        "test_with_fail_a_plan_warns_and_the_partition_stops_at_the_first_until_the_target_takes_it",
    ),
    "record-too-large": (
        f"{_POISON}::TestGivenRecordsThatTheTargetRefuses::test_only_they_are_left_out",
        f"{_POISON}::TestGivenRecordsThatTheTargetRefuses::"
        "test_with_fail_a_plan_warns_and_the_partition_stops_at_the_first_until_the_target_takes_it",
        "tests/integration/relay/copy/test_request_limits.py::test_all_others_are_copied_by_a_policy",
    ),
    "retention-gap": (
        f"{_LOSSES}::TestRetentionThatPassedThePosition::test_accepted_it_is_left_out_and_what_follows_is_copied",
        f"{_LOSSES}::TestRetentionThatPassedThePosition::"
        "test_a_stopped_partition_is_neither_copied_nor_an_error_until_it_is_resumed",
    ),
    "source-cluster-changed": (
        f"{_TARGETS}::test_a_position_of_another_cluster_stops_the_partition",
        "tests/integration/cli/test_clusters_command.py::test_a_new_flow_begins_at_its_first_record",
        "tests/integration/cli/test_clusters_command.py::test_the_same_flow_continues_at_the_same_offsets",
    ),
    "source-recreated": (
        f"{_LOSSES}::TestATopicThatWasCreatedAgain::test_its_records_are_copied_only_when_somebody_says_so",
    ),
    "source-transaction-open": (
        "tests/integration/relay/health/test_source_transactions.py::"
        "test_a_hanging_transaction_stops_its_partition_with_a_reason_and_what_was_before_it_is_copied",
    ),
    "source-truncated": (
        f"{_LOSSES}::TestASourceThatEndsBeforeThePosition::"
        "test_accepted_the_new_history_is_copied_from_where_the_old_one_was_cut",
        f"{_LOSSES}::TestASourceThatEndsBeforeThePosition::"
        "test_recopied_the_source_is_copied_from_its_start_behind_what_is_there",
    ),
    "target-cluster-changed": (
        f"{_DECISIONS}::TestAnotherCluster::test_copying_again",
        "tests/integration/cli/test_clusters_command.py::test_a_new_flow_begins_at_its_first_record",
    ),
    "target-deleted": (
        f"{_TARGETS}::TestADeletedTargetTopic::test_a_decision_leads_on",
        f"{_TARGETS}::TestADeletedTargetTopic::test_it_stops_the_partition_and_is_not_created_again",
        f"{_DECISIONS}::TestATargetThatChanged::test_setting_the_position",
    ),
    "target-diverged": (
        f"{_DECISIONS}::TestTargetDiverged::test_setting_the_position",
        f"{_DECISIONS}::TestTargetDiverged::test_another_name",
    ),
    "target-not-empty": (
        f"{_DECISIONS}::TestTargetNotEmpty::test_appending",
        f"{_DECISIONS}::TestTargetNotEmpty::test_another_name",
        f"{_DECISIONS}::TestTargetNotEmpty::test_deleting_the_topic",
    ),
    "target-recreated": (f"{_TARGETS}::TestARecreatedTargetTopic::test_a_decision_leads_on_behind_what_is_there",),
    "target-renamed": (
        f"{_DECISIONS}::TestATargetThatChanged::test_a_new_name",
        f"{_DECISIONS}::TestATargetThatChanged::test_restoring_the_name",
    ),
    "target-transaction-open": (
        "tests/integration/relay/takeover/test_transactions_on_target.py::"
        "test_given_a_transaction_that_stays_open_when_taken_over_then_its_producer_is_named_and_the_end_is_waited_for",
    ),
    "target-truncated": (f"{_DECISIONS}::TestTargetTruncated::test_deciding",),
    "topology": (
        f"{_DECISIONS}::TestTopology::test_excluding_a_topic",
        f"{_DECISIONS}::TestTopology::test_another_name",
        f"{_DECISIONS}::TestTopology::test_merging",
        f"{_DECISIONS}::TestTopology::test_a_target_topic_with_fewer_partitions",
    ),
    "topic-missing": (f"{_DECISIONS}::TestTopicMissing::test_making_the_topics",),
    "unclean-start": (
        f"{_DECISIONS}::TestAnInterruptedCopyThatTheTargetHasDeleted::test_setting_the_position",
        f"{_DECISIONS}::TestAnInterruptedCopyThatTheTargetHasDeleted::test_another_name",
        f"{_DECISIONS}::TestMirrorMakersPositionWithoutAnOffsetSync::test_setting_the_position",
        f"{_DECISIONS}::TestMirrorMakersPositionWithoutAnOffsetSync::test_another_name",
        f"{_DECISIONS}::TestAnInterruptedMerge::test_setting_the_positions",
        f"{_DECISIONS}::TestAnInterruptedMerge::test_another_name",
        f"{_DECISIONS}::TestAPositionThatCannotBeRead::test_setting_the_position",
    ),
    "topic-not-creatable": (
        "tests/integration/sync/test_needed_topics.py::test_a_flow_without_transactional_ids_copies_to_such_a_target",
    ),
    "written-after-cutover": (
        "tests/integration/runbook/test_late_writes.py::"
        "test_the_named_command_brings_them_to_the_target_and_nobody_complains_any_more",
        "tests/integration/runbook/test_late_writes.py::test_they_can_be_left_where_they_are",
    ),
}

_RUNS = "tests/integration/cli/test_runs_lead_on.py"
_BACKFILLS = "tests/integration/cli/test_backfill_ways_on.py"
_RETURNS = "tests/integration/cli/test_disaster_ways_on.py"

#: Tests by reason code of runs that were refused as a whole, or died: the next run, or a corrected file, leads on.
RUNS: Mapping[str, tuple[str, ...]] = {
    "broker-unreachable": (f"{_RUNS}::test_broker_unreachable",),
    "configuration": (f"{_RUNS}::test_configuration",),
    "ledger": (f"{_RUNS}::test_ledger",),
    "no-executors": (
        "tests/e2e/test_spark_no_executors.py::test_jobs_without_executors_end_with_a_reason_and_the_next_run_copies",
    ),
    "run-died": (f"{_RUNS}::test_run_died",),
    "run-locked": (f"{_RUNS}::test_run_locked",),
    "spark-job": (f"{_RUNS}::test_spark_job",),
}

#: Other codes of runs, and where it is seen that the next run copies.
RUNS_ELSEWHERE: Mapping[str, str] = {
    "cluster": "what a broker says that has no code of its own",
    "error": "the root of codes that say more",
    "fenced": "a run that was overtaken writes no more (tests/integration/relay/takeover/test_unclean_start.py)",
    "retries-exhausted": "a broker that stays away is given up (tests/unit/relay/copy/test_fetcher.py)",
    "spark-unreachable": "the server is named (tests/unit/airflow/spark/test_airflow_spark_connect.py)",
    "transient": "retried by the run itself (tests/unit/relay/copy/test_copy_faults.py)",
}

#: Tests by state of a backfill (`mirror_lib.relay.backfill.states.State`).
BACKFILL_STATES: Mapping[str, tuple[str, ...]] = dict.fromkeys(
    ("defined", "partly-copied", "interrupted", "stopped", "finished"),
    (f"{_BACKFILLS}::TestTheList::test_each_state_is_shown_with_the_command_that_leads_to_the_next",),
) | {
    "running": (
        f"{_BACKFILLS}::TestIntoAnotherTopic::test_running",
        f"{_BACKFILLS}::TestIntoTheFlowsTopic::test_running_flow",
    )
}

_ANOTHER, _SAME = f"{_BACKFILLS}::TestIntoAnotherTopic", f"{_BACKFILLS}::TestIntoTheFlowsTopic"
#: Tests by reason code that stops a partition of a backfill (`backfill_states.STOPS`).
BACKFILL_STOPS: Mapping[str, tuple[str, ...]] = {
    "retention-gap": (f"{_ANOTHER}::test_deleted_range", f"{_ANOTHER}::test_interrupted_and_the_range_deleted"),
    "source-recreated": (f"{_ANOTHER}::test_source_created_again",),
    "target-deleted": (f"{_SAME}::test_interrupted_and_the_topic_deleted",),
    "target-diverged": (
        f"{_ANOTHER}::test_target_written_by_others",
        f"{_SAME}::test_interrupted_and_written_by_others",
        f"{_SAME}::test_interrupted_and_given_up",
    ),
    "target-not-empty": (f"{_ANOTHER}::test_target_not_empty",),
    "target-recreated": (f"{_ANOTHER}::test_target_deleted",),
    "topic-missing": (
        f"{_ANOTHER}::test_file_without_the_topic",
        f"{_ANOTHER}::test_source_topic_deleted",
        f"{_SAME}::test_flow_that_never_ran",
    ),
    "unclean-start": (
        f"{_ANOTHER}::test_interrupted_and_the_target_emptied",
        f"{_SAME}::test_interrupted_the_flow_names_it",
        f"{_SAME}::test_foreign_records_behind_an_idle_flow",
        f"{_SAME}::test_interrupted_flow",
        f"{_SAME}::test_another_backfill_that_was_interrupted",
    ),
}
#: Those whose way is the same command as of another code, which has a test.
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

#: Tests by state of a return after a disaster (`mirror_lib.runbook.states.disaster.DisasterState`).
_DAG = "tests/unit/airflow/cutover/test_airflow_after_disaster.py"
RETURN_STATES: Mapping[str, tuple[str, ...]] = {
    "source-away": (f"{_RETURNS}::test_while_the_source_is_away",),
    "planned": (f"{_RETURNS}::test_shown_and_then_carried_out",),
    "asking": ("tests/e2e/one_airflow/test_runbook_dags.py",),
    "not-agreed": (f"{_DAG}::test_whoever_does_not_agree_is_named_and_without_a_yes_nothing_is_changed",),
    "changed": (
        "tests/integration/runbook/test_disaster.py::"
        "test_a_plan_is_made_anew_if_somebody_writes_to_the_source_and_is_not_carried_out_twice",
    ),
    "flow-runs": (f"{_RETURNS}::test_while_a_run_holds_the_lock",),
    "refused": (
        f"{_RETURNS}::test_a_source_that_came_back_with_less",
        f"{_RETURNS}::test_a_target_that_was_created_again",
        f"{_RETURNS}::test_a_backfill_that_was_interrupted",
        f"{_RETURNS}::test_a_backfill_that_was_interrupted_and_clients_who_wrote_since",
    ),
    "interrupted": (f"{_RETURNS}::test_died_before_the_topics_were_handed_over",),
    "handed-over": (f"{_RETURNS}::test_shown_and_then_carried_out",),
}

_GATES, _CUTOVERS = "tests/integration/runbook/test_cutover_ways_on.py", "tests/integration/runbook/test_cutover.py"
#: Tests by gate of a cutover that can fail: what it says is done, and the cutover ends.
CUTOVER_GATES: Mapping[str, tuple[str, ...]] = {
    "answered": (
        "tests/unit/runbook/test_cutover_events.py::"
        "test_whatever_happens_the_ledger_knows_who_acts_and_the_cutover_can_be_brought_to_an_end",
    ),
    "copied": (f"{_GATES}::test_a_transaction_that_is_open_on_the_source",),
    "equal": (f"{_GATES}::test_a_foreign_record_on_the_target",),
    "failback": (
        f"{_GATES}::test_each_gate_of_the_preflight",
        f"{_CUTOVERS}::test_without_a_way_back_the_preflight_fails_unless_that_is_wanted",
    ),
    "gaps": (f"{_GATES}::test_records_that_the_source_lost_before_they_were_copied",),
    "group translation": (f"{_GATES}::test_each_gate_of_the_preflight",),
    "groups ready": (f"{_GATES}::test_each_way_in_which_a_group_is_not_ready",),
    "inventory": (f"{_CUTOVERS}::test_a_topic_that_appears_later_makes_the_inventory_be_taken_again",),
    "limits": (f"{_GATES}::test_each_gate_of_the_preflight",),
    "no new source records": (
        f"{_CUTOVERS}::test_what_is_written_between_the_word_and_the_drain_has_the_freeze_asked_again",
        f"{_CUTOVERS}::test_a_writer_that_does_not_stop_is_noticed_before_the_switch",
        f"{_CUTOVERS}::test_a_writer_that_comes_back_after_the_cut_opens_the_freeze_again",
    ),
    "no writer on the source": (f"{_GATES}::test_a_writer_that_stayed_on_the_source",),
    "not split": (
        "tests/integration/runbook/test_cutover_belonging.py::"
        "test_a_group_with_a_topic_that_stays_stops_the_cutover_until_an_operator_names_it",
    ),
    "only cutover": (f"{_CUTOVERS}::test_without_a_way_back_the_preflight_fails_unless_that_is_wanted",),
    "partitions copy": (f"{_GATES}::test_records_that_the_source_lost_before_they_were_copied",),
    "readers arrived": (f"{_GATES}::test_clients_that_have_not_arrived",),
    "readers stopped": (f"{_CUTOVERS}::test_readers_on_the_source_keep_their_group_from_being_moved",),
    "retention": (f"{_GATES}::test_records_that_the_source_lost_before_they_were_copied",),
    "skipped": (f"{_GATES}::test_each_way_in_which_a_group_is_not_ready",),
    "source read to the end": (f"{_GATES}::test_readers_that_have_not_read_the_source_to_its_end",),
    "target topics": (f"{_GATES}::test_each_gate_of_the_preflight",),
    "topics": (f"{_GATES}::test_topics_that_do_not_exist",),
    "transactions": (f"{_GATES}::test_a_transaction_that_is_open_on_the_source",),
    "writers arrived": (f"{_GATES}::test_clients_that_have_not_arrived",),
}
#: Gates without such a test, and why.
CUTOVER_GATES_ELSEWHERE: Mapping[str, str] = {
    "approved": "asked again (tests/integration/runbook/test_cutover_interrupted.py)",
    "compared up to the cut": "fails with `equal` only",
    "duplicates": "`mirror map rebuild` is tested for itself (tests/integration/cli/test_translate_command.py)",
    "fence": "the file's clusters need an authorizer, or another cutover another fence",
    "grants to write": "the replicator gets a permission (tests/integration/access)",
    "group offsets": "fails for a moment, with the reason of `mirror groups status`",
    "lag": "the cutover copies itself until it is small",
    "no DENY ACLs": "an ACL is removed with Kafka's tools",
    "no unexpected records": "the way of `equal`, in the same words",
}

#: Codes that wait for somebody too, and why no decision about a partition leads on from them.
ELSEWHERE: Mapping[str, str] = {
    "authentication": "the login is corrected",
    "authorization": "the operation is granted (tests/integration/access)",
    "checkpoint-folder": "`mirror translate` refuses a folder; no run stops",
    "plan-changed": "`mirror cutover after-disaster` is planned again (tests/integration/runbook/test_disaster.py)",
    "replication": "the summary of a run whose partitions have codes of their own",
}
