"""What an operator can set of recall."""

from pydantic import Field

from libs.common.settings import CommonSettings


class RecallSettings(CommonSettings):
    """`LOREBUS_RECALL_*`"""

    recall_gate_timeout_seconds: float = Field(default=0.3, gt=0)
    recall_store_timeout_seconds: float = Field(default=0.4, gt=0)
