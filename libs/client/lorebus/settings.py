"""Where the bus is, when nobody says: the one place of the client that reads the environment."""

import os
from urllib.parse import urlsplit

NATS_URL_VARIABLE = "LOREBUS_NATS_URL"
NATS_URL_DEFAULT = "nats://127.0.0.1:4222"


def get_nats_url(url: str | None = None) -> str:
    """The url given, else LOREBUS_NATS_URL, else the default port of this machine."""
    return url or os.environ.get(NATS_URL_VARIABLE) or NATS_URL_DEFAULT


def render_url(url: str) -> str:
    """The url without user and password: fit for a log or an error."""
    hosts = [urlsplit(one if "://" in one else f"nats://{one}") for one in url.split(",")]
    return ",".join(f"{host.scheme}://{host.netloc.rpartition('@')[2]}" for host in hosts)
