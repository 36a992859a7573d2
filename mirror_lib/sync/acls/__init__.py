"""ACLs: read, rewritten, planned, applied."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "flow": ["AclSync", "apply_flow_acls", "plan_flow_acls", "sync_flow_acls"],
        "plan": ["binding_of"],
    },
)
