"""The first schema."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from libs.common.schema import HalfVector

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("entity_kind", sa.Text(), nullable=False),
        sa.Column("entity_id", sa.Text(), nullable=False),
        sa.Column("before", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("after", postgresql.JSONB(astext_type=sa.Text()), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("audit_pkey")),
        comment="Who changed what, written in the transaction of the change",
    )
    op.create_index("audit_entity_idx", "audit", ["tenant", "entity_kind", "entity_id"], unique=False)
    op.create_table(
        "dead_letters",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("service", sa.Text(), nullable=False),
        sa.Column("schema_name", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("payload", postgresql.BYTEA(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("replayed_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("dead_letters_pkey")),
        comment="Events that could not be handled, credentials masked, with the reason",
    )
    op.create_table(
        "embedding_models",
        sa.Column("id", sa.SmallInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("dimensions", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("background", postgresql.BYTEA(), nullable=False),
        sa.Column("background_sha256", sa.Text(), nullable=False),
        sa.Column("calibration", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("state in ('building', 'serving', 'retired')", name=op.f("embedding_models_state_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("embedding_models_pkey")),
        sa.UniqueConstraint("name", name=op.f("embedding_models_name_key")),
        comment="Each model with its length and calibration; one serves at a time",
    )
    op.create_index(
        "embedding_models_serving_idx",
        "embedding_models",
        ["state"],
        unique=True,
        postgresql_where=sa.text("state = 'serving'"),
    )
    op.create_table(
        "gate_patterns",
        sa.Column("label", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("flags", sa.Text(), server_default="", nullable=False),
        sa.Column("must_match", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("must_not_match", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("is_built_in", sa.Boolean(), nullable=False),
        sa.Column("is_active", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("label", name=op.f("gate_patterns_pkey")),
        comment="What the gate looks for, each with examples that prove it",
    )
    op.create_table(
        "gate_verdicts",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("text_sha256", sa.Text(), nullable=False),
        sa.Column("pattern_set", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "text_sha256", "pattern_set", "verdict", name=op.f("gate_verdicts_pkey")),
        comment="Which exact texts a pattern set cleared",
    )
    op.create_table(
        "inbox",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("schema_name", sa.Text(), nullable=False),
        sa.Column("event_id", sa.Text(), nullable=False),
        sa.Column("payload_sha256", sa.Text(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("stream_sequence", sa.BigInteger(), nullable=False),
        sa.Column("published_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("repository", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("patterns", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("item_ids", postgresql.ARRAY(sa.UUID()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("claims", sa.Integer(), server_default="1", nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("lease_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("first_seen_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("terminal_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status in ('claimed', 'written', 'skipped', 'refused', 'dead')", name=op.f("inbox_status_check")
        ),
        sa.PrimaryKeyConstraint("tenant", "schema_name", "event_id", name=op.f("inbox_pkey")),
        comment="One row an event: claimed, then one terminal state; outlives the stream, so a replay changes nothing",
    )
    op.create_index("inbox_first_seen_at_idx", "inbox", ["tenant", "first_seen_at"], unique=False)
    op.create_table(
        "outbox",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("payload", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("outbox_pkey")),
        comment="Facts that wait for the relay; written in the transaction that made them true",
    )
    op.create_table(
        "recall_log",
        sa.Column("id", sa.BigInteger(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("scope_kind", sa.Text(), nullable=False),
        sa.Column("scope_key", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("agent", sa.Text(), nullable=True),
        sa.Column("item_ids", postgresql.ARRAY(sa.UUID()), nullable=False),
        sa.Column("dropped_ids", postgresql.ARRAY(sa.UUID()), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("recall_log_pkey")),
        comment="What each recall gave to whom: ids only, never the query",
    )
    op.create_index("recall_log_tenant_run_id_idx", "recall_log", ["tenant", "run_id"], unique=False)
    op.create_table(
        "scope_terms",
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("documents", sa.Integer(), nullable=False),
        sa.CheckConstraint("documents >= 0", name=op.f("scope_terms_documents_check")),
        sa.PrimaryKeyConstraint("scope_id", "term", name=op.f("scope_terms_pkey")),
        comment="In how many active items of a scope each word stands; counted by libs.common.active_items",
    )
    op.create_table(
        "scopes",
        sa.Column("id", sa.Integer(), sa.Identity(always=False), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("team_id", sa.Text(), nullable=True),
        sa.Column("org_id", sa.Text(), nullable=True),
        sa.Column("items_active", sa.Integer(), server_default="0", nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("kind in ('swe-lessons', 'channel-memory', 'agent-memory')", name=op.f("scopes_kind_check")),
        sa.PrimaryKeyConstraint("id", name=op.f("scopes_pkey")),
        sa.UniqueConstraint("tenant", "kind", "key", name=op.f("scopes_tenant_kind_key_key")),
        comment="Where a memory belongs: (tenant, kind, repository | channel | project) as one small number",
    )
    op.create_table(
        "settings",
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("scope_kind", sa.Text(), nullable=False),
        sa.Column("scope_key", sa.Text(), nullable=False),
        sa.Column("value", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("updated_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "key", "scope_kind", "scope_key", name=op.f("settings_pkey")),
        comment="What administrators set: platform, organization, team, channel",
    )
    op.create_table(
        "memory_items",
        sa.Column("id", sa.UUID(), nullable=False),
        sa.Column("tenant", sa.Text(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("rationale", sa.Text(), nullable=False),
        sa.Column("failure_type", sa.Text(), nullable=True),
        sa.Column("confidence", sa.Double(), nullable=True),
        sa.Column("origin_tier", sa.SmallInteger(), nullable=False),
        sa.Column("workflow_id", sa.Text(), nullable=True),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("agent_key", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("cost_usd", sa.Numeric(precision=12, scale=6), nullable=True),
        sa.Column("skills_active", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column(
            "metadata", postgresql.JSONB(astext_type=sa.Text()), server_default=sa.text("'{}'::jsonb"), nullable=False
        ),
        sa.Column("terms", postgresql.ARRAY(sa.Text()), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("source_event_id", sa.Text(), nullable=False),
        sa.Column("ordinal", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("text_sha256", sa.Text(), nullable=False),
        sa.Column("pattern_set", sa.Text(), nullable=False),
        sa.Column("verdict", sa.Text(), server_default="clean", nullable=False),
        sa.Column("evidence_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), server_default=sa.text("now()"), nullable=False),
        sa.Column("consolidated_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("superseded_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("superseded_by_id", sa.UUID(), nullable=True),
        sa.CheckConstraint(
            "text_sha256 = encode(sha256(convert_to(summary || E'\\n\\n' || rationale, 'UTF8')), 'hex')",
            name=op.f("memory_items_verdict_is_for_this_text_check"),
        ),
        sa.CheckConstraint("verdict = 'clean'", name=op.f("memory_items_cleared_check")),
        sa.CheckConstraint("confidence between 0 and 1", name=op.f("memory_items_confidence_check")),
        sa.CheckConstraint("origin_tier between 0 and 3", name=op.f("memory_items_origin_tier_check")),
        sa.ForeignKeyConstraint(["scope_id"], ["scopes.id"], name=op.f("memory_items_scope_id_fkey")),
        sa.ForeignKeyConstraint(
            ["superseded_by_id"],
            ["memory_items.id"],
            name=op.f("memory_items_superseded_by_id_fkey"),
            ondelete="SET NULL",
        ),
        sa.ForeignKeyConstraint(
            ["tenant", "text_sha256", "pattern_set", "verdict"],
            ["gate_verdicts.tenant", "gate_verdicts.text_sha256", "gate_verdicts.pattern_set", "gate_verdicts.verdict"],
            name="memory_items_gate_verdict_fkey",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("memory_items_pkey")),
        sa.UniqueConstraint(
            "tenant", "source_event_id", "ordinal", name=op.f("memory_items_tenant_source_event_id_ordinal_key")
        ),
        comment="A memory: what is recalled, why, and where it came from. No row without a clean verdict on its text",
    )
    op.create_index(
        "memory_items_scope_id_created_at_idx",
        "memory_items",
        ["scope_id", sa.literal_column("created_at desc")],
        unique=False,
    )
    op.create_index("memory_items_superseded_by_id_idx", "memory_items", ["superseded_by_id"], unique=False)
    op.create_index("memory_items_tenant_run_id_idx", "memory_items", ["tenant", "run_id"], unique=False)
    op.create_table(
        "memory_sources",
        sa.Column("merged_id", sa.UUID(), nullable=False),
        sa.Column("source_id", sa.UUID(), nullable=False),
        sa.ForeignKeyConstraint(
            ["merged_id"], ["memory_items.id"], name=op.f("memory_sources_merged_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["memory_items.id"], name=op.f("memory_sources_source_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("merged_id", "source_id", name=op.f("memory_sources_pkey")),
        comment="Which items a merged item stands for",
    )
    op.create_index("memory_sources_source_id_idx", "memory_sources", ["source_id"], unique=False)
    op.create_table(
        "memory_terms",
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("term", sa.Text(), nullable=False),
        sa.Column("item_id", sa.UUID(), nullable=False),
        sa.ForeignKeyConstraint(
            ["item_id"], ["memory_items.id"], name=op.f("memory_terms_item_id_fkey"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("scope_id", "term", "item_id", name=op.f("memory_terms_pkey")),
        comment="The words that find an active item; memory_items.terms restores them when it is active again",
    )
    op.create_index("memory_terms_item_id_idx", "memory_terms", ["item_id"], unique=False)
    op.create_table(
        "memory_vectors",
        sa.Column("item_id", sa.UUID(), nullable=False),
        sa.Column("model_id", sa.SmallInteger(), nullable=False),
        sa.Column("scope_id", sa.Integer(), nullable=False),
        sa.Column("active", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("terms_total", sa.SmallInteger(), nullable=False),
        sa.Column("embedding", HalfVector(), nullable=False),
        sa.CheckConstraint("abs(l2_norm(embedding) - 1) < 0.01", name=op.f("memory_vectors_unit_length_check")),
        sa.ForeignKeyConstraint(
            ["item_id"], ["memory_items.id"], name=op.f("memory_vectors_item_id_fkey"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(["model_id"], ["embedding_models.id"], name=op.f("memory_vectors_model_id_fkey")),
        sa.PrimaryKeyConstraint("item_id", "model_id", name=op.f("memory_vectors_pkey")),
        comment="What a scan of a scope reads, index-only: unit vectors by (item, model), age and length",
    )
    op.create_index(
        "memory_vectors_scan",
        "memory_vectors",
        ["scope_id", "model_id", "item_id"],
        unique=False,
        postgresql_include=["created_at", "terms_total", "embedding"],
        postgresql_where=sa.text("active"),
    )
    # Vectors stay in line, whatever their length; the scan's index carries them anyway.
    op.execute("alter table memory_vectors alter embedding set storage plain")
    # Index-only scans need a fresh visibility map: vacuum after few changes, not after a share of the table.
    for table in ("memory_vectors", "memory_terms"):
        op.execute(
            f"alter table {table} set (autovacuum_vacuum_insert_threshold = 1000,"
            " autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_scale_factor = 0.02)"
        )
