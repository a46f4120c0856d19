"""Trust: held memories, tiers beside vectors, findings of later pattern sets, origins in quarantine."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

_NO_LIST = sa.text("'{}'")


def upgrade() -> None:
    op.add_column("memory_items", sa.Column("held_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column(
        "memory_items",
        sa.Column("held_patterns", postgresql.ARRAY(sa.Text()), server_default=_NO_LIST, nullable=False),
    )
    op.create_index("memory_items_pattern_set_idx", "memory_items", ["pattern_set", "id"], unique=False)
    op.create_index(
        "memory_items_held_idx",
        "memory_items",
        ["tenant", "held_at"],
        unique=False,
        postgresql_where=sa.text("held_at is not null"),
    )
    op.add_column("memory_vectors", sa.Column("origin_tier", sa.SmallInteger(), nullable=True))
    op.execute(
        "update memory_vectors set origin_tier = item.origin_tier from memory_items as item where item.id = item_id"
    )
    op.alter_column("memory_vectors", "origin_tier", nullable=False)
    op.drop_index("memory_vectors_scan", table_name="memory_vectors")
    op.create_index(
        "memory_vectors_scan",
        "memory_vectors",
        ["scope_id", "model_id", "item_id"],
        unique=False,
        postgresql_include=["created_at", "terms_total", "origin_tier", "embedding"],
        postgresql_where=sa.text("active"),
    )
    op.execute(
        "comment on table memory_vectors is "
        "'What a scan of a scope reads, index-only: unit vectors by (item, model), age, length and tier'"
    )
    op.add_column("gate_patterns", sa.Column("severity", sa.Text(), server_default="block", nullable=False))
    op.create_check_constraint("severity", "gate_patterns", "severity in ('block', 'watch')")
    op.create_table(
        "gate_findings",
        sa.Column("item_id", sa.UUID(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("pattern_set", sa.Text(), nullable=False),
        sa.Column("patterns", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("found_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["memory_items.id"], name=op.f("gate_findings_item_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("item_id", name=op.f("gate_findings_pkey")),
        comment="Stored items that a later pattern set matches: kept, never recalled, listed for administrators",
    )
    op.create_index("gate_findings_tenant_idx", "gate_findings", ["tenant", "found_at"], unique=False)
    op.create_table(
        "origin_quarantines",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "origin", name=op.f("origin_quarantines_pkey")),
        comment="Who was refused too often, and until when nothing of theirs is taken",
    )
