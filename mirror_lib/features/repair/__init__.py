"""Manual repairs: set positions, rebuild maps, write lost tombstones, accept another cluster."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "cluster_change": ["ClusterDecision", "apply_cluster_change", "plan_cluster_change"],
        "map_rebuild": ["Rebuilt", "apply_rebuilt", "rebuild"],
        "map_rebuild_plan": ["RebuildPlan", "plan_rebuild"],
        "set_positions": ["apply_changes", "keep_account", "plan_changes", "position_at"],
    },
)
