"""`embedding.changed`: another embedding model is to embed the memories (contract 2.6)."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from lorebus.contracts.envelope import Envelope, Identifier

ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\s\x00]+$")]


class EmbeddingChanged(Envelope):
    """The model belongs to the installation, so only the default tenant may say this."""

    schema_: Literal["embedding.changed"] = Field(default="embedding.changed", alias="schema")
    model: ModelName
    """`<provider>/<model>`."""
    dimensions: int | None = Field(default=None, ge=1)
    """The length to ask a hosted model for; None: whatever it gives."""
    reembed: bool = False
    """False only counts what the model has not embedded; a local, free model starts all the same."""
    actor: Identifier | None = None
