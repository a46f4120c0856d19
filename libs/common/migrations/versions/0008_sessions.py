"""Sessions and their entries."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

_TIMESTAMP = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.create_table(
        "sessions",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("project", sa.Text(), nullable=False),
        sa.Column("metadata", postgresql.JSONB(), server_default=sa.text("'{}'::jsonb"), nullable=False),
        sa.Column("started_at", _TIMESTAMP, server_default=sa.text("now()"), nullable=False),
        sa.Column("used_at", _TIMESTAMP, server_default=sa.text("now()"), nullable=False),
        sa.Column("ended_at", _TIMESTAMP, nullable=True),
        sa.Column("end_reason", sa.Text(), nullable=True),
        sa.CheckConstraint("end_reason in ('closed', 'idle')", name=op.f("sessions_end_reason_check")),
        sa.CheckConstraint("(ended_at is null) = (end_reason is null)", name=op.f("sessions_ended_check")),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("sessions_pkey")),
        comment="The units of work that entries are grouped by; metadata.ownerUserId says whose one is",
    )
    op.create_index(
        "sessions_tenant_project_started_at_idx", "sessions", ["tenant", "project", sa.text("started_at desc")]
    )
    op.create_index("sessions_open_idx", "sessions", ["used_at"], postgresql_where=sa.text("ended_at is null"))
    op.create_table(
        "entries",
        sa.Column("item_id", sa.UUID(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("tags", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["memory_items.id"], name=op.f("entries_item_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("item_id", name=op.f("entries_pkey")),
        comment="What an entry has beside its memory: its session, which need not be known, and its tags",
    )
    op.create_index("entries_tenant_session_id_idx", "entries", ["tenant", "session_id"])
    op.create_index("entries_tags_idx", "entries", ["tags"], postgresql_using="gin")
    op.create_table(
        "works",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("seen_at", _TIMESTAMP, server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id", name=op.f("works_pkey")),
        comment="Works that somebody with a role in them has used: others' are told from those that are not there",
    )


def downgrade() -> None:
    for table in ("works", "entries", "sessions"):
        op.drop_table(table)
