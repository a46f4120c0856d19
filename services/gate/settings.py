"""What an operator can set of the gate."""

from pydantic import Field

from libs.common.settings import CommonSettings


class GateSettings(CommonSettings):
    """`LOREBUS_GATE_*`"""

    gate_quarantine_seconds: float = Field(default=600.0, gt=0)
    gate_reload_seconds: float = Field(default=60.0, gt=0)
    """The stored patterns are looked at every second; twice this without success and nothing is screened."""
