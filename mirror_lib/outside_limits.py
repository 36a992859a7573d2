"""Limits of data that other programs and persons provide: sizes, depth, count and time. docs/security.md lists them.

Every limit of this kind is declared here, and a test compares the document with this module.
"""

from __future__ import annotations

from typing import Final

_KIBIBYTE = 1024
_MEBIBYTE = 1024 * _KIBIBYTE

# Files

#: Bytes of a file that a configuration file or a command line names: key stores and secrets have some kilobytes.
FILE_BYTES: Final = 16 * _MEBIBYTE
#: Bytes of a properties file; one of a thousand flows has less than a tenth of this.
CONFIGURATION_BYTES: Final = 10 * _MEBIBYTE
#: Clusters of a configuration file: each pair of them may be a flow.
CONFIGURATION_CLUSTERS: Final = 500
#: Bytes of the file of a transform; no hand-written SELECT is longer.
TRANSFORM_BYTES: Final = _MEBIBYTE

# JSON and HTTP

#: Levels of JSON. Java's Jackson stops at 1000; documents of this project's peers have fewer than ten levels.
JSON_LEVELS: Final = 64
#: The same of a schema: a record in a record takes three levels.
SCHEMA_JSON_LEVELS: Final = 400
#: Values of JSON, and levels: each takes up to 150 bytes of memory, and two bytes of the text.
JSON_ELEMENTS: Final = 500_000
#: Bytes of a response of a token endpoint.
TOKEN_RESPONSE_BYTES: Final = _MEBIBYTE
#: Bytes of a response of a schema registry.
REGISTRY_RESPONSE_BYTES: Final = 64 * _MEBIBYTE

# Schemas

#: Imports of a schema, direct and indirect.
SCHEMA_IMPORTS: Final = 1_000
#: Levels of imports.
SCHEMA_IMPORT_LEVELS: Final = 64
#: Characters of a schema and of its imports.
SCHEMA_TEXT_CHARACTERS: Final = 64 * _MEBIBYTE
#: Seconds for all imports of a schema.
SCHEMA_IMPORT_SECONDS: Final = 120.0

# Regular expressions

#: Seconds of processor time for matching one name.
PATTERN_SECONDS: Final = 1.0
#: Seconds for all slow matches of one expression within a minute.
PATTERN_SECONDS_A_MINUTE: Final = 20.0
#: Seconds of processor time after which no further expression of a form's list is checked.
PATTERN_SECONDS_A_LIST: Final = 30.0
#: Seconds of processor time for all expressions of one configuration file when it is checked. Airflow gives up a DAG
#: file after 30 s, with the DAGs of all its configuration files.
PATTERN_SECONDS_A_FILE: Final = 10.0
#: Parts of an expression after its counted repetitions were written out: `(a{10}){10}` has 100.
PATTERN_PARTS: Final = 10_000
#: Characters of an expression whose classes were written out as ranges: `\P{L}` has some thousands.
PATTERN_CHARACTERS: Final = 1_000_000
#: Characters without a repetition in a row: the package `regex` compares them in cubic time, and does not stop.
PATTERN_ROW: Final = 1_000

# Logins

#: Iterations of SCRAM that a broker may ask for. RFC 7677 and Java's client set the lower bound; librdkafka has the
#: upper one, and takes about a second for it.
SCRAM_FEWEST_ITERATIONS: Final = 4_096
SCRAM_MOST_ITERATIONS: Final = 1_000_000

# Records

#: Bytes of the decompressed records of a batch. Brokers limit the sent bytes (`socket.request.max.bytes`, 100 MiB), not
#: the decompressed ones: a larger body is not damaged, but it should never be necessary to decode it.
BATCH_BODY_BYTES: Final = 128 * _MEBIBYTE
#: The same of a zstd body with a window above 8 MiB (levels 20 to 22), which the decoder holds in addition.
WIDE_WINDOW_BODY_BYTES: Final = 64 * _MEBIBYTE
#: Records of a batch that are decoded one by one. Each takes about 200 bytes of memory, however small it is; a batch of
#: Kafka's default size has room for a fifteenth of them.
BATCH_RECORDS: Final = 1 << 21

# Internal topics

#: Bytes of a decompressed batch of an internal topic. Its writers do not exceed 1 MiB.
INTERNAL_BATCH_BYTES: Final = 16 * _MEBIBYTE
#: Bytes of kept records of an internal topic from which on only the newest of each key are kept.
INTERNAL_TOPIC_USUAL_BYTES: Final = 64 * _MEBIBYTE
#: Bytes of kept records of an internal topic: hundreds of thousands of partitions stay below it.
INTERNAL_TOPIC_BYTES: Final = 512 * _MEBIBYTE

#: Bytes of a heartbeat's key and of its value: two aliases, which are parts of topic names, and a time.
HEARTBEAT_BYTES: Final = _KIBIBYTE
#: Pairs of clusters whose heartbeats are kept of one topic.
HEARTBEAT_PAIRS: Final = 1_000

# Responses of brokers, by kind of request

#: Bytes of a response to a login, and of every response before it is complete.
LOGIN_RESPONSE_BYTES: Final = _MEBIBYTE
#: Bytes of a response that repeats what was requested: this, and 16 times the request.
SMALL_RESPONSE_BYTES: Final = _MEBIBYTE
#: Bytes of a response with topics: this, and 32 KiB for every byte of the request; 13,000 partitions for a usual name.
METADATA_RESPONSE_BYTES: Final = 2 * _MEBIBYTE
#: Bytes of a list of all groups, ACLs, transactions or log folders of a broker.
LIST_RESPONSE_BYTES: Final = 16 * _MEBIBYTE
#: Bytes of every other response except to fetches: descriptions and offsets of groups.
RESPONSE_BYTES: Final = 64 * _MEBIBYTE
#: Elements of all arrays of a response, and the arrays themselves: each takes up to 300 bytes of memory, and five bytes
#: of the response. Offsets are requested for a hundred groups at a time.
RESPONSE_ELEMENTS: Final = 500_000
#: The same of a list of all groups, ACLs or transactions of a broker.
LIST_ELEMENTS: Final = 200_000
#: The same of a response with topics, whose elements are small: 200,000 partitions with three replicas.
METADATA_ELEMENTS: Final = 2_000_000
#: Topics, partitions and brokers of a response with topics: each takes up to 600 bytes of memory, and a dozen
#: of the response.
METADATA_OBJECTS: Final = 250_000
#: Bytes of a response to a fetch beyond the requested bytes. Brokers return one whole batch however large it is, and
#: accept none above `socket.request.max.bytes`, 100 MiB by default.
FETCH_BEYOND_BYTES: Final = 104 * _MEBIBYTE
