"""Structured logs: one JSON line an event, ids and counts only.

Tracebacks show neither local variables nor the texts of errors: both would print memory text.
"""

import logging
import sys
from pathlib import Path
from typing import Literal

import structlog


def configure_logging(
    level: str = "INFO", style: Literal["json", "console"] = "json", file: Path | None = None
) -> None:
    """Sends structlog and the standard library's loggers to stderr, or to a file, in one shape."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.ExceptionRenderer(
            structlog.tracebacks.ExceptionDictTransformer(show_locals=False, max_frames=20)
        ),
        _without_error_texts,
    ]
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer() if style == "json" else structlog.dev.ConsoleRenderer()
    )
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    handler = logging.FileHandler(file, encoding="utf-8") if file else logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _without_error_texts(
    _logger: object, _method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """A driver's error may quote the value that it could not take."""
    for error in event.get("exception", ()):
        if isinstance(error, dict):
            error["exc_value"] = ""
    return event
