"""Every table with vectors is walked when the embedding model changes."""

import pytest

from libs.common.embedding.choose import LOCAL_NAMES, create_embedder, name_of, setting_of
from libs.common.embedding.prices import find_listed_price
from libs.common.schema import HalfVector, metadata
from libs.common.vectors import VECTOR_TABLES, VectorTable


def test_every_table_with_vectors_is_in_the_registry() -> None:
    with_vectors = {
        table.name for table in metadata.tables.values() if any(isinstance(c.type, HalfVector) for c in table.columns)
    }
    assert with_vectors == {table.name for table in VECTOR_TABLES} != set()


@pytest.mark.parametrize("table", VECTOR_TABLES, ids=lambda table: table.name)
def test_what_stands_beside_a_vector_is_said_by_its_item(table: VectorTable) -> None:
    told = {"item_id", "model_id", "embedding", *table.carried}
    assert {column.name for column in table.vectors.columns} == told
    assert {"id", "tenant", "text_sha256", "pattern_set"} <= {column.name for column in table.items.columns}


@pytest.mark.parametrize("setting", ["wordllama", "hashing"])
def test_a_local_model_is_known_by_its_name(setting: str) -> None:
    assert create_embedder(setting).name == LOCAL_NAMES[setting]


@pytest.mark.parametrize("setting", [*LOCAL_NAMES, "litellm/openai/text-embedding-3-small", "litellm/own-model"])
def test_the_name_of_a_model_leads_back_to_its_setting(setting: str) -> None:
    assert setting_of(name_of(setting)) == setting


@pytest.mark.parametrize(
    ("name", "price"), [("openai/small", 2.0), ("mistral/embed", 10.0), ("openai/unheard-of", None)]
)
def test_a_price_is_found_with_or_without_its_provider(name: str, price: float | None) -> None:
    listed = {"small": {"input_cost_per_token": 2e-6}, "mistral/embed": {"input_cost_per_token": 1e-5}}
    assert find_listed_price(listed, name) == (None if price is None else pytest.approx(price))
