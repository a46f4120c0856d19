"""`lorebus explain`: where does a lesson come from?"""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, cast

import typer
from lorebus import ExplainedLesson, Lorebus
from lorebus.contracts.recall import RelatedLesson
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.text import Text

from cli.degraded import note_degraded
from cli.endpoints import DATA_DEFAULT, DataFolder, NatsUrl, Tenant
from cli.loading import new_app
from cli.output import note, out, plain, show_json
from cli.running import FAILED, Target, run

app = new_app()


@app.command()
def explain(
    lesson_id: Annotated[str, typer.Argument(metavar="ID", help="A lesson's id, as recall and tap show it.")],
    repository: Annotated[
        str | None, typer.Option("--repository", "-r", help="Look only in this one: owner/name.")
    ] = None,
    deadline_seconds: Annotated[float, typer.Option(min=0.05, max=30, help="How long to wait for the answer.")] = 2.0,
    as_json: Annotated[bool, typer.Option("--json", help="The reply as JSON on stdout.")] = False,
    tenant: Tenant = "default",
    nats_url: NatsUrl = None,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Show where a lesson came from: its run, its evidence, what it was merged from and what it replaced.

    Example: lorebus explain 0199c2d4-5a1e-7c60-9a51-3f6f0b6f2a11
    """
    ask = partial(Lorebus.explain, lesson_id=lesson_id, repository=repository, deadline_seconds=deadline_seconds)
    reply = run(Target(nats_url, data, tenant).ask(ask))
    if as_json:
        show_json(reply)
    elif reply.lesson:
        out.print(render_lesson(reply.lesson))
    elif not reply.degraded:
        note(f"There is no lesson {lesson_id}" + (f" in {repository}" if repository else ""))
    note_degraded(reply)
    if reply.lesson is None:
        raise typer.Exit(FAILED)


def render_lesson(lesson: ExplainedLesson) -> Panel:
    facts = {
        "status": lesson.status,
        "type": lesson.failure_type,
        "confidence": lesson.confidence,
        "run": lesson.run_id,
        "outcome": lesson.outcome,
        "written by": lesson.written_by,
        "created": f"{lesson.created_at:%Y-%m-%d %H:%M}",
        **{name: _render_value(value) for name, value in lesson.evidence.items()},
    }
    parts: list[RenderableType] = [plain(lesson.summary, "bold"), Text(), plain(lesson.rationale), Text()]
    known = {name: value for name, value in facts.items() if value not in (None, "")}
    parts += [Text.assemble(plain(f"{name}  ", "dim"), plain(value)) for name, value in known.items()]
    parts += _render_related("merged from", lesson.merged_from) + _render_related("replaced", lesson.replaced)
    parts += _render_related("variant", lesson.variants)
    return Panel(Group(*parts), title=plain(f"{lesson.repository} · lesson {lesson.id}"), title_align="left")


def _render_value(value: Any) -> str:
    """`{"number": 3, "head_sha": "abc"}` as `number 3, head_sha abc`; what is empty says nothing."""
    if isinstance(value, dict):
        parts = {name: _render_value(part) for name, part in cast("dict[str, Any]", value).items()}
        return ", ".join(f"{name} {part}" for name, part in parts.items() if part)
    if isinstance(value, list):
        return "; ".join(filter(None, map(_render_value, cast("list[Any]", value))))
    return "" if value is None else str(value)


def _render_related(name: str, lessons: Sequence[RelatedLesson]) -> list[Text]:
    return [Text.assemble(plain(f"{name}  ", "dim"), plain(f"{lesson.id} {lesson.summary}")) for lesson in lessons]
