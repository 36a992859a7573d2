"""Login and trust of clients: TLS, SASL and key stores, by the names of Java's properties."""
