"""Verification: both logs compared record by record, or by state."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "findings": ["PartitionVerdict", "RoutedVerdict", "Verdict"],
        "html": [
            "DIFFERENCE_COLUMNS",
            "PARTITION_COLUMNS",
            "ROUTED_COLUMNS",
            "ROUTED_DIFFERENCE_COLUMNS",
            "difference_cells",
            "remarks",
            "routed_cells",
            "routed_difference_cells",
            "to_html",
        ],
        "job": ["main"],
        "job_arguments": ["VerifyArguments"],
        "model": ["Budget", "CheckRange", "PartitionCheck", "VerifyJob", "VerifyMode", "VerifyPlan"],
        "own_deletions": ["deletion", "hide_own_deletions"],
        "report": ["DIFFERENT", "VerifyReport"],
        "result_rows": ["VERDICT_DDL", "from_arrow", "to_arrow"],
        "tables": ["VerificationRow", "Verifications"],
        "verdicts": ["VerdictQueries", "Verdicts", "VerificationSummary"],
        "run": ["VerifyOptions", "VerifyRunner", "plan_flow_verification", "verify_flow"],
    },
)
