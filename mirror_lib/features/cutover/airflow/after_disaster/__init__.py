"""The DAG that hands a flow over to its failback flow once its source is back."""
