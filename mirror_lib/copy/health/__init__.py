"""The state of a flow: what follows a run, and what a run that begins now will meet."""
