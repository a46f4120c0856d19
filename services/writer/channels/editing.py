"""`channel.edit`: other words for one memory of a channel, screened like new ones, embedded anew, audited.

All in one transaction: a memory never has the words of one text and the vector of another. Only an active memory is
edited, since what was merged from another or replaced it would keep the old words.
"""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from lorebus.contracts.channels import ChannelError, EditMemory, EditReply
from lorebus.contracts.gate import Origin
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from libs.common.active_items import activate, deactivate, delete_unused_words
from libs.common.channel_budget import ChannelBudget, Payer
from libs.common.channels import ChannelDirectory
from libs.common.database import lock_scope, outages_as_store_unavailable
from libs.common.domain.lexical import tokenize
from libs.common.domain.memory import screened_text, text_hash
from libs.common.domain.setting_cascade import Owner
from libs.common.embedding.serving import Models, TextVectors, hold_serving
from libs.common.errors import EmbedderUnavailable, GateUnavailable, SpendingRefused, StoreUnavailable
from libs.common.forgetting import MEMORY_EDIT, delete_unused_verdicts
from libs.common.gate_client import GateClient, Screening
from libs.common.schema import audit, gate_findings, gate_verdicts, memory_items, memory_vectors, scopes
from libs.common.tombstones import Work, find_buried
from libs.common.vectors import MEMORY, insert_vectors
from services.writer.channels.wording import cut
from services.writer.evidence.cleaning import clean_text
from services.writer.rules import TERMS_MAX

_ORIGIN = Origin(kind="channel.edit", run_id=None, writer="administrator")


@dataclass(frozen=True, slots=True)
class Edited:
    """A memory before or after: its scope stays its own."""

    id: UUID
    scope_id: int
    summary: str
    rationale: str


class Editing:
    def __init__(
        self,
        engine: AsyncEngine,
        gate: GateClient,
        models: Models,
        directory: ChannelDirectory,
        budget: ChannelBudget,
    ) -> None:
        self._engine = engine
        self._gate = gate
        self._models = models
        self._directory = directory
        self._budget = budget

    async def edit(self, question: EditMemory, tenant: str) -> EditReply:
        try:
            return await self._edit(question, tenant)
        except GateUnavailable:
            return refuse("gate", "the gate did not answer; edit it again")
        except EmbedderUnavailable:
            return refuse("embedder", "the embedder did not answer; edit it again")
        except SpendingRefused as error:
            return refuse("over_budget", str(error))
        except StoreUnavailable:
            return refuse("store", "the database did not answer; edit it again")

    async def _edit(self, question: EditMemory, tenant: str) -> EditReply:
        if question.summary is None and question.rationale is None:
            return refuse("invalid_request", "name a summary or a rationale")
        with outages_as_store_unavailable():
            async with self._engine.connect() as connection:
                before = await _find(connection, tenant, question)
        if before is None:
            return refuse("unknown", "the channel has no active memory of this id")
        after = reword(before, question)
        screening = await self._gate.screen("write", texts_of(after), tenant=tenant, origin=_ORIGIN)
        if screening.matched or screening.incomplete or screening.watched:
            return _refused(screening)
        return await self._store(question, tenant, after, screening)

    async def _store(self, question: EditMemory, tenant: str, after: Edited, screening: Screening) -> EditReply:
        channel = await self._directory.find(tenant, question.key)
        payer = Payer(tenant, question.key, channel.owner if channel else Owner(channel=question.key))
        [vectors] = await self._budget.embed(self._models, payer, [after.summary])
        with outages_as_store_unavailable():
            async with self._engine.begin() as connection:
                await hold_serving(connection, vectors.model_id)
                await lock_scope(connection, after.scope_id)
                buried = await find_buried(connection, Work(tenant, items=[after.id]))
                before = None if buried else await _find(connection, tenant, question, is_locking=True)
                if before is None:
                    return refuse("forgotten", "it was forgotten, merged or replaced meanwhile")
                # What it does not name may have been edited meanwhile: then the words are others than those screened.
                if reword(before, question) != after:
                    return refuse("store", "somebody else edited it at the same time; edit it again")
                await _replace(connection, tenant, after, screening.pattern_set, vectors)
                await connection.execute(sa.insert(audit).values(_audit_entry(tenant, question, before, after)))
        return EditReply(id=str(after.id))


def reword(before: Edited, question: EditMemory) -> Edited:
    """Masked and cut, as every text of a channel is."""
    summary = before.summary if question.summary is None else cut(clean_text(question.summary))
    rationale = before.rationale if question.rationale is None else cut(clean_text(question.rationale))
    return Edited(before.id, before.scope_id, summary, rationale)


def texts_of(edited: Edited) -> dict[str, str]:
    """Each part alone and the whole, as of a new memory."""
    parts = {"summary": edited.summary, "rationale": edited.rationale}
    parts["whole"] = screened_text(edited.summary, edited.rationale)
    return {name: text for name, text in parts.items() if text}


def refuse(error: ChannelError, reason: str) -> EditReply:
    return EditReply(error=error, reason=reason)


def _refused(screening: Screening) -> EditReply:
    if screening.incomplete and not screening.matched:
        return refuse("incomplete", "the gate could not scan the whole text; edit it later")
    patterns = screening.patterns or screening.watched_patterns
    return EditReply(error="matched", reason="the gate found a pattern in the text; reword it", patterns=patterns)


async def _find(
    connection: AsyncConnection, tenant: str, question: EditMemory, *, is_locking: bool = False
) -> Edited | None:
    items = memory_items.c
    query = (
        sa.select(items.id, items.scope_id, items.summary, items.rationale)
        .join(scopes, scopes.c.id == items.scope_id)
        .where(scopes.c.tenant == tenant, scopes.c.kind == "channel-memory", scopes.c.key == question.key)
        .where(items.tenant == tenant, items.id == question.id)
        .where(items.superseded_at.is_(None), items.consolidated_at.is_(None), items.held_at.is_(None))
    )
    query = query.with_for_update(of=memory_items) if is_locking else query
    row = (await connection.execute(query)).one_or_none()
    return Edited(*row) if row else None


async def _replace(
    connection: AsyncConnection, tenant: str, after: Edited, pattern_set: str, vectors: TextVectors
) -> None:
    """Out of the counts with the old words, back with the new ones."""
    sha256 = text_hash(screened_text(after.summary, after.rationale))
    verdict = {"tenant": tenant, "text_sha256": sha256, "pattern_set": pattern_set, "verdict": "clean"}
    await connection.execute(insert(gate_verdicts).values(verdict).on_conflict_do_nothing())
    await deactivate(connection, after.scope_id, [after.id])
    own = memory_items.c.id == after.id
    old = sa.select(memory_items.c.text_sha256, memory_items.c.terms).where(own)
    was = (await connection.execute(old)).one()
    terms = list(dict.fromkeys(tokenize(f"{after.summary}\n{after.rationale}")))[:TERMS_MAX]
    words: dict[str, Any] = {"summary": after.summary, "rationale": after.rationale, "terms": terms}
    words |= {"text_sha256": sha256, "pattern_set": pattern_set, "variant_group": None}
    await connection.execute(sa.update(memory_items).where(own).values(words))
    await connection.execute(sa.delete(memory_vectors).where(memory_vectors.c.item_id == after.id))
    await connection.execute(sa.delete(gate_findings).where(gate_findings.c.item_id == after.id))
    rows = {vectors.model_id: vectors.embedding, **vectors.further}
    await insert_vectors(connection, MEMORY, [(after.id, model_id, row) for model_id, row in rows.items()])
    await activate(connection, after.scope_id, [after.id])
    await delete_unused_words(connection, after.scope_id, was.terms)
    await delete_unused_verdicts(connection, tenant, [was.text_sha256])


def _audit_entry(tenant: str, question: EditMemory, before: Edited, after: Edited) -> dict[str, Any]:
    """With the words: they go when the memory is forgotten."""
    entry: dict[str, Any] = {"tenant": tenant, "actor": question.actor, "action": MEMORY_EDIT}
    entry |= {"entity_kind": "memory", "entity_id": str(after.id)}
    entry["before"] = {"summary": before.summary, "rationale": before.rationale}
    return entry | {"after": {"summary": after.summary, "rationale": after.rationale}}
