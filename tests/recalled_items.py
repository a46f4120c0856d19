"""Items as the recall statement finds them, for tests of what becomes of them."""

from datetime import UTC, datetime
from uuid import UUID

from services.recall.rules import Found

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def found(number: int, **fields: object) -> Found:
    known = {
        "summary": f"lesson {number}",
        "failure_type": "CI_FAILURE",
        "confidence": 0.9,
        "run_id": "r",
        "pattern_set": "p1",
        "similarity": 0.5,
        "coverage": 0.3,
        "tier": 2,
    }
    return Found(id=UUID(int=number), created_at=NOW, **(known | fields))
