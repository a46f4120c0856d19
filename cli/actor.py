"""Who changes something, for the audit."""

import getpass


def find_actor() -> str:
    """Whoever is at the keyboard, as the operating system names them."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError):
        return "cli"
