"""The lag of flows, observed at one moment and stored, and metrics of all flows in Prometheus' format."""
