"""What the audit adds to the core."""

from mirror_lib.feature import Command, Feature, Setting

SCHEDULE = Setting(
    "mirror.audit.schedule",
    "Schedule of the DAG that audits the copies of the flow's topics, whichever program makes them, in the format of "
    "`mirror.schedule`. Empty: no such DAG.",
    check="mirror_lib.config.schedule:parse_schedule",
    after="mirror.verify.schedule",
)
SINCE = Setting(
    "mirror.audit.since",
    "Age of the records that it compares, such as `2h`, or a time; `all`: all records. Empty: the longest time between "
    "two runs, twice; all records if runs are not periodic.",
    check="mirror_lib.features.audit.chosen:check_since",
    after="mirror.audit.schedule",
)
METRICS = Setting(
    "mirror.audit.metrics",
    "Absolute path of the file that it writes for node_exporter's textfile collector, ending in `.prom`; each flow "
    "needs its own. Empty: none.",
    check="mirror_lib.features.audit.chosen:check_metrics",
    after="mirror.audit.since",
)
FEATURE = Feature(
    name="audit",
    summary="Whether any replication between two clusters is right, without a file, a ledger or a map.",
    commands={
        "audit": Command(
            "mirror_lib.features.audit.command",
            "Compare copies of topics by any replicator. Exit codes: 0 right, 1 not verifiable, 3 wrong.",
            after="verify",
        ),
    },
    dags={"audits": "mirror_lib.features.audit.airflow.dag:build_audit_dags"},
    settings=(SCHEDULE, SINCE, METRICS),
    imports=("mirror_lib.features.metrics_file", "mirror_lib.features.verify"),
)
