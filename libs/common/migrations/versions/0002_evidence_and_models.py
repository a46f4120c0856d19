"""Evidence put ahead of its run; what model calls answered and cost; how often a claim was lost."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "evidence_parts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("data", postgresql.BYTEA(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "event_id", "sha256", name=op.f("evidence_parts_pkey")),
        comment="Transcript parts put ahead of their event; gone when it ends",
    )
    op.create_index("evidence_parts_created_at_idx", "evidence_parts", ["created_at"], unique=False)
    # The parts are packed by their publisher already.
    op.execute("alter table evidence_parts alter column data set storage external")
    op.create_table(
        "model_answers",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("purpose", sa.Text(), nullable=False),
        sa.Column("answer", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("model", sa.Text(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=12, scale=6), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "event_id", "purpose", name=op.f("model_answers_pkey")),
        comment="What a model answered for an event in work, so that no outage bills it twice; gone when the event ends",  # noqa: E501
    )
    op.create_table(
        "model_holds",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("usd", sa.Numeric(precision=12, scale=6), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("model_holds_pkey")),
        comment="Model calls in flight at their estimated cost; one that its process did not settle runs out",
    )
    op.create_index("model_holds_tenant_idx", "model_holds", ["tenant"], unique=False)
    op.create_table(
        "model_spend",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(precision=12, scale=6), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "day", name=op.f("model_spend_pkey")),
        comment="What each tenant's model calls cost on a day (UTC)",
    )
    op.add_column("inbox", sa.Column("losses", sa.Integer(), server_default="0", nullable=False))
