"""What an operator can set of the consolidator."""

from pydantic import Field

from libs.common.settings import CommonSettings


class ConsolidatorSettings(CommonSettings):
    """`LOREBUS_CONSOLIDATOR_*`"""

    consolidator_concurrency: int = Field(default=2, ge=1, le=8)
    """Requests handled at once."""
    consolidator_handling_seconds_max: float = Field(default=900.0, gt=0)
    """What was worded by then is kept, so that the next try goes on from there."""
    consolidator_gate_timeout_seconds: float = Field(default=5.0, gt=0)
    consolidator_schedule_seconds: float = Field(default=30.0, gt=0)
    """How often it is looked whether a slot of the schedule has come."""
