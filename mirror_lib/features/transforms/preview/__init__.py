"""Previews: records before and after their transforms."""
