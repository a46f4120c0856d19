"""What the HTTP service decides: pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from typing import Any, Literal

OWNER = "ownerUserId"
"""In the metadata of sessions and entries: whose they are."""
ADMIN = "admin"
VIEW_ROLES = frozenset({"viewer", "member", "editor", "manager", "admin", "owner", "creator"})
EDIT_ROLES = VIEW_ROLES - {"viewer", "member"}

Access = Literal["granted", "foreign", "unknown"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, as proved."""

    key: str
    """Tells callers apart, for their rates."""
    tenant: str
    user_id: str = "local"
    teams: frozenset[str] = frozenset()
    roles: frozenset[str] = frozenset()
    works: Mapping[str, str] = field(default_factory=dict[str, str])
    """The caller's role in each of their works."""
    has_every_work: bool = False
    """On a loopback without credentials everybody is the one user of the machine."""

    @property
    def is_admin(self) -> bool:
        return ADMIN in self.roles


@dataclass(frozen=True, slots=True)
class Session:
    """A unit of work, as stored."""

    id: str
    project: str
    metadata: Mapping[str, Any]
    started_at: datetime
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """An entry, as stored."""

    id: str
    content: str
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    session_id: str | None
    project: str
    created_at: datetime
    held: bool = False
    score: float | None = None


def judge_work(caller: Caller, work_id: str, *, to_edit: bool, is_known: bool) -> Access:
    """May the caller use this work? Who has no role in it learns only whether there is one (sessions spec 4.2)."""
    if caller.has_every_work:
        return "granted"
    role = caller.works.get(work_id)
    if role in (EDIT_ROLES if to_edit else VIEW_ROLES) or (caller.is_admin and is_known):
        return "granted"
    return "foreign" if is_known or role is not None else "unknown"


def may_change(caller: Caller, metadata: Mapping[str, Any]) -> bool:
    """What nobody stamped belongs to no user: digests of pipelines, say."""
    owner = metadata.get(OWNER)
    return owner is None or owner == caller.user_id or caller.is_admin


def stamp(metadata: Mapping[str, Any], caller: Caller) -> dict[str, Any]:
    """Whatever the caller says of the owner, it is the caller."""
    return {**metadata, OWNER: caller.user_id}


def project_of_session(project: str | None, metadata: Mapping[str, Any], default: str) -> str:
    """First-party hosts open a session under the default project and name its own in the metadata."""
    own = metadata.get("projectId")
    if project in (None, default) and isinstance(own, str) and 0 < len(own) <= 128:
        return own
    return project or default


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def missing_credentials(host: str, *, has_secret: bool, has_token_key: bool) -> list[str]:
    """The settings without which the service must not listen there."""
    if is_loopback(host):
        return []
    wanted = {"LOREBUS_API_SECRET": has_secret, "LOREBUS_API_JWT_SECRET or LOREBUS_API_JWKS_FILE": has_token_key}
    return [name for name, is_there in wanted.items() if not is_there]
