"""A DAG that audits every hour what MirrorMaker 2 copies, without a properties file.

Copy it into the folder of your DAGs, and name your own brokers.
"""

from datetime import UTC, datetime, timedelta

from airflow.sdk import DAG

from mirror_lib.features.audit.airflow.operator import AuditOperator

with DAG(
    dag_id="audit_mm2",
    schedule=timedelta(hours=1),
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    max_active_runs=1,
    tags=["example"],
    doc_md=__doc__,
):
    AuditOperator(
        task_id="audit",
        source="old-1:9092,old-2:9092",
        target="new-1:9092,new-2:9092",
        topics="orders.*",
        since="2h",
        # Files on the workers: properties of a Java client, and what node_exporter's textfile collector reads.
        # client_config="/etc/kafka/audit.properties",
        # metrics="/var/lib/node_exporter/audit.prom",
    )
