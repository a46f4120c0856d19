"""Which providers a host has, and which of them answers for a caller (spec 1.3). Pure."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from lorebus.sessions.agentmemory import AgentMemoryProvider
from lorebus.sessions.errors import NoProvider, ProviderNotFound
from lorebus.sessions.null import NullProvider
from lorebus.sessions.provider import MemoryProvider
from lorebus.sessions.settings import Settings


@dataclass(frozen=True, slots=True)
class Registration:
    """A provider that is loaded. `build` is called with the resolved settings for every call, so it must be cheap."""

    id: str
    name: str
    build: Callable[[Settings], MemoryProvider]
    defaults: Settings = field(default_factory=dict[str, object])


BUILT_IN = (
    Registration("agentmemory", "agentmemory", AgentMemoryProvider),
    Registration("null", "No memory", NullProvider),
)


@dataclass(frozen=True, slots=True)
class Caller:
    """On whose behalf a call is made."""

    user_id: str
    work_id: str | None = None
    provider: str | None = None
    """This one and no other."""


SettingsById = Mapping[str, Settings]


@dataclass(frozen=True, slots=True)
class HostSettings:
    """What a host's people have set, as it holds for one caller; settings by the provider's id."""

    active: str | None = None
    """The Work's choice."""
    default: str | None = None
    enabled: Collection[str] | None = None
    """All that are loaded, where it is None."""
    admin: SettingsById = field(default_factory=dict[str, Settings])
    user: SettingsById = field(default_factory=dict[str, Settings])
    work: SettingsById = field(default_factory=dict[str, Settings])


def choose(registrations: Sequence[Registration], host: HostSettings, override: str | None = None) -> Registration:
    """The one asked for, else the Work's, else the default, else the first; only enabled ones count.

    Raises ProviderNotFound where the one asked for is not enabled, NoProvider where none is.
    """
    enabled = {one.id: one for one in registrations if host.enabled is None or one.id in host.enabled}
    if override is not None:
        if override not in enabled:
            raise ProviderNotFound(override)
        return enabled[override]
    wanted = [name for name in (host.active, host.default, *enabled) if name in enabled]
    if not wanted:
        raise NoProvider
    return enabled[wanted[0]]


def resolve_settings(registration: Registration, host: HostSettings) -> Settings:
    """Key by key: the Work over the user over the administrator over the default."""
    layers = (layer.get(registration.id, {}) for layer in (host.admin, host.user, host.work))
    merged = dict(registration.defaults)
    for layer in layers:
        merged.update({name: value for name, value in layer.items() if value is not None})
    return merged
