"""Topic selection and naming: policies, filters, loops.

Ask it what a topic, group or partition is called on the other side, and whether a flow takes it. Pure: it reads and
calls nothing.
"""
