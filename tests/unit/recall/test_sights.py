"""What recall remembers of the queries that it embedded."""

import numpy as np

from libs.common.domain.calibration import Background
from libs.common.embedding.hashing import HashingEmbedder
from libs.common.embedding.models import ServingModel
from services.recall.sights import Sight, Sights


def model(id_: int = 1) -> ServingModel:
    return ServingModel(id=id_, embedder=HashingEmbedder(), background=np.eye(2, dtype=np.float32))


def sight() -> Sight:
    return Sight(np.ones(2, dtype=np.float32), Background(mean=0.1, sd=0.1))


MODEL = model()


def test_a_query_is_remembered_as_the_model_saw_it() -> None:
    sights, seen = Sights(), sight()
    sights.keep("acme", MODEL, "why does the build fail", seen)
    assert sights.find("acme", MODEL, "why does the build fail") is seen
    assert sights.find("acme", MODEL, "why does the build pass") is None


def test_no_tenant_learns_what_another_asked() -> None:
    sights = Sights()
    sights.keep("acme", MODEL, "why does the build fail", sight())
    assert sights.find("globex", MODEL, "why does the build fail") is None


def test_another_model_sees_for_itself() -> None:
    sights = Sights()
    sights.keep("acme", MODEL, "why does the build fail", sight())
    assert sights.find("acme", model(2), "why does the build fail") is None


def test_a_model_that_was_built_anew_sees_for_itself() -> None:
    sights, anew = Sights(), sight()
    sights.keep("acme", MODEL, "why does the build fail", sight())
    built_anew = model()
    assert sights.find("acme", built_anew, "why does the build fail") is None
    sights.keep("acme", built_anew, "why does the build fail", anew)
    assert sights.find("acme", built_anew, "why does the build fail") is anew


def test_what_was_asked_longest_ago_is_forgotten_first() -> None:
    sights = Sights(sights_max=2)
    for text in ("one", "two"):
        sights.keep("acme", MODEL, text, sight())
    sights.find("acme", MODEL, "one")
    sights.keep("acme", MODEL, "three", sight())
    assert [bool(sights.find("acme", MODEL, text)) for text in ("one", "two", "three")] == [True, False, True]
