"""Topics of the target: created, grown, waited for."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "empty_selection": ["about_empty_selection"],
        "flow": ["TopicSync", "apply_flow_topics", "plan_flow_topics", "read_topic_plan", "sync_flow_topics"],
        "internal": [
            "InternalTopicState",
            "checkpoints_topic",
            "ensure_checkpoints_topic",
            "ensure_internal_topics",
            "offset_syncs_topic",
        ],
        "needed": ["check_needed_topics"],
        "refusals": [
            "Configs",
            "INDISPENSABLE",
            "Outcome",
            "done_without_refused",
            "is_unsupported",
            "refuses_value",
        ],
        "waiting": ["wait_until_visible"],
    },
)
