"""Security settings of clients: settings that only Java supports, and contradictions."""
