from .dag import build_backfill_dags as build_backfill_dags
