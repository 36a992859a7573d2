"""Sync steps of a flow, in addition to records: topics, configs, ACLs, groups, heartbeats.

Ask each step for its plan, then to apply it. No step copies records.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "admins": ["flow_admins", "source_admin", "target_admin"],
        "intervals": ["SyncStep"],
        "due_steps": ["why_not_due", "why_not_emitted"],
        "hidden_by_acls": ["about_missing", "hidden_topics", "in_words", "unseen_topics"],
        "observed": ["save_groups", "save_heartbeats", "save_step"],
    },
)
