"""The DAG of cutovers, with its questions to operators."""
