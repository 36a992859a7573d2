"""The DAG of a flow: preflight, copy, sync steps, report."""
