"""What can go wrong with the embedded servers.

EmbeddedError
├── DataFolderInUse     another process runs on the folder
├── DataFolderUnusable  the folder cannot hold the servers' files
├── PortTaken           a port that was asked for belongs to somebody else
├── ProgramUnavailable  no `postgres` or `nats-server` that the servers' user can run
└── ServerNotStarted    a server ended, or did not answer, before it was ready
"""

from lorebus.errors import LorebusError


class EmbeddedError(LorebusError):
    """The embedded servers cannot run; the message says what to do."""


class DataFolderInUse(EmbeddedError):
    """Another process runs on the data folder."""


class DataFolderUnusable(EmbeddedError):
    """The data folder cannot hold the servers' files."""


class PortTaken(EmbeddedError):
    """A port that was asked for belongs to another process."""


class ProgramUnavailable(EmbeddedError):
    """A server's program is missing, or its user cannot run it."""


class ServerNotStarted(EmbeddedError):
    """A server ended, or did not answer, before it was ready."""
