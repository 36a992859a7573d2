"""Logins by Kerberos (`sasl.mechanism=GSSAPI`)."""
