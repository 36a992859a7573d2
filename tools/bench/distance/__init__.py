"""`./run bench distance`: copies over a line with a long round trip."""
