"""`mirror spark`: what Spark needs to run the jobs; features add its commands."""

from __future__ import annotations

from mirror_lib.cli.commands import command_group

app = command_group("spark")
app.callback()(lambda: None)
