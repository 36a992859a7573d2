"""Consumer groups: offsets translated and written."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "facts": ["select_groups"],
        "flow": [
            "GroupSync",
            "apply_flow_groups",
            "plan_flow_groups",
            "sync_flow_groups",
        ],
        "plan": ["GroupPlan", "GroupRow"],
        "remarks": ["more_partitions"],
    },
)
