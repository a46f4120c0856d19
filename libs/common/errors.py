"""What services can run into; every one a LorebusError.

LorebusError
├── GateUnavailable        nobody screened the texts: nothing is stored, nothing is recalled
├── EmbedderUnavailable    no vector for a text
├── StoreUnavailable       the database did not answer
├── ClaimLost              another copy took the event over; nothing was committed
├── SetupIncomplete        the installation is not as `lorebus migrate` leaves it
└── EmbeddingModelMismatch the configured model is not the one that the rows were embedded with
"""

from lorebus.errors import LorebusError


class GateUnavailable(LorebusError):
    """The gate did not answer in time, or could not load its patterns."""


class EmbedderUnavailable(LorebusError):
    """The embedding model did not answer."""


class StoreUnavailable(LorebusError):
    """The database did not answer."""


class ClaimLost(LorebusError):
    """The lease of an event ran out and somebody else holds it now."""


class SetupIncomplete(LorebusError):
    """Schema, streams or consumers are missing or differ; the text names the remedy."""


class EmbeddingModelMismatch(LorebusError):
    """The configured embedder makes other vectors than the stored model did."""
