"""What is copied: records and batches, made beforehand and written into a source cluster."""
