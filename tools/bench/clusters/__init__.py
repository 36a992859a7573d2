"""The two clusters that every bench starts, their topics, and what is observed of them from outside."""
