"""Retrieval: fingerprints and variants."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "memory_fingerprints",
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("item_id", sa.UUID(), nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["memory_items.id"], name=op.f("memory_fingerprints_item_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("scope_id", "fingerprint", "item_id", name=op.f("memory_fingerprints_pkey")),
        comment="Which errors the evidence of an item, active or not, held: hashes of their lines (domain/fingerprint)",
    )
    op.create_index("memory_fingerprints_item_id_idx", "memory_fingerprints", ["item_id"], unique=False)
    op.add_column("memory_items", sa.Column("variant_group", sa.UUID(), nullable=True))
    op.create_index(
        "memory_items_variant_group_idx",
        "memory_items",
        ["variant_group"],
        unique=False,
        postgresql_where=sa.text("variant_group is not null"),
    )


def downgrade() -> None:
    op.drop_index("memory_items_variant_group_idx", table_name="memory_items")
    op.drop_column("memory_items", "variant_group")
    op.drop_table("memory_fingerprints")
