"""Alembic's entry: runs on the connection that `libs.common.migrate` hands over."""

from alembic import context

from libs.common.schema import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
