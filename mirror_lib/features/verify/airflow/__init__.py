"""The DAG that verifies a flow."""
