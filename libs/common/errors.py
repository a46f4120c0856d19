"""What services can run into; every one a LorebusError.

LorebusError
├── GateUnavailable        nobody screened the texts: nothing is stored, nothing is recalled
├── EmbedderUnavailable    no vector for a text
│   ├── EmbeddingRefused   … nor will there be one: the model does not take it
│   └── ModelReplaced      … of the model that serves: it took over while the text was embedded
├── ModelUnavailable       the language model did not answer
├── ModelRefused           the language model's provider does not take the question
├── SpendingRefused        today's model calls have cost as much as they may
├── StoreUnavailable       the database did not answer
├── SettingRefused         an administrator's setting that cannot be: unknown, out of range, or not at this level
├── PendingRefused         what was asked of a memory that waits for an administrator cannot be
├── ClaimLost              another copy took the event over; nothing was committed
├── SetupIncomplete        the installation is not as `lorebus migrate` leaves it
└── EmbeddingModelMismatch the configured model is not the one that the rows were embedded with
"""

from lorebus.errors import LorebusError


class GateUnavailable(LorebusError):
    """The gate did not answer in time, or could not load its patterns."""


class EmbedderUnavailable(LorebusError):
    """The embedding model did not answer."""


class EmbeddingRefused(EmbedderUnavailable):
    """The model does not take a text of the question, and would not the next time."""


class ModelReplaced(EmbedderUnavailable):
    """Another embedding model serves than the one that a memory was embedded with; the next try has it."""


class ModelUnavailable(LorebusError):
    """The language model did not answer in time, or its provider is down or busy: an outage."""


class ModelRefused(LorebusError):
    """The provider refuses the question, and would again; the text names the remedy."""


class SpendingRefused(LorebusError):
    """The tenant's cap of the day is reached; the text says which setting raises it and when it is free again."""


class StoreUnavailable(LorebusError):
    """The database did not answer."""


class SettingRefused(LorebusError):
    """No such key, no such value, or not at this level; the text names the remedy."""


class PendingRefused(LorebusError):
    """No such memory waits, or it cannot be released; the text names the remedy."""


class ClaimLost(LorebusError):
    """The lease of an event ran out and somebody else holds it now."""


class SetupIncomplete(LorebusError):
    """Schema, streams or consumers are missing or differ; the text names the remedy."""


class EmbeddingModelMismatch(LorebusError):
    """The configured embedder makes other vectors than the stored model did."""
