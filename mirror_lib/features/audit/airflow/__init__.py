"""The DAGs that audit copies, and the operator for DAGs of your own."""
