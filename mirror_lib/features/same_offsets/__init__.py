"""The same offsets on the target: new partitions begin where the source's logs begin."""
