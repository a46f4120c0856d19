"""What an operator can set of recall."""

from pydantic import Field

from libs.common.settings import CommonSettings


class RecallSettings(CommonSettings):
    """`LOREBUS_RECALL_*`"""

    recall_similarity_min: float = Field(default=0.7, ge=0, le=1)
    """In the seed's numbers; the model's calibration maps it to its own cosines."""
    recall_age_days_max: int = Field(default=0, ge=0)
    """Older memories are not recalled; 0 recalls all."""
    recall_gate_timeout_seconds: float = Field(default=0.3, gt=0)
    recall_store_timeout_seconds: float = Field(default=0.4, gt=0)
