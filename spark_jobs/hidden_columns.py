"""The columns beside those of Spark's Kafka source, by their names: drivers and Python workers must call them alike."""

from __future__ import annotations

from mirror_lib.cluster.rows import SOURCE_COLUMN

#: Ties a row to its record.
SOURCE = SOURCE_COLUMN
#: The target topic and partition, null where no transform has set them.
TOPIC, PARTITION = "__mirror_topic", "__mirror_partition"
#: The source topic, whatever a transform has set.
FROM = "__mirror_from"
#: Before the names of columns as they were before a transform, and as it has made them.
OLD, NEW = "__mirror_old_", "__mirror_new_"
#: Before the names of sides as bytes, while a transform sees them otherwise, and as they are decoded by a registry.
BYTES, DECODED = "__mirror_bytes_", "__mirror_decoded_"
