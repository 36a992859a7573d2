"""`mirror transform`: preview a flow's transforms, and check schema registries beforehand."""
