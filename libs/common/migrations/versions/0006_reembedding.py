"""Re-embedding: jobs, what they passed over, and how complete the vectors of a model are."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("embedding_models", sa.Column("dimensions_asked", sa.Integer(), nullable=True))
    op.add_column("embedding_models", sa.Column("completed_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("embedding_models", sa.Column("retired_at", sa.DateTime(timezone=True), nullable=True))
    op.execute("update embedding_models set completed_at = created_at where state = 'serving'")
    op.create_table(
        "reembed_jobs",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("dimensions_asked", sa.Integer(), nullable=True),
        sa.Column("model_id", sa.SmallInteger(), nullable=True),
        sa.Column("previous_model_id", sa.SmallInteger(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("waits_for", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("actor", sa.Text(), nullable=True),
        sa.Column("table_name", sa.Text(), nullable=True),
        sa.Column("cursor", sa.UUID(), nullable=True),
        sa.Column("stale", sa.Integer(), nullable=False),
        sa.Column("stale_chars", sa.BigInteger(), nullable=False),
        sa.Column("usd_per_million_tokens", sa.Double(), nullable=True),
        sa.Column("done", sa.Integer(), server_default="0", nullable=False),
        sa.Column("failed", sa.Integer(), server_default="0", nullable=False),
        sa.Column("skipped", sa.Integer(), server_default="0", nullable=False),
        sa.Column("worked_seconds", sa.Double(), server_default="0", nullable=False),
        sa.Column("epoch", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "state in ('running', 'paused', 'done', 'failed', 'rolled_back')", name=op.f("reembed_jobs_state_check")
        ),
        sa.CheckConstraint(
            "(ended_at is null) = (state in ('running', 'paused'))", name=op.f("reembed_jobs_ended_check")
        ),
        sa.ForeignKeyConstraint(["model_id"], ["embedding_models.id"], name=op.f("reembed_jobs_model_id_fkey")),
        sa.ForeignKeyConstraint(
            ["previous_model_id"], ["embedding_models.id"], name=op.f("reembed_jobs_previous_model_id_fkey")
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("reembed_jobs_pkey")),
        comment="Embedding all memories with another model: one live job, where it stands, and who walks",
    )
    op.create_index(
        "reembed_jobs_live_idx",
        "reembed_jobs",
        [sa.text("(true)")],
        unique=True,
        postgresql_where=sa.text("ended_at is null"),
    )
    op.create_table(
        "reembed_passed",
        sa.Column("job_id", sa.BigInteger(), nullable=False),
        sa.Column("item_id", sa.UUID(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.CheckConstraint("reason in ('failed', 'matched')", name=op.f("reembed_passed_reason_check")),
        sa.ForeignKeyConstraint(
            ["job_id"], ["reembed_jobs.id"], name=op.f("reembed_passed_job_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("job_id", "item_id", name=op.f("reembed_passed_pkey")),
        comment="Rows that a re-embedding passed over: not embedded by its model, so not recalled once that serves",
    )


def downgrade() -> None:
    op.drop_table("reembed_passed")
    op.drop_table("reembed_jobs")
    for column in ("retired_at", "completed_at", "dimensions_asked"):
        op.drop_column("embedding_models", column)
