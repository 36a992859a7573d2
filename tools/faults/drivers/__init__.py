"""The processes that run the flow, and the points where they can kill themselves."""
