"""Feeds what comes from outside with damaged and made-up input: every parser answers, or fails with its own error."""
