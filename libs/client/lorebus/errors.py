"""What can go wrong, as one tree.

LorebusError
├── InvalidMessage      the text is not a message of the contract
├── EventNotAcknowledged the bus did not confirm that it stored a run or a note
├── MemoryUnavailable   nobody answered a question in time
└── RequestRefused      the service answered with a typed refusal
"""


class LorebusError(Exception):
    """Base of every error that Lorebus raises on purpose."""


class InvalidMessage(LorebusError):
    """A message does not fit its contract. The text names fields, never their values."""


class EventNotAcknowledged(LorebusError):
    """The bus did not confirm an event; publishing it again is safe, its id makes it count once."""


class MemoryUnavailable(LorebusError):
    """No service answered within the time allowed."""


class RequestRefused(LorebusError):
    """The service understood the request and refused it; the text is its reason."""
