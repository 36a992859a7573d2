"""Record batches as arrays and as Arrow, and back, for Spark and comparisons."""
