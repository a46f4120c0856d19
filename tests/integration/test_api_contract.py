"""The running service against its committed description: whatever is sent, the answer is one that the description has.

Schemathesis makes requests from the description, sound ones and broken ones, the same at every run. For more of them:
LOREBUS_CONTRACT_EXAMPLES=500.
"""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import schemathesis
from _pytest.mark import ParameterSet
from api_surface import FIXTURES, SECRET, Api, token
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import APIOperation, Case, GenerationMode
from schemathesis.checks import CHECKS

api, project = FIXTURES

EXAMPLES = int(os.environ.get("LOREBUS_CONTRACT_EXAMPLES", "12"))
"""For each operation and kind."""
SCHEMA = schemathesis.openapi.from_path(Path(__file__).parents[2] / "docs/openapi.json")
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]
KEPT = [
    CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    )
]


def list_requests() -> Iterator[ParameterSet]:
    for operation in OPERATIONS:
        takes_something = bool(operation.body or list(operation.iter_parameters()))
        for mode in GenerationMode if takes_something else [GenerationMode.POSITIVE]:
            yield pytest.param(operation, mode, id=f"{operation.label} {mode.value}")


@pytest.mark.parametrize(("operation", "mode"), [*list_requests()])
async def test_every_answer_is_one_that_the_description_has(
    api: Api, operation: APIOperation, mode: GenerationMode
) -> None:
    bearer = SECRET if operation.path.startswith("/agentmemory") else token("ann", roles=["admin"])

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def answers_as_described(case: Case) -> None:
        case.call_and_validate(api.url, headers={"authorization": f"Bearer {bearer}"}, checks=KEPT)

    # In a thread: this one's loop runs the service.
    await asyncio.to_thread(answers_as_described)
