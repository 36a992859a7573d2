"""The DAG of a flow: preflight, copy, sync steps, report."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "dag": ["build_flow_dag"],
        "form": ["TriggerChoices"],
        "replicate_operator": ["REPORT_KEY", "ReplicateOperator", "elapsed_seconds"],
        "report": ["STEP_KEY"],
        "sync_tasks": ["is_repeated"],
    },
)
