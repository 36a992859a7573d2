"""Which test takes the ways on that the message of a reason code names, from the command line or by the settings named.

The one place that says it. `tests/unit/project/test_ways_on.py` holds it complete: a new code that stops a partition
needs an entry, and an entry a test that exists.
"""

from __future__ import annotations

from collections.abc import Mapping

_DECISIONS = "tests/integration/cli/test_decisions_lead_on.py"
_DELETIONS = "tests/integration/relay/test_lost_deletions_ways_on.py"
_LOSSES = "tests/integration/relay/test_source_losses.py"
_TARGETS = "tests/integration/relay/test_target_changes.py"
_POISON = "tests/integration/relay/test_poison_policies.py"

#: Tests by reason code, each `file::function` or `file::class::function`.
WAYS_ON: Mapping[str, tuple[str, ...]] = {
    "corrupt-batch": (f"{_POISON}::TestGivenADamagedBatch::test_its_range_is_left_out_and_the_rest_is_copied",),
    "deletions-possibly-lost": (
        f"{_DELETIONS}::test_a_fresh_copy_has_no_such_keys",
        f"{_DELETIONS}::test_a_stop_is_kept_until_it_is_taken_back_and_accepting_leaves_the_key",
        f"{_DELETIONS}::test_written_deletions_make_both_sides_equal_and_the_flow_goes_on",
    ),
    "offset-map": (
        "tests/integration/relay/test_unclean_start.py::"
        "test_given_a_map_of_many_runs_when_the_copy_is_interrupted_then_its_position_is_stored_and_the_map_is_whole",
    ),
    "offset-out-of-range": (f"{_DECISIONS}::TestOffsetOutOfRange::test_running_again",),
    "beyond-task-memory": (
        "tests/integration/relay/test_bombs.py"
        "::test_a_record_that_does_not_fit_stops_its_partition_until_the_setting_is_raised",
    ),
    "oversized-batch": (f"{_DECISIONS}::TestOversizedBatch::test_setting_the_position",),
    "record-refused": (
        f"{_POISON}::TestGivenRecordsThatTheTargetRefuses::test_only_they_are_left_out",
        f"{_POISON}::TestGivenRecordsThatTheTargetRefuses::"
        "test_with_fail_the_partition_stops_at_the_first_until_the_target_takes_it",
    ),
    "record-too-large": (
        f"{_POISON}::TestGivenRecordsThatTheTargetRefuses::test_only_they_are_left_out",
        f"{_POISON}::TestGivenRecordsThatTheTargetRefuses::"
        "test_with_fail_the_partition_stops_at_the_first_until_the_target_takes_it",
        "tests/integration/relay/test_request_limits.py::test_all_others_are_copied_by_a_policy",
    ),
    "retention-gap": (
        f"{_LOSSES}::TestRetentionThatPassedThePosition::test_accepted_it_is_left_out_and_what_follows_is_copied",
        f"{_LOSSES}::TestRetentionThatPassedThePosition::"
        "test_a_stopped_partition_is_neither_copied_nor_an_error_until_it_is_resumed",
    ),
    "source-cluster-changed": (
        f"{_DECISIONS}::TestAnotherCluster::test_deciding",
        "tests/integration/cli/test_clusters_command.py::test_a_new_flow_begins_at_its_first_record",
        "tests/integration/cli/test_clusters_command.py::test_the_same_flow_continues_at_the_same_offsets",
    ),
    "source-recreated": (
        f"{_LOSSES}::TestATopicThatWasCreatedAgain::test_its_records_are_copied_only_when_somebody_says_so",
    ),
    "source-transaction-open": (
        "tests/integration/relay/test_source_transactions.py::"
        "test_a_hanging_transaction_stops_its_partition_with_a_reason_and_what_was_before_it_is_copied",
    ),
    "source-truncated": (
        f"{_LOSSES}::TestASourceThatEndsBeforeThePosition::"
        "test_accepted_the_new_history_is_copied_from_where_the_old_one_was_cut",
        f"{_LOSSES}::TestASourceThatEndsBeforeThePosition::"
        "test_recopied_the_source_is_copied_from_its_start_behind_what_is_there",
    ),
    "target-cluster-changed": (
        f"{_DECISIONS}::TestAnotherCluster::test_deciding",
        "tests/integration/cli/test_clusters_command.py::test_a_new_flow_begins_at_its_first_record",
    ),
    "target-deleted": (
        f"{_TARGETS}::TestADeletedTargetTopic::test_a_decision_leads_on",
        f"{_TARGETS}::TestADeletedTargetTopic::test_stopping_leads_on",
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
        "tests/integration/relay/test_transactions_on_target.py::"
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

#: Codes that wait for somebody too, and why no decision about a partition leads on from them.
ELSEWHERE: Mapping[str, str] = {
    "authentication": "the login is corrected",
    "authorization": "the operation is granted (tests/integration/access)",
    "checkpoint-folder": "`mirror translate` refuses a folder; no run stops",
    "plan-changed": "`mirror cutover after-disaster` is planned again (tests/integration/runbook/test_disaster.py)",
    "poison": "the root of codes that say more; no message has it",
    "replication": "the summary of a run whose partitions have codes of their own",
}
