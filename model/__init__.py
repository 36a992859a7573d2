"""The oracle from outside: made-up sequences of what the world does, and invariants that know nothing of our code."""
