"""Consolidation: which repositories the schedule merges, and for which slot it last did."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "consolidation_schedules",
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("is_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("cron", sa.Text(), nullable=True),
        sa.Column("slot_at", sa.DateTime(timezone=True), nullable=True),
        sa.ForeignKeyConstraint(
            ["scope_id"], ["scopes.id"], name=op.f("consolidation_schedules_scope_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("scope_id", name=op.f("consolidation_schedules_pkey")),
        comment="Whether the schedule merges a repository, and the last slot that it was merged for",
    )


def downgrade() -> None:
    op.drop_table("consolidation_schedules")
