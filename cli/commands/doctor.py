"""`lorebus doctor`: does every part work, and what is to be done where one does not?"""

from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from cli.checks import (
    Check,
    is_healthy,
    judge_addresses,
    judge_bus,
    judge_readiness,
    judge_store,
)
from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl
from cli.footprint import MemoryBytes, Owner, find_owner, measure_memory
from cli.loading import new_app
from cli.output import notes, out, plain, show_json
from cli.probes import find_addresses, probe_bus, probe_readiness, probe_store, render_address
from cli.running import FAILED, run

app = new_app()

STYLES = {"ok": "green", "warn": "yellow", "fail": "bold red"}
MIB = 1024 * 1024


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Check every part and say what to do.

    Looks at the addresses, NATS with its streams and consumers, Postgres with pgvector and the schema, each
    service, and what waits, hangs or died. Exit code 1 when something fails.

    Example: lorebus doctor --data ~/lorebus
    """
    with notes.status("checking"):
        checks = run(_examine(nats_url, data))
    owner = find_owner(data)
    memory = measure_memory(owner)
    if as_json:
        show_json(render_json(checks, owner, memory))
    else:
        show_report(checks, owner, memory)
    if not is_healthy(checks):
        raise typer.Exit(FAILED)


async def _examine(nats_url: str | None, data: Path) -> list[Check]:
    """Every check that can be made with the addresses that are known."""
    found = find_addresses(nats_url, data)
    nats, database, http = found.nats.address, found.database.address, found.http.address
    checks = [judge_addresses(found)]
    if nats:
        checks += judge_bus(await probe_bus(nats), render_address(nats))
    if database:
        checks += judge_store(await probe_store(database), render_address(database))
    if nats or http:
        checks += judge_readiness(await probe_readiness(http), http)
    return checks


def render_json(checks: list[Check], owner: Owner, memory: MemoryBytes | None) -> dict[str, object]:
    return {
        "ok": is_healthy(checks),
        "checks": [
            {"name": check.name, "state": check.state, "detail": check.detail, "remedy": check.remedy or None}
            for check in checks
        ],
        "start_seconds": owner.start_seconds if owner.lives else None,
        "memory_bytes": memory.as_json() if memory else None,
    }


def show_report(checks: list[Check], owner: Owner, memory: MemoryBytes | None) -> None:
    table = Table(box=None, pad_edge=False, show_header=False)
    for style in ("", "", "dim"):
        table.add_column(style=style, overflow="fold")
    for check in checks:
        table.add_row(plain(check.state, STYLES[check.state]), plain(check.name, "bold"), plain(check.detail))
        if check.remedy:
            table.add_row("", "", plain(f"→ {check.remedy}", STYLES[check.state]))
    out.print(table)
    if memory:
        total = memory.as_json()["total"] // MIB
        started = f"ready {owner.start_seconds:.1f} s after its start, " if owner.start_seconds is not None else ""
        out.print(
            plain(
                f"\n`lorebus up` is process {owner.pid}: {started}{total} MiB "
                f"(lorebus {memory.lorebus // MIB}, Postgres {memory.postgres // MIB}, NATS {memory.nats // MIB})",
                "dim",
            )
        )
    out.print(plain(render_verdict(checks), "green" if is_healthy(checks) else "bold red"))


def render_verdict(checks: list[Check]) -> str:
    failed = sum(check.state == "fail" for check in checks)
    warned = sum(check.state == "warn" for check in checks)
    if failed:
        return f"{failed} of {len(checks)} checks failed: do what the arrows say, from the top."
    return f"Every part works{f', {warned} to be looked at' if warned else ''}."
