"""Development tool: what packages export, and that nobody reaches past it."""
