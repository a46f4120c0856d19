"""`consolidation.requested`: like memories of one place are to be merged, or of every repository (contract 2)."""

from typing import Literal, Self

from pydantic import Field, model_validator

from lorebus.contracts.envelope import Envelope, Identifier, Repository


class RequestConsolidation(Envelope):
    """Without a repository and a channel: a job for every repository that the schedule would merge."""

    schema_: Literal["consolidation.requested"] = Field(default="consolidation.requested", alias="schema")
    repository: Repository | None = None
    channel: Identifier | None = None
    similarity_min: float | None = Field(default=None, ge=0.5, le=1)
    """None: what administrators have set."""
    cluster_size_min: int | None = Field(default=None, ge=2, le=20)
    """None: what administrators have set."""
    actor: Identifier | None = None

    @model_validator(mode="after")
    def _names_one_place(self) -> Self:
        if self.repository is not None and self.channel is not None:
            raise ValueError("name a repository or a channel, not both")
        return self
