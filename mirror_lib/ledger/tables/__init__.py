"""One module per table or group of tables: reads and writes their rows."""
