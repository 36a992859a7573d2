"""`mirror transform`: preview a flow's transforms, and ask schema registries beforehand."""
