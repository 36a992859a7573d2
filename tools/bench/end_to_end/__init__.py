"""`./run bench end-to-end`: from the request to the end of a copy, warm and cold."""
