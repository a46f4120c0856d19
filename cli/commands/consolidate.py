"""`lorebus consolidate`: merge memories that say the same, now."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from lorebus.consolidating import ConsolidationFields

from cli.actor import find_actor
from cli.consolidating import Consolidation, Following, render_json
from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl, Tenant
from cli.loading import new_app
from cli.mergeable import Bars, Found, Place, find_mergeable, switch_schedule
from cli.output import note, out, plain, show_json, show_table
from cli.running import FAILED, Target, run
from services.consolidator.rules import Source

app = new_app()

FIRST_WORDS = 12
"""Of a memory, with --text."""


@app.command()
def consolidate(
    repository: Annotated[
        str | None, typer.Option("--repository", "-r", help="Only this one, owner/name; by default every repository.")
    ] = None,
    channel: Annotated[str | None, typer.Option("--channel", help="A channel's memory in place of lessons.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what is alike and change nothing.")] = False,
    text: Annotated[
        bool, typer.Option("--text", help="With --dry-run: the first words of each; they may be an attack on you.")
    ] = False,
    similarity_min: Annotated[float | None, typer.Option(min=0.5, max=1, help="How alike; by default as set.")] = None,
    size_min: Annotated[int | None, typer.Option(min=2, max=20, help="How many; by default as set.")] = None,
    schedule: Annotated[
        Literal["on", "off"] | None,
        typer.Option(help="Only switch whether the schedule merges this repository."),
    ] = None,
    wait_seconds: Annotated[float, typer.Option(min=0, help="How long to wait for the end; 0 does not.")] = 900,
    tenant: Tenant = "default",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Merge memories that say the same into one that stands for them.

    Sources stay in the database, out of recall; `lorebus explain` shows what was merged from what. A cluster that the
    gate refuses, or whose sources changed meanwhile, stays as it is.

    Example: lorebus consolidate --repository acme/shop --dry-run
    """
    check_usage(repository, channel, schedule, text=text, dry_run=dry_run)
    place: Place = {"repository": repository, "channel": channel}
    if schedule is not None:
        switch(data, tenant, repository or "", schedule)
    elif dry_run:
        found = run(find_mergeable(data, tenant, place, Bars(similarity_min, size_min)))
        show_found(found, text=text, as_json=as_json)
    else:
        request: ConsolidationFields = {**place, "similarity_min": similarity_min, "cluster_size_min": size_min}
        request["actor"] = find_actor()
        following = Following(Target(nats_url, data, tenant), request, wait_seconds)
        show_ends(run(following.follow()), as_json=as_json)


def check_usage(
    repository: str | None, channel: str | None, schedule: str | None, *, text: bool, dry_run: bool
) -> None:
    if repository and channel:
        raise typer.BadParameter("--repository and --channel exclude each other")
    if text and not dry_run:
        raise typer.BadParameter("--text goes with --dry-run")
    if schedule and (not repository or dry_run):
        raise typer.BadParameter("--schedule takes --repository, and no --dry-run")


def switch(data: Path, tenant: str, repository: str, schedule: Literal["on", "off"]) -> None:
    run(switch_schedule(data, tenant, repository, is_enabled=schedule == "on", actor=find_actor()))
    does = "merges" if schedule == "on" else "leaves out"
    out.print(plain(f"The schedule {does} {repository} from now on."))


def _found_json(found: Found, *, text: bool) -> dict[str, Any]:
    clusters = [
        {
            "ids": [str(source.id) for source in cluster.sources],
            "size": len(cluster.sources),
            "similarity": round(cluster.similarity, 4),
            **({"texts": [_first_words(source.summary) for source in cluster.sources]} if text else {}),
        }
        for cluster in found.plan.clusters
    ]
    plan = found.plan
    counts = {"memories": plan.candidates, "clusters_found": plan.found, "similarity_min": round(plan.cosine_min, 4)}
    return {"place": found.scope.key, "kind": found.scope.kind, **counts, "clusters": clusters}


def show_found(found: list[Found], *, text: bool, as_json: bool) -> None:
    if as_json:
        show_json([_found_json(one, text=text) for one in found])
        return
    rows = [
        (one.scope.key, len(cluster.sources), f"{cluster.similarity:.3f}", _members(cluster.sources, text=text))
        for one in found
        for cluster in one.plan.clusters
    ]
    if rows:
        show_table(("place", "size", "least similarity", "memories"), rows)
    looked = sum(one.plan.candidates for one in found)
    out.print(plain(f"{len(rows)} clusters among {looked} memories of {len(found)} places; nothing was changed"))


def _members(sources: Sequence[Source], *, text: bool) -> str:
    return "\n".join(f"{source.id}  {_first_words(source.summary)}" if text else str(source.id) for source in sources)


def _first_words(summary: str) -> str:
    words = summary.split()
    return " ".join(words[:FIRST_WORDS]) + (" …" if len(words) > FIRST_WORDS else "")


def show_ends(ends: Consolidation, *, as_json: bool) -> None:
    if as_json:
        show_json(render_json(ends))
    else:
        show_report(ends)
    if ends.is_failed:
        raise typer.Exit(FAILED)


def show_report(ends: Consolidation) -> None:
    if not ends.is_awaited:
        out.print(plain(f"Request {ends.event_id} is on the bus."))
        return
    if ends.done:
        columns = ("place", "clusters found", "merged", "memories merged", "made of them", "left as they are")
        show_table(columns, [end.row() for end in ends.done])
    for dead in ends.dead:
        note(f"{dead}: a dead letter, see `lorebus runs --status dead`", "red")
    if ends.open:
        note(f"{len(ends.open)} still open: see `lorebus tap lessons_consolidated`, or wait longer")
    sources, created = sum(end.sources for end in ends.done), sum(end.created for end in ends.done)
    out.print(plain(f"{sources} memories became {created}", "red" if ends.is_failed else "green"))
