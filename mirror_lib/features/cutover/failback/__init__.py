"""Failback: to the source after a cutover, or after a disaster."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "after_disaster": ["apply_return"],
        "failback": ["ensure_topics", "prepare_failback", "why_no_failback"],
        "return_plan": ["ReturnPlan", "plan_return"],
    },
)
