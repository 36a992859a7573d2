"""Start Spark jobs: spark-submit, Spark Connect.

Ask it to run a job's command line. It neither imports PySpark nor knows what a job does.
"""
