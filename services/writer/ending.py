"""The end of an event: terminal in the inbox, and what was kept for its work alone goes."""

import sqlalchemy as sa
from lorebus.contracts.subjects import RUN_FINISHED
from sqlalchemy.ext.asyncio import AsyncConnection

from libs.common.domain.memory import event_key
from libs.common.inbox import Claim, Inbox, Outcome
from libs.common.language_model.answers import delete_answers
from libs.common.schema import ingest_windows
from services.writer.parts import delete_parts


async def end_event(connection: AsyncConnection, inbox: Inbox, claim: Claim, outcome: Outcome) -> None:
    """Raises ClaimLost, which must roll the transaction back."""
    receipt = claim.receipt
    key = event_key(receipt.schema_name, receipt.event_id)
    await inbox.settle(connection, claim, outcome)
    await delete_answers(connection, receipt.tenant, key)
    if receipt.schema_name == RUN_FINISHED:
        await delete_parts(connection, receipt.tenant, receipt.event_id)
    else:
        await connection.execute(sa.delete(ingest_windows).filter_by(tenant=receipt.tenant, event_id=key))
