"""Which port a server listens on: the one asked for, else the one of last time, else any free one."""

import json
import secrets
import socket

from libs.embedded.errors import PortTaken
from libs.embedded.folder import DataFolder

HOST = "127.0.0.1"

# Below the range that systems give to outgoing connections: nothing takes the port while its server restarts,
# and a client that keeps trying cannot be given that very port and so connect to itself.
PORT_MIN = 20_000
PORT_COUNT = 10_000


def choose_port(folder: DataFolder, name: str, asked: int) -> int:
    """A free port for the server `name`, remembered in the folder."""
    if asked and not _is_free(asked):
        raise PortTaken(f"port {asked} is taken: give another one with --{name}-port, or 0 for any free port")
    known = _read_ports(folder)
    last = known.get(name, 0)
    port = asked or (last if last and _is_free(last) else _find_free_port())
    if port != known.get(name):
        folder.write("ports.json", json.dumps(known | {name: port}))
    return port


def _read_ports(folder: DataFolder) -> dict[str, int]:
    path = folder.home / "ports.json"
    return json.loads(path.read_text()) if path.exists() else {}


def _find_free_port() -> int:
    while True:
        port = PORT_MIN + secrets.randbelow(PORT_COUNT)
        if _is_free(port):
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # As the servers do, so that connections still closing do not count.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
        return True
