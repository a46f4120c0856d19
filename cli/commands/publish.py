"""`lorebus publish`: hand finished runs to the bus, once each."""

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from cli.deliveries import Delivery, Publishing
from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl, Tenant
from cli.loading import new_app
from cli.outcomes import WORDS, Outcome
from cli.output import note, out, plain, show_json, show_table
from cli.running import FAILED, Target, run

app = new_app()


@app.command()
def publish(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Each holds one `run.finished` event.")],
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until the memory is done with each run, then say what came of it.")
    ] = False,
    wait_seconds: Annotated[float, typer.Option(min=1, help="How long --wait waits at most.")] = 300,
    tenant: Tenant = "default",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Publish finished runs from JSON files.

    Publishing a run again is safe: it counts once. A bad file does not stop the others; the exit code is 1
    when any run was not acknowledged. Transcript parts that say {"path": "file"} are read and carried along,
    however large; one that cannot be carried does not stop its run.

    Example: lorebus publish --wait runs/*.json
    """
    publishing = Publishing(Target(nats_url, data, tenant), files, wait_seconds if wait else None)
    deliveries, outcomes = run(publishing.deliver())
    if as_json:
        show_json(render_json(deliveries, outcomes))
    else:
        show_report(deliveries, outcomes)
    if is_failed(deliveries, outcomes):
        raise typer.Exit(FAILED)


def is_failed(deliveries: list[Delivery], outcomes: dict[str, Outcome] | None) -> bool:
    """Was a run not acknowledged or, where that was waited for, not brought to a good end?"""
    if any(delivery.published is None for delivery in deliveries):
        return True
    if outcomes is None:
        return False
    ids = {delivery.published.event_id for delivery in deliveries if delivery.published}
    return ids != outcomes.keys() or any(outcome.kind == "dead" for outcome in outcomes.values())


def render_json(deliveries: list[Delivery], outcomes: dict[str, Outcome] | None) -> dict[str, object]:
    return {
        "published": [
            {
                "file": delivery.file,
                "event_id": delivery.published.event_id,
                "sequence": delivery.published.sequence,
                "duplicate": delivery.published.duplicate,
                "left_out": delivery.left_out,
                "outcome": _outcome_json((outcomes or {}).get(delivery.published.event_id)),
            }
            for delivery in deliveries
            if delivery.published
        ],
        "failed": [
            {"file": delivery.file, "error": delivery.error} for delivery in deliveries if not delivery.published
        ],
    }


def _outcome_json(outcome: Outcome | None) -> dict[str, str] | None:
    return {"kind": outcome.kind, "detail": outcome.detail} if outcome else None


def show_report(deliveries: list[Delivery], outcomes: dict[str, Outcome] | None) -> None:
    for delivery in deliveries:
        for reason in delivery.left_out:
            note(f"{delivery.file.name}: left out {reason}")
        if delivery.error:
            note(f"{delivery.file}: not published: {delivery.error}", "red")
    published = [delivery for delivery in deliveries if delivery.published]
    if outcomes is not None and published:
        show_table(("run file", "outcome", "lesson or reason"), [_row(delivery, outcomes) for delivery in published])
    known = sum(1 for delivery in published if delivery.published and delivery.published.duplicate)
    failed = len(deliveries) - len(published)
    before = f" ({known} of them known before)" if known else ""
    out.print(plain(f"{len(published)} published{before}, {failed} failed", "red" if failed else "green"))


def _row(delivery: Delivery, outcomes: dict[str, Outcome]) -> tuple[str, Text, str]:
    outcome = outcomes.get(delivery.published.event_id) if delivery.published else None
    if outcome is None:
        return delivery.file.name, Text("still open", style="yellow"), "see `lorebus runs`"
    words, style = WORDS[outcome.kind]
    return delivery.file.name, Text(words, style=style), outcome.detail
