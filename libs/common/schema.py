"""Every table, declared once (SQLAlchemy Core). Migrations create them; `store` modules query them.

Vectors live apart from texts: a scan of a scope reads `memory_vectors_scan` alone (ADR 2).
"""

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, BYTEA, JSONB, UUID
from sqlalchemy.types import UserDefinedType


class HalfVector(UserDefinedType[Any]):
    """pgvector's halfvec without a fixed length. Values travel in binary (see `database`)."""

    cache_ok = True

    def get_col_spec(self, **_: Any) -> str:
        return "halfvec"


metadata = sa.MetaData(
    naming_convention={
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "pk": "%(table_name)s_pkey",
    }
)

Timestamp = sa.DateTime(timezone=True)
_now = sa.func.now()
_no_object = sa.text("'{}'::jsonb")
_no_list = sa.text("'{}'")

scopes = sa.Table(
    "scopes",
    metadata,
    sa.Column("id", sa.Integer, sa.Identity(), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("team_id", sa.Text),
    sa.Column("org_id", sa.Text),
    sa.Column("items_active", sa.Integer, nullable=False, server_default="0"),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    sa.UniqueConstraint("tenant", "kind", "key"),
    sa.CheckConstraint("kind in ('swe-lessons', 'channel-memory', 'agent-memory')", name="kind"),
    comment="Where a memory belongs: (tenant, kind, repository | channel | project) as one small number",
)

embedding_models = sa.Table(
    "embedding_models",
    metadata,
    sa.Column("id", sa.SmallInteger, sa.Identity(), primary_key=True),
    sa.Column("name", sa.Text, nullable=False, unique=True),
    sa.Column("dimensions", sa.Integer, nullable=False),
    sa.Column("dimensions_asked", sa.Integer),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("completed_at", Timestamp),
    sa.Column("retired_at", Timestamp),
    sa.Column("background", BYTEA, nullable=False),
    sa.Column("background_sha256", sa.Text, nullable=False),
    sa.Column("calibration", JSONB, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    sa.CheckConstraint("state in ('building', 'serving', 'retired')", name="state"),
    sa.CheckConstraint(
        "octet_length(background) > 0 and octet_length(background)"
        " = 4 * dimensions * coalesce((calibration ->> 'texts')::integer, 0)",
        name="calibrated",
    ),
    sa.Index("embedding_models_serving_idx", "state", unique=True, postgresql_where=sa.text("state = 'serving'")),
    comment="Each model with its length and calibration; one serves at a time",
)

reembed_jobs = sa.Table(
    "reembed_jobs",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("dimensions_asked", sa.Integer),
    sa.Column("model_id", sa.SmallInteger, sa.ForeignKey("embedding_models.id")),
    sa.Column("previous_model_id", sa.SmallInteger, sa.ForeignKey("embedding_models.id")),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("waits_for", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("actor", sa.Text),
    sa.Column("table_name", sa.Text),
    sa.Column("cursor", UUID(as_uuid=True)),
    sa.Column("stale", sa.Integer, nullable=False),
    sa.Column("stale_chars", sa.BigInteger, nullable=False),
    sa.Column("usd_per_million_tokens", sa.Double),
    sa.Column("done", sa.Integer, nullable=False, server_default="0"),
    sa.Column("failed", sa.Integer, nullable=False, server_default="0"),
    sa.Column("skipped", sa.Integer, nullable=False, server_default="0"),
    sa.Column("worked_seconds", sa.Double, nullable=False, server_default="0"),
    sa.Column("epoch", sa.Integer, nullable=False, server_default="0"),
    sa.Column("lease_until", Timestamp),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    sa.Column("ended_at", Timestamp),
    sa.CheckConstraint("state in ('running', 'paused', 'done', 'failed', 'rolled_back')", name="state"),
    sa.Index("reembed_jobs_live_idx", sa.text("(true)"), unique=True, postgresql_where=sa.text("ended_at is null")),
    sa.CheckConstraint("(ended_at is null) = (state in ('running', 'paused'))", name="ended"),
    comment="Embedding all memories with another model: one live job, where it stands, and who walks",
)

reembed_passed = sa.Table(
    "reembed_passed",
    metadata,
    sa.Column("job_id", sa.BigInteger, sa.ForeignKey("reembed_jobs.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("item_id", UUID(as_uuid=True), primary_key=True),
    sa.Column("reason", sa.Text, nullable=False),
    sa.CheckConstraint("reason in ('failed', 'matched')", name="reason"),
    comment="Rows that a re-embedding passed over: not embedded by its model, so not recalled once that serves",
)

gate_verdicts = sa.Table(
    "gate_verdicts",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("text_sha256", sa.Text, primary_key=True),
    sa.Column("pattern_set", sa.Text, primary_key=True),
    sa.Column("verdict", sa.Text, primary_key=True),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    comment="Which exact texts a pattern set cleared",
)

memory_items = sa.Table(
    "memory_items",
    metadata,
    sa.Column("id", UUID(as_uuid=True), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("scope_id", sa.Integer, sa.ForeignKey("scopes.id"), nullable=False),
    sa.Column("summary", sa.Text, nullable=False),
    sa.Column("rationale", sa.Text, nullable=False),
    sa.Column("failure_type", sa.Text),
    sa.Column("confidence", sa.Double),
    sa.Column("origin_tier", sa.SmallInteger, nullable=False),
    sa.Column("workflow_id", sa.Text),
    sa.Column("run_id", sa.Text),
    sa.Column("agent_key", sa.Text),
    sa.Column("model", sa.Text),
    sa.Column("cost_usd", sa.Numeric(12, 6)),
    sa.Column("skills_active", ARRAY(sa.Text), nullable=False, server_default=_no_list),
    sa.Column("metadata", JSONB, nullable=False, server_default=_no_object),
    sa.Column("terms", ARRAY(sa.Text), nullable=False, server_default=_no_list),
    sa.Column("authors", ARRAY(sa.Text), nullable=False, server_default=_no_list),
    sa.Column("source_event_id", sa.Text, nullable=False),
    sa.Column("ordinal", sa.SmallInteger, nullable=False, server_default="0"),
    sa.Column("text_sha256", sa.Text, nullable=False),
    sa.Column("pattern_set", sa.Text, nullable=False),
    sa.Column("verdict", sa.Text, nullable=False, server_default="clean"),
    sa.Column("evidence_at", Timestamp, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    sa.Column("confirmed_at", Timestamp),
    sa.Column("held_at", Timestamp),
    sa.Column("held_patterns", ARRAY(sa.Text), nullable=False, server_default=_no_list),
    sa.Column("consolidated_at", Timestamp),
    sa.Column("superseded_at", Timestamp),
    sa.Column("superseded_by_id", UUID(as_uuid=True), sa.ForeignKey("memory_items.id", ondelete="SET NULL")),
    # No reference: it names a group, which outlives the item whose id it began with.
    sa.Column("variant_group", UUID(as_uuid=True)),
    sa.UniqueConstraint("tenant", "source_event_id", "ordinal"),
    sa.ForeignKeyConstraint(
        ["tenant", "text_sha256", "pattern_set", "verdict"],
        [
            "gate_verdicts.tenant",
            "gate_verdicts.text_sha256",
            "gate_verdicts.pattern_set",
            "gate_verdicts.verdict",
        ],
        name="memory_items_gate_verdict_fkey",
    ),
    sa.CheckConstraint("verdict = 'clean'", name="cleared"),
    sa.CheckConstraint(
        "text_sha256 = encode(sha256(convert_to(summary || E'\\n\\n' || rationale, 'UTF8')), 'hex')",
        name="verdict_is_for_this_text",
    ),
    sa.CheckConstraint("confidence between 0 and 1", name="confidence"),
    sa.CheckConstraint("origin_tier between 0 and 3", name="origin_tier"),
    sa.Index("memory_items_scope_id_created_at_idx", "scope_id", sa.text("created_at desc")),
    sa.Index("memory_items_tenant_run_id_idx", "tenant", "run_id"),
    sa.Index("memory_items_superseded_by_id_idx", "superseded_by_id"),
    sa.Index("memory_items_pattern_set_idx", "pattern_set", "id"),
    sa.Index("memory_items_variant_group_idx", "variant_group", postgresql_where=sa.text("variant_group is not null")),
    sa.Index("memory_items_held_idx", "tenant", "held_at", postgresql_where=sa.text("held_at is not null")),
    sa.Index("memory_items_authors_idx", "authors", postgresql_using="gin"),
    sa.Index("memory_items_tenant_text_sha256_idx", "tenant", "text_sha256"),
    comment="A memory: what is recalled, why, and where it came from. No row without a clean verdict on its text",
)

memory_vectors = sa.Table(
    "memory_vectors",
    metadata,
    sa.Column("item_id", UUID(as_uuid=True), sa.ForeignKey("memory_items.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("model_id", sa.SmallInteger, sa.ForeignKey("embedding_models.id"), primary_key=True),
    sa.Column("scope_id", sa.Integer, nullable=False),
    sa.Column("active", sa.Boolean, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False),
    sa.Column("terms_total", sa.SmallInteger, nullable=False),
    sa.Column("origin_tier", sa.SmallInteger, nullable=False),
    sa.Column("embedding", HalfVector, nullable=False),
    sa.CheckConstraint("abs(l2_norm(embedding) - 1) < 0.01", name="unit_length"),
    sa.Index(
        "memory_vectors_scan",
        "scope_id",
        "model_id",
        "item_id",
        postgresql_include=["created_at", "terms_total", "origin_tier", "embedding"],
        postgresql_where=sa.text("active"),
    ),
    comment="What a scan of a scope reads, index-only: unit vectors by (item, model), age, length and tier",
)

memory_terms = sa.Table(
    "memory_terms",
    metadata,
    sa.Column("scope_id", sa.Integer, primary_key=True),
    sa.Column("term", sa.Text, primary_key=True),
    sa.Column("item_id", UUID(as_uuid=True), sa.ForeignKey("memory_items.id", ondelete="CASCADE"), primary_key=True),
    sa.Index("memory_terms_item_id_idx", "item_id"),
    comment="The words that find an active item; memory_items.terms restores them when it is active again",
)

scope_terms = sa.Table(
    "scope_terms",
    metadata,
    sa.Column("scope_id", sa.Integer, primary_key=True),
    sa.Column("term", sa.Text, primary_key=True),
    sa.Column("documents", sa.Integer, nullable=False),
    sa.CheckConstraint("documents >= 0", name="documents"),
    comment="In how many active items of a scope each word stands; counted by libs.common.active_items",
)

memory_fingerprints = sa.Table(
    "memory_fingerprints",
    metadata,
    sa.Column("scope_id", sa.Integer, primary_key=True),
    sa.Column("fingerprint", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("item_id", UUID(as_uuid=True), sa.ForeignKey("memory_items.id", ondelete="CASCADE"), primary_key=True),
    sa.Index("memory_fingerprints_item_id_idx", "item_id"),
    comment="Which errors the evidence of an item, active or not, held: hashes of their lines (domain/fingerprint)",
)

memory_sources = sa.Table(
    "memory_sources",
    metadata,
    sa.Column("merged_id", UUID(as_uuid=True), sa.ForeignKey("memory_items.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("source_id", UUID(as_uuid=True), sa.ForeignKey("memory_items.id", ondelete="CASCADE"), primary_key=True),
    sa.Index("memory_sources_source_id_idx", "source_id"),
    comment="Which items a merged item stands for",
)

consolidation_schedules = sa.Table(
    "consolidation_schedules",
    metadata,
    sa.Column("scope_id", sa.Integer, sa.ForeignKey("scopes.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("is_enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("cron", sa.Text),
    sa.Column("slot_at", Timestamp),
    comment="Whether the schedule merges a repository, and the last slot that it was merged for",
)

inbox = sa.Table(
    "inbox",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("schema_name", sa.Text, primary_key=True),
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("payload_sha256", sa.Text, nullable=False),
    sa.Column("stream", sa.Text, nullable=False),
    sa.Column("stream_sequence", sa.BigInteger, nullable=False),
    sa.Column("published_at", Timestamp, nullable=False),
    sa.Column("run_id", sa.Text),
    sa.Column("repository", sa.Text),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("patterns", ARRAY(sa.Text), nullable=False, server_default=_no_list),
    sa.Column("item_ids", ARRAY(UUID(as_uuid=True)), nullable=False, server_default=_no_list),
    sa.Column("claims", sa.Integer, nullable=False, server_default="1"),
    sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
    sa.Column("losses", sa.Integer, nullable=False, server_default="0"),
    sa.Column("lease_until", Timestamp),
    sa.Column("first_seen_at", Timestamp, nullable=False, server_default=_now),
    sa.Column("terminal_at", Timestamp),
    sa.CheckConstraint("status in ('claimed', 'written', 'skipped', 'refused', 'dead')", name="status"),
    sa.Index("inbox_first_seen_at_idx", "tenant", "first_seen_at"),
    comment="One row an event: claimed, then one terminal state; outlives the stream, so a replay changes nothing",
)

inbox_copies = sa.Table(
    "inbox_copies",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("schema_name", sa.Text, primary_key=True),
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("stream", sa.Text, primary_key=True),
    sa.Column("stream_sequence", sa.BigInteger, primary_key=True),
    sa.Column("published_at", Timestamp, nullable=False),
    comment="Where a stream holds an event once more: what forgetting has to find beside the message in the inbox row",
)

outbox = sa.Table(
    "outbox",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("payload", JSONB, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    comment="Facts that wait for the relay; written in the transaction that made them true",
)

dead_letters = sa.Table(
    "dead_letters",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("service", sa.Text, nullable=False),
    sa.Column("schema_name", sa.Text, nullable=False),
    sa.Column("event_id", sa.Text, nullable=False),
    sa.Column("subject", sa.Text, nullable=False),
    sa.Column("payload", BYTEA, nullable=False),
    sa.Column("reason", sa.Text, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    sa.Column("replayed_at", Timestamp),
    comment="Events that could not be handled, credentials masked, with the reason",
)

settings = sa.Table(
    "settings",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("scope_kind", sa.Text, primary_key=True),
    sa.Column("scope_key", sa.Text, primary_key=True),
    sa.Column("value", JSONB, nullable=False),
    sa.Column("updated_at", Timestamp, nullable=False, server_default=_now),
    sa.Column("updated_by", sa.Text),
    comment="What administrators set: platform, organization, team, channel",
)

gate_patterns = sa.Table(
    "gate_patterns",
    metadata,
    sa.Column("label", sa.Text, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("flags", sa.Text, nullable=False, server_default=""),
    sa.Column("severity", sa.Text, nullable=False, server_default="block"),
    sa.Column("must_match", ARRAY(sa.Text), nullable=False),
    sa.Column("must_not_match", ARRAY(sa.Text), nullable=False),
    sa.Column("is_built_in", sa.Boolean, nullable=False),
    sa.Column("is_active", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("updated_at", Timestamp, nullable=False, server_default=_now),
    sa.CheckConstraint("severity in ('block', 'watch')", name="severity"),
    comment="What the gate looks for, each with examples that prove it",
)

gate_findings = sa.Table(
    "gate_findings",
    metadata,
    sa.Column("item_id", UUID(as_uuid=True), sa.ForeignKey("memory_items.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("pattern_set", sa.Text, nullable=False),
    sa.Column("patterns", ARRAY(sa.Text), nullable=False),
    sa.Column("found_at", Timestamp, nullable=False, server_default=_now),
    sa.Index("gate_findings_tenant_idx", "tenant", "found_at"),
    comment="Stored items that a later pattern set matches: kept, never recalled, listed for administrators",
)

origin_quarantines = sa.Table(
    "origin_quarantines",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("origin", sa.Text, primary_key=True),
    sa.Column("until", Timestamp, nullable=False),
    comment="Who was refused too often, and until when nothing of theirs is taken",
)

audit = sa.Table(
    "audit",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("entity_kind", sa.Text, nullable=False),
    sa.Column("entity_id", sa.Text, nullable=False),
    sa.Column("before", JSONB),
    sa.Column("after", JSONB),
    sa.Column("at", Timestamp, nullable=False, server_default=_now),
    sa.Index("audit_entity_idx", "tenant", "entity_kind", "entity_id"),
    comment="Who changed what, written in the transaction of the change",
)

recall_log = sa.Table(
    "recall_log",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("scope_kind", sa.Text, nullable=False),
    sa.Column("scope_key", sa.Text, nullable=False),
    sa.Column("run_id", sa.Text),
    sa.Column("agent", sa.Text),
    sa.Column("item_ids", ARRAY(UUID(as_uuid=True)), nullable=False),
    sa.Column("dropped_ids", ARRAY(UUID(as_uuid=True)), nullable=False),
    sa.Column("at", Timestamp, nullable=False, server_default=_now),
    sa.Index("recall_log_tenant_run_id_idx", "tenant", "run_id"),
    comment="What each recall gave to whom: ids only, never the query",
)

evidence_parts = sa.Table(
    "evidence_parts",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("sha256", sa.Text, primary_key=True),
    sa.Column("data", BYTEA, nullable=False),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    sa.Index("evidence_parts_created_at_idx", "created_at"),
    comment="Transcript parts put ahead of their event; gone when it ends",
)

model_answers = sa.Table(
    "model_answers",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("purpose", sa.Text, primary_key=True),
    sa.Column("answer", JSONB, nullable=False),
    sa.Column("model", sa.Text, nullable=False),
    sa.Column("cost_usd", sa.Numeric(12, 6)),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    comment="What a model answered for an event in work, so that no outage bills it twice; gone when the event ends",
)

model_spend = sa.Table(
    "model_spend",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("day", sa.Date, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Numeric(12, 6), nullable=False),
    comment="What each tenant's model calls cost on a day (UTC)",
)

model_holds = sa.Table(
    "model_holds",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("usd", sa.Numeric(12, 6), nullable=False),
    sa.Column("expires_at", Timestamp, nullable=False),
    sa.Index("model_holds_tenant_idx", "tenant"),
    comment="Model calls in flight at their estimated cost; one that its process did not settle runs out",
)

tombstones = sa.Table(
    "tombstones",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("kind", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("buried_at", Timestamp, nullable=False),
    sa.CheckConstraint("kind in ('event', 'item', 'person', 'session')", name="kind"),
    comment="What was forgotten, by id: work in flight looks here before it stores",
)

bus_erasures = sa.Table(
    "bus_erasures",
    metadata,
    sa.Column("stream", sa.Text, primary_key=True),
    sa.Column("stream_sequence", sa.BigInteger, primary_key=True),
    sa.Column("published_at", Timestamp, primary_key=True),
    sa.Column("requested_at", Timestamp, nullable=False, server_default=_now),
    comment="Messages of forgotten events that a stream still holds; gone when they are",
)

sessions = sa.Table(
    "sessions",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("project", sa.Text, nullable=False),
    sa.Column("metadata", JSONB, nullable=False, server_default=_no_object),
    sa.Column("started_at", Timestamp, nullable=False, server_default=_now),
    sa.Column("used_at", Timestamp, nullable=False, server_default=_now),
    sa.Column("ended_at", Timestamp),
    sa.Column("end_reason", sa.Text),
    sa.CheckConstraint("end_reason in ('closed', 'idle')", name="end_reason"),
    sa.CheckConstraint("(ended_at is null) = (end_reason is null)", name="ended"),
    sa.Index("sessions_tenant_project_started_at_idx", "tenant", "project", sa.text("started_at desc")),
    sa.Index("sessions_open_idx", "used_at", postgresql_where=sa.text("ended_at is null")),
    comment="The units of work that entries are grouped by; metadata.ownerUserId says whose one is",
)

entries = sa.Table(
    "entries",
    metadata,
    sa.Column("item_id", UUID(as_uuid=True), sa.ForeignKey("memory_items.id", ondelete="CASCADE"), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("session_id", sa.Text),
    sa.Column("tags", ARRAY(sa.Text), nullable=False, server_default=_no_list),
    sa.Index("entries_tenant_session_id_idx", "tenant", "session_id"),
    sa.Index("entries_tags_idx", "tags", postgresql_using="gin"),
    comment="What an entry has beside its memory: its session, which need not be known, and its tags",
)

works = sa.Table(
    "works",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("id", sa.Text, primary_key=True),
    sa.Column("seen_at", Timestamp, nullable=False, server_default=_now),
    comment="Works that somebody with a role in them has used: others' are told from those that are not there",
)

channels = sa.Table(
    "channels",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("channel", sa.Text, nullable=False),
    sa.Column("org_id", sa.Text),
    sa.Column("team_id", sa.Text),
    sa.Column("is_private", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("is_active", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("passive_ingest_enabled", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("consolidation_enabled", sa.Boolean, nullable=False, server_default=sa.true()),
    sa.Column("org_flagging_enabled", sa.Boolean, nullable=False, server_default=sa.false()),
    sa.Column("ingest_cursor", sa.Text),
    sa.Column("flagged_at", Timestamp),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    sa.CheckConstraint("key = coalesce(org_id || '/', '') || channel", name="key"),
    sa.Index("channels_team_idx", "tenant", "org_id", "team_id"),
    comment="The directory of chat channels: whose each is, who may read it, and what it has opted in to",
)

ingest_windows = sa.Table(
    "ingest_windows",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("event_id", sa.Text, primary_key=True),
    sa.Column("after", sa.Text),
    sa.Column("created_at", Timestamp, nullable=False, server_default=_now),
    comment="Where a page of messages in work began, since the cursor moves before the work; gone when its event ends",
)

channel_spend = sa.Table(
    "channel_spend",
    metadata,
    sa.Column("tenant", sa.Text, primary_key=True),
    sa.Column("channel_key", sa.Text, primary_key=True),
    sa.Column("month", sa.Date, primary_key=True),
    sa.Column("calls", sa.Integer, nullable=False),
    sa.Column("cost_usd", sa.Numeric(15, 9), nullable=False),
    comment="What each channel's model and embedding calls cost in a month (UTC)",
)

channel_holds = sa.Table(
    "channel_holds",
    metadata,
    sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
    sa.Column("tenant", sa.Text, nullable=False),
    sa.Column("channel_key", sa.Text, nullable=False),
    sa.Column("usd", sa.Numeric(15, 9), nullable=False),
    sa.Column("expires_at", Timestamp, nullable=False),
    sa.Index("channel_holds_tenant_channel_key_idx", "tenant", "channel_key"),
    comment="Calls of channels in flight at their estimated cost; one that its process did not settle runs out",
)
