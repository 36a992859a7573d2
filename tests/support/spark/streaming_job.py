"""A structured streaming query of somebody who knows nothing of mirrors: from a topic to files, with a checkpoint.

Run by its path, with the brokers, topic, checkpoint folder, output folder, and the jars of Spark's connector to Kafka.
"""

import sys


def main(brokers: str, topic: str, checkpoint: str, output: str, jars: str) -> None:
    """Append the records that the topic has since the last time, with their offsets, to JSON files."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").config("spark.jars", jars).config("spark.ui.enabled", "false")
    with builder.config("spark.driver.host", "127.0.0.1").getOrCreate() as spark:
        source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", brokers).option("subscribe", topic)
        records = (
            source.option("startingOffsets", "earliest")
            .option("kafka.isolation.level", "read_committed")
            .option("failOnDataLoss", "true")
            .load()
        )
        columns = records.selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
        writer = columns.writeStream.format("json").option("path", output).option("checkpointLocation", checkpoint)
        writer.trigger(availableNow=True).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
