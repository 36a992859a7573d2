"""The codecs of record batches."""
