"""The states of a cutover or a return, and what to do in each. Pure."""
