"""Channels: their directory, where a page of messages in work began, and what they cost."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "channels",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("channel", sa.Text(), nullable=False),
        sa.Column("org_id", sa.Text(), nullable=True),
        sa.Column("team_id", sa.Text(), nullable=True),
        sa.Column("is_private", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("passive_ingest_enabled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("consolidation_enabled", sa.Boolean(), server_default=sa.true(), nullable=False),
        sa.Column("org_flagging_enabled", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("ingest_cursor", sa.Text(), nullable=True),
        sa.Column("flagged_at", _TIMESTAMP, nullable=True),
        sa.Column("created_at", _TIMESTAMP, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("key = coalesce(org_id || '/', '') || channel", name=op.f("channels_key_check")),
        sa.PrimaryKeyConstraint("tenant", "key", name=op.f("channels_pkey")),
        comment="The directory of chat channels: whose each is, who may read it, and what it has opted in to",
    )
    op.create_index("channels_team_idx", "channels", ["tenant", "org_id", "team_id"])
    op.create_table(
        "ingest_windows",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("after", sa.Text(), nullable=True),
        sa.Column("created_at", _TIMESTAMP, server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "event_id", name=op.f("ingest_windows_pkey")),
        comment=(
            "Where a page of messages in work began, since the cursor moves before the work; gone when its event ends"
        ),
    )
    _create_ledger()


def _create_ledger() -> None:
    op.create_table(
        "channel_spend",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("channel_key", sa.Text(), nullable=False),
        sa.Column("month", sa.Date(), nullable=False),
        sa.Column("calls", sa.Integer(), nullable=False),
        sa.Column("cost_usd", sa.Numeric(15, 9), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "channel_key", "month", name=op.f("channel_spend_pkey")),
        comment="What each channel's model and embedding calls cost in a month (UTC)",
    )
    op.create_table(
        "channel_holds",
        sa.Column("id", sa.BigInteger(), sa.Identity(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("channel_key", sa.Text(), nullable=False),
        sa.Column("usd", sa.Numeric(15, 9), nullable=False),
        sa.Column("expires_at", _TIMESTAMP, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("channel_holds_pkey")),
        comment="Calls of channels in flight at their estimated cost; one that its process did not settle runs out",
    )
    op.create_index("channel_holds_tenant_channel_key_idx", "channel_holds", ["tenant", "channel_key"])


def downgrade() -> None:
    for table in ("channel_holds", "channel_spend", "ingest_windows", "channels"):
        op.drop_table(table)
