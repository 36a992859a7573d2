"""The `mirror` command."""
