"""The two clusters of a campaign: brokers that can be killed, proxies before them, and their topics."""
