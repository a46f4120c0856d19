"""What an operator can set of the HTTP service."""

from pathlib import Path

from lorebus.contracts.envelope import DEFAULT_TENANT, Tenant
from lorebus.contracts.memory import NAME_CHARS_MAX
from pydantic import Field, SecretStr

from libs.common.settings import CommonSettings


class ApiSettings(CommonSettings):
    """`LOREBUS_API_*`"""

    api_secret: SecretStr | None = Field(default=None, min_length=16)
    """The bearer secret of `/agentmemory`."""
    api_jwt_secret: SecretStr | None = Field(default=None, min_length=32)
    """Signs the HS256 tokens of `/api/agent-memory`."""
    api_jwks_file: Path | None = None
    """Public keys of its RS256 tokens; read at the start."""
    api_jwt_issuer: str | None = None
    api_jwt_audience: str | None = None
    api_tenant: Tenant = DEFAULT_TENANT
    """Of who comes with the bearer secret, and of tokens that name none."""
    api_project_default: str = Field(default="ever-works", min_length=1, max_length=NAME_CHARS_MAX)
    """Of requests that name no project; first-party providers send it where they know none."""
    api_delete_beyond_project: bool = True
    """Whether `/agentmemory/forget` takes an id from any project: first-party providers name the default one."""
    api_session_idle_seconds: float = Field(default=14_400.0, gt=0)
    """After so long without use an open session is closed."""
    api_sweep_seconds: float = Field(default=60.0, gt=0)
    """How often idle sessions are looked for."""
    api_requests_per_minute: int = Field(default=6_000, ge=1)
    """Of one caller at one copy of the service; half a minute's worth may come at once."""
    api_body_bytes_max: int = Field(default=1024 * 1024, ge=1024)
    api_save_seconds_max: float = Field(default=25.0, gt=0)
    """How long a save is tried for; providers wait 30 s."""
    api_recall_seconds_max: float = Field(default=8.0, ge=0.05, le=30)
    """How long a search or a context may take; hosts wait 10 s for a context."""
