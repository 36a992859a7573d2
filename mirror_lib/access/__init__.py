"""Rights on both clusters: what each task needs, and the commands that grant it.

Ask it before a flow runs. Pure: it grants nothing itself.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "commands": ["acl_commands"],
        "model": ["AccessTask", "RequiredAccess"],
        "required": ["required_access", "scheduled_access"],
    },
)
