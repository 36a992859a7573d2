"""The copy: one run of a flow and its parts."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "control_plane": ["has_only_heartbeats", "replicate_control_plane"],
        "model": [
            "CopyJob",
            "OpenPartition",
            "PartitionPlan",
            "PartitionProblem",
            "PartitionResult",
            "PositionTopic",
            "RunPlan",
            "WHOLE_TOPIC",
        ],
        "flow_plan": ["compare_flow_logs", "plan_flow"],
        "run": ["replicate"],
        "run_lock": ["LockHolder", "RunLease", "hold_lock", "shown_holder"],
        "run_options": ["CopyRunner", "RunOptions", "RunReport"],
    },
)
