"""Cutovers and the return after a disaster: steps, gates, states, reports."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "context": ["CutoverContext", "Engine"],
        "job": ["as_data", "main"],
        "job_arguments": ["CutoverArguments"],
        "machine": ["Machine", "Progress", "create", "progress"],
        "model": [
            "Confirmation",
            "CutoverDefinition",
            "CutoverState",
            "Fence",
            "Step",
            "StepState",
            "Style",
            "VerifyScope",
        ],
        "opening": ["failback_of", "open_cutover"],
        "order": ["CONFIRMED", "STEPS", "WRITERS_GO", "WRITERS_STOP", "comes_before", "last_attempts"],
        "records": ["attempts_of"],
        "report": ["gates_markdown", "progress_text", "sentence", "time_line"],
    },
)
