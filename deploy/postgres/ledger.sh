#!/bin/sh
# Run once by the Postgres image, when its volume is empty: a database of its own for the ledger.
set -eu
createdb --username="$POSTGRES_USER" "$LEDGER_DATABASE"
