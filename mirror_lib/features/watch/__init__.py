"""Decides when new records on a source start a run of a flow (`mirror.schedule = on-new-records`)."""
