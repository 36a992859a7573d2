"""The `mirror` command. A feature's commands are made of what this package exports."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "flow_frame": ["FlowCommand", "flow_command"],
        "flow_options": ["TopicsOption", "capped_table", "megabytes"],
        "frame": ["begin_with"],
        "output": ["Output", "Progress", "report_errors"],
    },
)
