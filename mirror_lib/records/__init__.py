"""Raw record batches: reads a source's bytes, builds batches that a target accepts as a producer's own.

The entry point is `assemble`: it converts fetched bytes to batches that are ready to be stamped and produced. All
modules are pure: bytes in, bytes out. None of them has a connection.
"""
