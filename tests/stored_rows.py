"""Stored memories without a writer: many rows in one transaction, as it would have made them."""

from datetime import UTC, datetime
from uuid import UUID, uuid4

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.active_items import activate
from libs.common.domain.lexical import tokenize
from libs.common.domain.memory import screened_text, text_hash
from libs.common.embedding.models import ServingModel
from libs.common.forgetting import IDS_AT_ONCE_MAX
from libs.common.schema import gate_verdicts, memory_items, scopes
from libs.common.vectors import MEMORY, insert_vectors

PATTERN_SET = "as-written"
RATIONALE = "It was so."


async def store_rows(
    engine: AsyncEngine, model: ServingModel, repository: str, texts: list[str], pattern_set: str = PATTERN_SET
) -> list[UUID]:
    """Active lessons of a repository, embedded by the model."""
    vectors = await model.embedder.embed(texts)
    ids = [uuid4() for _ in texts]
    async with engine.begin() as connection:
        scope = insert(scopes).values(tenant="default", kind="swe-lessons", key=repository).returning(scopes.c.id)
        scope_id = (await connection.execute(scope)).scalar_one()
        items = [_item(id_, text, pattern_set) | {"scope_id": scope_id} for id_, text in zip(ids, texts, strict=True)]
        verdicts = [{name: item[name] for name in ("tenant", "text_sha256", "pattern_set")} for item in items]
        await connection.execute(
            insert(gate_verdicts).on_conflict_do_nothing(), [verdict | {"verdict": "clean"} for verdict in verdicts]
        )
        await connection.execute(sa.insert(memory_items), items)
        await insert_vectors(connection, MEMORY, [(id_, model.id, row) for id_, row in zip(ids, vectors, strict=True)])
        for start in range(0, len(ids), IDS_AT_ONCE_MAX):
            await activate(connection, scope_id, ids[start : start + IDS_AT_ONCE_MAX])
    return ids


def _item(id_: UUID, text: str, pattern_set: str) -> dict[str, object]:
    return {
        "id": id_,
        "tenant": "default",
        "summary": text,
        "rationale": RATIONALE,
        "failure_type": "CI_FAILURE",
        "confidence": 0.9,
        "origin_tier": 2,
        "metadata": {},
        "terms": list(dict.fromkeys(tokenize(text))),
        "source_event_id": str(id_),
        "text_sha256": text_hash(screened_text(text, RATIONALE)),
        "pattern_set": pattern_set,
        "evidence_at": datetime.now(UTC),
    }
