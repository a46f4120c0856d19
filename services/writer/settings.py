"""What an operator can set of the writer."""

from pydantic import Field

from libs.common.settings import CommonSettings


class WriterSettings(CommonSettings):
    """`LOREBUS_WRITER_*`"""

    writer_concurrency: int = Field(default=4, ge=1, le=64)
    writer_handling_seconds_max: float = Field(default=180.0, gt=0)
    writer_gate_timeout_seconds: float = Field(default=2.0, gt=0)
    writer_supersede_similarity_min: float = Field(default=0.92, ge=0, le=1)
    """A newer lesson at least this near replaces an older one; 1 turns it off."""
