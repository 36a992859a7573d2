"""`mirror run`: one run of a flow, in this process or by Spark."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "command": ["copy_and_report"],
        "spark_submit": ["Job", "RunFiles", "running_job"],
    },
)
