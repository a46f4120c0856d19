"""The schema's history (Alembic): expand, backfill, contract; one folder, applied by `lorebus migrate`."""
