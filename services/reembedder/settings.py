"""What an operator can set of the reembedder."""

from pydantic import Field

from libs.common.settings import CommonSettings


class ReembedderSettings(CommonSettings):
    """`LOREBUS_REEMBEDDER_*`"""

    reembedder_poll_seconds: float = Field(default=1.0, gt=0)
    """How often a copy that has nothing to do looks for a job."""
    reembedder_gate_timeout_seconds: float = Field(default=2.0, gt=0)
