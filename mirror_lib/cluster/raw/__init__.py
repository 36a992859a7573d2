"""The raw client: fetches and produces batches unchanged, with producer ids and transactions."""
