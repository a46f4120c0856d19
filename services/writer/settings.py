"""What an operator can set of the writer."""

from pydantic import Field

from libs.common.settings import CommonSettings


class WriterSettings(CommonSettings):
    """`LOREBUS_WRITER_*`"""

    writer_concurrency: int = Field(default=4, ge=1, le=64)
    writer_handling_seconds_max: float = Field(default=300.0, gt=0)
    """Three questions to a model, which may take LOREBUS_LLM_TIMEOUT_SECONDS each, have to fit."""
    writer_model_tries_max: int = Field(default=6, ge=1)
    """How often a run is begun while the model does not answer; then the lesson is written without it."""
    writer_gate_timeout_seconds: float = Field(default=2.0, gt=0)
    writer_rescreen_seconds: float = Field(default=60.0, gt=0)
    """How often it is looked whether stored texts have to be screened again, by another pattern set."""
