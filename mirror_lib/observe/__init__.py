"""Retention and cost, computed from the ledger.

Ask it what past runs say. It asks no cluster.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "airflow_runs": ["BROKEN_FILES_DAG", "cutover_dag_id_of", "dag_id_of", "trigger_text", "verify_dag_id_of"],
        "costs": ["BinSize", "Expectation", "accuracy", "expect_round"],
        "outlooks": ["Outlook", "duration"],
        "retention": ["Retention", "is_compacted", "tombstones_kept_ms"],
        "run_totals": ["TopicTotal", "human_bytes", "text_table", "topic_totals"],
        "speeds": ["CopySpeed", "copy_speed"],
    },
)
