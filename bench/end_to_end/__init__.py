"""`python -m bench.end_to_end`: from the request to the end of a copy, warm and cold."""
