"""Names of the columns in addition to those of Spark's Kafka source: drivers and Python workers share them."""

from __future__ import annotations

from mirror_lib.features.transforms.rows.layout import SOURCE_COLUMN

#: Connects a row with its record.
SOURCE = SOURCE_COLUMN
#: The target topic and partition, null if no transform has set them.
TOPIC, PARTITION = "__mirror_topic", "__mirror_partition"
#: The source topic, regardless of what a transform has set.
FROM = "__mirror_from"
#: Prefixes of the names of columns as they were before a transform, and as it has set them.
OLD, NEW = "__mirror_old_", "__mirror_new_"
#: Prefixes of the names of sides as bytes, while a transform sees another form, and as decoded by a registry.
BYTES, DECODED = "__mirror_bytes_", "__mirror_decoded_"
