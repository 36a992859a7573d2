"""Topic configs: planned, applied."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "flow": ["ConfigSync", "apply_flow_configs", "plan_flow_configs", "sync_flow_configs"],
        "plan": ["ConfigDrift", "ConfigRulebook"],
    },
)
