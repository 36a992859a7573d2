"""Kafka clusters: connections, logins, administration, internal topics, raw requests.

The only package that talks to brokers. Ask it for what a cluster has and does; it knows neither flows nor runs.
"""
