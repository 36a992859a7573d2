"""A DAG that runs whenever a flow has copied new records of one topic, and is told where they are.

Copy it into the folder of your DAGs, and name your own cluster and topic.
"""

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import dag, task

from mirror_lib.airflow.flow.assets import topic_asset

#: The topic `orders` of cluster `primary` as it is named on cluster `backup`: kafka://backup/primary.orders
ORDERS = topic_asset("backup", "primary.orders")


@dag(
    dag_id="new_orders",
    schedule=[ORDERS],
    start_date=datetime(2024, 1, 1, tzinfo=UTC),
    catchup=False,
    tags=["example"],
    doc_md=__doc__,
)
def new_orders() -> None:
    """One run for what has come since the last one; several runs of the flow may be told of at once."""

    @task
    def read(triggering_asset_events: Any = None) -> int:
        """Here the records would be read: from `first` to before `following`, of every partition."""
        records = 0
        for event in triggering_asset_events[ORDERS]:
            for partition, (first, following) in event.extra["offsets"].items():
                print(f"{event.extra['topic']}-{partition}: offsets {first} to {following - 1}")
            records += event.extra["records"]
        return records

    read()


new_orders()
