"""Forecasts: when a flow will have caught up, and whether retention deletes records before they are copied."""
