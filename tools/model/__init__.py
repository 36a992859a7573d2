"""The external oracle: random sequences of events and commands, and invariants that are independent of the product's
code.
"""
