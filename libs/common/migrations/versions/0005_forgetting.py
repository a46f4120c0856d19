"""Forgetting: tombstones, and whose words a memory was made of."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "memory_items",
        sa.Column("authors", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
    )
    op.create_index("memory_items_authors_idx", "memory_items", ["authors"], unique=False, postgresql_using="gin")
    op.create_index("memory_items_tenant_text_sha256_idx", "memory_items", ["tenant", "text_sha256"], unique=False)
    op.create_table(
        "inbox_copies",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("schema_name", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("stream_sequence", sa.BigInteger(), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint(
            "tenant", "schema_name", "event_id", "stream", "stream_sequence", name=op.f("inbox_copies_pkey")
        ),
        comment=(
            "Where a stream holds an event once more: what forgetting has to find beside the message in the inbox row"
        ),
    )
    op.create_table(
        "tombstones",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("buried_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("kind in ('event', 'item', 'person', 'session')", name=op.f("tombstones_kind_check")),
        sa.PrimaryKeyConstraint("tenant", "kind", "key", name=op.f("tombstones_pkey")),
        comment="What was forgotten, by id: work in flight looks here before it stores",
    )
    op.create_table(
        "bus_erasures",
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("stream_sequence", sa.BigInteger(), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("stream", "stream_sequence", "published_at", name=op.f("bus_erasures_pkey")),
        comment="Messages of forgotten events that a stream still holds; gone when they are",
    )


def downgrade() -> None:
    for table in ("bus_erasures", "tombstones", "inbox_copies"):
        op.drop_table(table)
    op.drop_index("memory_items_tenant_text_sha256_idx", table_name="memory_items")
    op.drop_index("memory_items_authors_idx", table_name="memory_items", postgresql_using="gin")
    op.drop_column("memory_items", "authors")
