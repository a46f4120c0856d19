"""For commands that write samples: they bring servers of their own and never touch real ones."""

from lorebus import LorebusError

from libs.common.settings import CommonSettings


class RealServersNamed(LorebusError):
    """The environment names servers that a sample must not be written to."""


def refuse_real_servers(command: str) -> None:
    """Raises RealServersNamed where the settings name a database or a bus."""
    named = sorted(CommonSettings().model_fields_set & {"database_url", "nats_url"})
    if named:
        names = " and ".join(f"LOREBUS_{name.upper()}" for name in named)
        raise RealServersNamed(
            f"`lorebus {command}` writes samples, so it runs on servers of its own and not on those of {names}: "
            "leave that unset for it, in the environment and in .env"
        )
