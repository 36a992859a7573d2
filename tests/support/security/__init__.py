"""Logins and permissions for tests: certificates, identity providers, brokers that want to know their clients."""
