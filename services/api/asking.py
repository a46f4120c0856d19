"""What routes know of a request beside its body."""

import hashlib
from typing import Annotated, cast

from fastapi import Depends, Header, Request

from services.api.rules import Caller


def _caller_of(request: Request) -> Caller:
    return cast("Caller", request.state.caller)


AskedBy = Annotated[Caller, Depends(_caller_of)]
"""Who asks, as `edge.admission` found."""

IdempotencyKey = Annotated[str | None, Header(min_length=1, max_length=128)]
"""`Idempotency-Key`: a save under it counts once."""


def find_event_id(caller: Caller, idempotency_key: str | None) -> str | None:
    """The caller's key as an id that no other caller's key can be; None: each save counts."""
    if idempotency_key is None:
        return None
    return hashlib.sha256(f"{caller.key}\n{idempotency_key}".encode()).hexdigest()
