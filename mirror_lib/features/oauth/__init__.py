"""Logins by tokens: of a token endpoint, a file, AWS, Google Cloud, Azure."""
