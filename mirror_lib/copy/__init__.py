"""The copy: one run of a flow and its parts.

Ask it for a plan, or to carry out a run: claim, take over, copy, commit. Spark, Airflow and commands call it, not the
other way.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "control_plane": ["has_only_heartbeats", "replicate_control_plane"],
        "flow_plan": ["compare_flow_logs", "plan_flow", "plan_with_facts"],
        "run": ["replicate"],
        "run_lock": ["LockHolder", "RunLease", "hold_lock", "shown_holder"],
        "run_options": ["CopyRunner", "RunOptions", "RunReport"],
    },
)
