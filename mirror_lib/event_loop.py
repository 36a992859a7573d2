"""The event loop of copies: uvloop's, which costs less CPU, and asyncio's own where it is not installed."""

try:
    from uvloop import run as run
except ImportError:
    from asyncio import run as run  # type: ignore[assignment]  # mypy compares parameters that nobody uses
