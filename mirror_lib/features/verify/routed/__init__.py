"""Verification of records that transforms send to other topics."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "findings": ["Place", "RoutedFindings", "TargetDigests"],
        "judge": ["judge_routed"],
        "multiset": ["Multiset"],
        "routed_rows": ["Elsewhere", "FoundRow"],
        "target_digests": ["DigestsJob", "read_target_digests"],
    },
)
