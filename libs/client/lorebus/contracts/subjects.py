"""Names on the bus. The tenant is the last token of a subject; a bare subject means `default`."""

import re

from lorebus.contracts.envelope import DEFAULT_TENANT
from lorebus.errors import InvalidMessage

RUN_FINISHED = "run.finished"
MEMORY_WRITE = "memory.write"
MEMORY_DELETE = "memory.delete"
EMBEDDING_CHANGED = "embedding.changed"
CONSOLIDATION_REQUESTED = "consolidation.requested"
CHANNEL_AMBIENT = "channel.ambient"

RECALL_REQUEST = "recall.request"
RECALL_SEARCH = "recall.search"
RECALL_EXPLAIN = "recall.explain"
GATE_SCREEN = "gate.screen"
EVIDENCE_PUT = "evidence.put"
MEMORY_SAVE = "memory.save"
CHANNEL_REGISTER = "channel.register"
CHANNEL_SET = "channel.set"
CHANNEL_SHOW = "channel.show"
CHANNEL_EDIT = "channel.edit"
CHANNEL_FLAGGED = "channel.flagged"

MEMORY_EVENT = "memory.event"
DEAD_LETTER = "dlq"

_TENANT_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def subject_for(base: str, tenant: str = DEFAULT_TENANT) -> str:
    """`recall.request` for the default tenant, `recall.request.acme` for `acme`."""
    return base if _checked(tenant) == DEFAULT_TENANT else f"{base}.{tenant}"


def tenant_of(subject: str, base: str) -> str:
    """The tenant that a subject below `base` speaks for. Raises InvalidMessage for a token that is none."""
    return _checked(subject[len(base) + 1 :] or DEFAULT_TENANT)


def _checked(tenant: str) -> str:
    if not _TENANT_TOKEN.match(tenant):
        raise InvalidMessage("a tenant is 1-64 letters, digits, '-' or '_'")
    return tenant


def event_subject(kind: str, tenant: str = DEFAULT_TENANT) -> str:
    """`memory.event.lesson_written[.tenant]`."""
    return subject_for(f"{MEMORY_EVENT}.{kind}", tenant)
