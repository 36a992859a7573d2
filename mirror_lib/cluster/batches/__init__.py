"""Raw record batches: read a source's bytes, make batches that a target accepts as a producer's own.

`assemble` is the entry: it takes what fetches return and gives batches that are ready to be stamped and produced.
Everything here is pure: bytes in, bytes out.
"""
