"""The Spark job of a run: its arguments, its command line, its report."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "arguments": ["ASK", "GAP_CHOICES", "JobArguments"],
        "command": ["main"],
        "report": [
            "Failure",
            "JobReport",
            "SkippedRange",
            "error_report",
            "read_report",
            "without_details",
            "write_report",
        ],
    },
)
