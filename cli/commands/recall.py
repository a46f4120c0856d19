"""`lorebus recall`: what did earlier runs learn about this?"""

import sys
from functools import partial
from typing import Annotated

import typer
from lorebus import Lorebus, RecalledItem, RecallReply
from lorebus.contracts.recall import Agent, Mode, Scores
from rich.console import Group
from rich.panel import Panel
from rich.text import Text

from cli.degraded import is_unanswered, note_degraded
from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl, Tenant
from cli.loading import new_app
from cli.output import note, out, plain, show_json
from cli.running import FAILED, Target, run

app = new_app()

STDIN = "-"


@app.command()
def recall(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What an agent does or ran into; - reads stdin.")],
    repository: Annotated[str, typer.Option("--repository", "-r", help="Whose lessons: owner/name.")],
    limit: Annotated[int | None, typer.Option(min=1, max=10, help="At most so many; else as set, 5 at first.")] = None,
    similarity_min: Annotated[float | None, typer.Option(min=0, max=1, help="How alike at least; 0: any.")] = None,
    mode: Annotated[Mode | None, typer.Option(help="What finds: the vector, words and errors, or all.")] = None,
    tokens_max: Annotated[int | None, typer.Option(min=1, help="The most tokens that the block may take.")] = None,
    agent: Annotated[Agent | None, typer.Option(help="Who asks.")] = None,
    deadline_seconds: Annotated[float, typer.Option(min=0.05, max=30, help="How long to wait for the answer.")] = 1.0,
    block: Annotated[bool, typer.Option("--block", help="Print only the block for a prompt.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Say what each rank is made of.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The reply as JSON on stdout.")] = False,
    tenant: Tenant = "default",
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Ask what earlier runs learned about something.

    Says so plainly when nothing fits, and when a part of the memory is down and which.

    Example: lorebus recall -r acme/shop "ImportError: No module named cv2"

    Example: tail -c 4000 build.log | lorebus recall -r acme/shop --block -
    """
    ask = partial(
        Lorebus.recall,
        query=sys.stdin.read() if query == STDIN else query,
        repository=repository,
        limit=limit,
        similarity_min=similarity_min,
        mode=mode,
        tokens_max=tokens_max,
        agent=agent,
        deadline_seconds=deadline_seconds,
    )
    reply = run(Target(nats_url, data, tenant).ask(ask))
    if as_json:
        show_json(reply)
    elif block:
        typer.echo(reply.block, nl=bool(reply.block))
    else:
        show_reply(reply, repository, is_verbose=verbose)
    note_degraded(reply)
    if is_unanswered(reply, reply.items):
        raise typer.Exit(FAILED)


def show_reply(reply: RecallReply, repository: str, *, is_verbose: bool = False) -> None:
    for item in reply.items:
        out.print(render_item(item, is_verbose=is_verbose))
    if reply.dropped:
        note(f"{reply.dropped} withheld: the gate refused them")
    if reply.omitted:
        note(f"{reply.omitted} more would not fit into --tokens-max")
    if not reply.items and not reply.omitted and not reply.degraded:
        out.print(plain(f"Nothing that {repository} has learned fits. Try --similarity-min 0 to see the nearest."))


def render_item(item: RecalledItem, *, is_verbose: bool = False) -> Panel:
    title = Text.assemble(
        (f"{item.similarity:.2f}", "bold cyan"),
        " ",
        plain(item.failure_type or "lesson", "bold"),
        (" low confidence", "yellow") if item.low_confidence else "",
        (" disputed", "magenta") if item.disputed else "",
        (f" variant of {item.variant_of}", "yellow") if item.variant_of else "",
    )
    source = f"lesson {item.id} · {item.created_at:%Y-%m-%d}" + (f" · run {item.run_id}" if item.run_id else "")
    lines = [plain(item.summary), plain(source, "dim")]
    if is_verbose and item.scores:
        lines.append(plain(render_scores(item.scores), "dim"))
    return Panel(Group(*lines), title=title, title_align="left")


def render_scores(scores: Scores) -> str:
    """`similarity 0.61 · words 42% · same failure · rank 9.3`"""
    similarity = "no vector" if scores.similarity is None else f"similarity {scores.similarity:.2f}"
    failure = ["same failure"] if scores.fingerprint else []
    return " · ".join([similarity, f"words {scores.coverage:.0%}", *failure, f"rank {scores.fused:.1f}"])
