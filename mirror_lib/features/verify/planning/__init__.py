"""Planning a verification: which ranges are compared, by which task."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "by_transform_chain": ["ChainChecks", "for_second_read", "split_job"],
        "chains": ["NEEDED_FOR_ROUTED", "NEEDS_SPARK", "ROUTED", "needs_spark"],
        "facts": ["gather"],
        "plan": ["NO_BUDGET", "clip", "nothing_copied", "pack", "plan_verification"],
        "routed_plan": ["EXPIRED"],
    },
)
