"""What can go wrong between a host and its memory, as one tree.

LorebusError
├── NoProvider               no provider is enabled for this caller
├── ProviderNotFound         the one that was asked for by name is not there, or not enabled
├── ProviderFailed           a provider's own error, with the operation and the provider
│   └── OperationNotSupported
├── ProviderSettingsInvalid  an address, key or bound that cannot be used
├── BackendUnavailable       not reached, cut off, or unreadable
│   └── BackendTimedOut
├── BackendRefused           answered with a status that is no success
└── AnswerUnreadable         a success without what it must hold

No text here quotes what was sent or stored: all of them may be logged.
"""

from typing import Literal

from lorebus.errors import LorebusError

Operation = Literal[
    "openSession", "closeSession", "listSessions", "saveMemory", "searchMemory", "buildContext", "deleteEntry"
]
"""As the REST surface names them in its errors (spec 4.2)."""

_HINTS = {
    401: "the backend does not take this API key",
    403: "the backend does not take this API key",
    404: "no such endpoint: the base URL is wrong, or the server is an old one",
    429: "the backend limits the rate of calls",
}


class NoProvider(LorebusError):
    def __init__(self) -> None:
        super().__init__("no memory provider is enabled: enable one for this user or Work")


class ProviderNotFound(LorebusError):
    def __init__(self, provider: str) -> None:
        super().__init__(f"the memory provider {provider} is not registered or not enabled")
        self.provider = provider


class ProviderFailed(LorebusError):
    """The provider's error is the cause; its words are repeated where they are ours."""

    def __init__(self, operation: Operation, provider: str, error: BaseException | None = None) -> None:
        super().__init__(f"{operation} with {provider} failed" + (f": {render_error(error)}" if error else ""))
        self.operation = operation
        self.provider = provider


class OperationNotSupported(ProviderFailed):
    def __init__(self, operation: Operation, provider: str) -> None:
        super().__init__(operation, provider)
        self.args = (f"the memory provider {provider} does not support {operation}",)


class ProviderSettingsInvalid(LorebusError):
    """The text names the setting, and never repeats a key."""


class BackendUnavailable(LorebusError):
    """Calling again may help."""


class BackendTimedOut(BackendUnavailable):
    def __init__(self, timeout_seconds: float) -> None:
        super().__init__(f"the memory backend did not answer within {timeout_seconds:g} s")


class BackendRefused(LorebusError):
    """`body` holds the start of the answer. It may quote what was sent, so it is in no text and belongs in no log."""

    def __init__(self, status: int, path: str, body: str) -> None:
        super().__init__(f"{path} answered {status}" + (f": {_HINTS[status]}" if status in _HINTS else ""))
        self.status = status
        self.path = path
        self.body = body


class AnswerUnreadable(LorebusError):
    """The text names the field that is missing."""


def render_error(error: BaseException) -> str:
    """Fit for a log: only our own errors are known to quote no text."""
    return str(error) if isinstance(error, LorebusError) else type(error).__name__
