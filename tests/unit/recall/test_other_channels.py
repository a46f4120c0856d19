"""How near another channel's note has to be."""

from datetime import UTC, datetime

import numpy as np
import pytest

from libs.common.domain.calibration import Background
from services.recall.channels import find_cosine_min
from services.recall.limits import Limits
from services.recall.rules import EVERYTHING_PASSES, ScopeName, bars_of
from services.recall.store import Question

BACKGROUND = Background(mean=0.1, sd=0.05)
QUESTION = Question(
    scope=ScopeName("default", "channel-memory", "acme/C1"),
    model_id=1,
    vector=np.zeros(4, np.float32),
    terms=(),
    terms_known=(),
    background_size=0,
    created_after=datetime(1, 1, 1, tzinfo=UTC),
    background=BACKGROUND,
    bars=EVERYTHING_PASSES,
    limit=5,
)


def limits(similarity_min: float, **fields: object) -> Limits:
    known = {"items_max": 5, "similarity_min": similarity_min, "created_after": datetime(1, 1, 1, tzinfo=UTC)}
    return Limits(**(known | fields))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(("own", "others"), [(0.0, 0.75), (0.65, 0.75), (0.75, 0.75), (0.9, 0.9)])
def test_another_channels_note_has_to_reach_075_and_what_an_own_has_to(own: float, others: float) -> None:
    assert find_cosine_min(QUESTION, limits(own)) == bars_of(others, BACKGROUND).cosine_min
    assert find_cosine_min(QUESTION, limits(own, calibration="cosine")) == others
