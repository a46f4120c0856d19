"""Who the servers run as.

Postgres refuses root. Root therefore lends the servers the user that owns the data folder or, where that is
root too, `nobody`: every system has it, so no user is created. What this user cannot reach is placed elsewhere
(`folder`) or copied (`programs`); the modes of folders that are not ours stay as they are.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

READ_AND_RUN = 0o5
ENTER = 0o1


@dataclass(frozen=True)
class Account:
    """A user and group; `is_lent` when they are not our own."""

    uid: int
    gid: int
    is_lent: bool

    def can_enter(self, folder: Path) -> bool:
        return not self.is_lent or all(self._may(ENTER, path) for path in (folder, *folder.parents))

    def can_run(self, program: Path) -> bool:
        return self.can_enter(program.parent) and (not self.is_lent or self._may(READ_AND_RUN, program))

    def own(self, path: Path | int) -> None:
        if self.is_lent:
            os.chown(path, self.uid, self.gid)

    def _may(self, wanted: int, path: Path) -> bool:
        status = path.stat()
        if status.st_uid == self.uid:
            granted = status.st_mode >> 6
        elif status.st_gid == self.gid:
            granted = status.st_mode >> 3
        else:
            granted = status.st_mode
        return granted & wanted == wanted


def find_account(folder: Path) -> Account:
    """Our own user, or the one that root lends to servers on this folder."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), is_lent=False)
    owner = _find_user(folder.stat().st_uid) or pwd.getpwnam("nobody")
    return Account(owner.pw_uid, owner.pw_gid, is_lent=True)


def _find_user(uid: int) -> pwd.struct_passwd | None:
    """initdb refuses a user without an entry, so an unknown owner counts as none."""
    try:
        return pwd.getpwuid(uid) if uid != 0 else None
    except KeyError:
        return None
