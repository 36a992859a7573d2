"""Run by Alembic. The connection comes from `mirror_lib.ledger.migration`, with an open transaction."""

from __future__ import annotations

from alembic import context

from mirror_lib.ledger.models import METADATA

connection = context.config.attributes.get("connection")
if connection is None:
    raise SystemExit("The ledger's migrations run by Ledger.open(url).migrate(), not by Alembic's command line.")
# SQLite alters tables only by copying them, which is what batches do.
context.configure(
    connection=connection,
    target_metadata=METADATA,
    version_table=context.config.attributes["version_table"],
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
