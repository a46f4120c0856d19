"""What every fact has (contract 2.7).

Facts carry ids, counts, reasons and pattern labels; never memory text, evidence or a secret.
"""

from datetime import datetime
from typing import ClassVar

from lorebus.contracts.envelope import Message

WRITE_REFUSED = "MEMORY_WRITE_REFUSED"
RECALL_DROPPED = "MEMORY_RECALL_DROPPED"


class MemoryEvent(Message):
    """Base of all facts. `kind` is the last part of the subject."""

    kind: ClassVar[str]

    tenant: str = "default"
    at: datetime | None = None
