"""How the demo looks: short, in 80 columns, with and without a terminal."""

from collections.abc import Sequence
from pathlib import Path

from lorebus import RecalledItem, RecallReply
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from cli.commands.recall import render_item
from cli.degraded import note_degraded
from cli.demo.hostile import LOG_END, QUESTION, REPOSITORY
from cli.demo.told import PublishedRun, Told
from cli.examples import ExampleQuestion
from cli.one_machine import Machine
from cli.output import out, plain
from libs.common.inbox import Event

QUERY_CHARS_MAX = 230
SUMMARY_CHARS_MAX = 330
BLOCK_LINES_MAX = 12

STYLES = {"written": "green", "skipped": "dim", "refused": "red", "dead": "bold red"}
NEXT_STEPS = (
    ("lorebus up", "everything on this machine, until Ctrl-C"),
    ("lorebus publish --wait FILE…", "finished runs of your own"),
    ('lorebus recall -r OWNER/NAME "…"', "what they have taught"),
    ("lorebus doctor", "checks every part and says what to do"),
    ("python examples/agent_loop.py", "an agent that asks before it works"),
)


def shorten(text: str, chars_max: int) -> str:
    """At most so many characters, cut behind a line or at least behind a word."""
    if len(text) <= chars_max:
        return text
    head = text[:chars_max]
    line_end = head.rfind("\n")
    cut = line_end if line_end > chars_max // 2 else head.rfind(" ")
    return f"{head[: cut if cut > 0 else chars_max].rstrip()} …"


def show_opening(machine: Machine) -> None:
    _show_heading("Lorebus: finished runs become lessons, lessons reach the next run")
    out.print(
        plain(f"Postgres, NATS and the services run on this machine ({machine.start_seconds:.1f} s), data in "),
        plain(machine.data, "bold"),
        sep="",
    )


def show_publishing(files: Sequence[Path]) -> None:
    _show_heading(f"1  Finished runs of coding agents are published: {len(files)}")


def show_runs(runs: Sequence[PublishedRun]) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in ("run", "what the memory made of it", ""):
        table.add_column(column, overflow="fold")
    for run in runs:
        style = STYLES.get(run.event.status, "yellow")
        table.add_row(plain(run.file.stem), plain(_words_of(run.event), style), plain(_remark_of(run), "dim"))
    out.print(table)
    known = sum(run.was_known for run in runs)
    if known:
        out.print(plain(f"{known} of {len(runs)} were known from an earlier demo: each event counts once.", "cyan"))


def _words_of(event: Event) -> str:
    return {
        "written": "lesson written",
        "skipped": "nothing to learn",
        "refused": "refused by the gate",
        "dead": "dead letter",
    }.get(event.status, event.status)


def _remark_of(run: PublishedRun) -> str:
    if run.is_replaced:
        return "replaced by a newer lesson of the same cause"
    return ", ".join([*((run.event.reason or "").replace("_", " ").split("\n")[:1]), *run.event.patterns]).strip(", ")


def show_asking(questions: Sequence[ExampleQuestion]) -> None:
    if questions:
        _show_heading("2  Later agents ask what is known before they work")


def show_answer(question: ExampleQuestion, reply: RecallReply, seconds: float) -> None:
    out.print(Text.assemble((f"{_who(question)} in {question.repository} asks:", "bold")))
    out.print(plain(shorten(question.query, QUERY_CHARS_MAX), "italic"))
    note_degraded(reply)
    for item in reply.items[:1]:
        out.print(render_item(_shortened(item)))
    more = len(reply.items) - 1
    count = f"{more} more, " if more > 0 else ""
    if reply.items:
        out.print(plain(f"{count}answered in {seconds * 1000:.0f} ms\n", "dim"))
    elif not reply.degraded:
        out.print(plain(f"Nothing fits, so nothing is said ({seconds * 1000:.0f} ms).", "green"))


def _who(question: ExampleQuestion) -> str:
    name = question.agent.replace("_", " ").replace("ci ", "CI ")
    return f"{'An' if name[0] in 'aeiou' else 'A'} {name}"


def _shortened(item: RecalledItem) -> RecalledItem:
    return item.model_copy(update={"summary": shorten(item.summary, SUMMARY_CHARS_MAX)})


def show_block(answers: Sequence[tuple[ExampleQuestion, RecallReply]]) -> None:
    """The first answer as an agent puts it into its prompt."""
    block = next((reply.block for _, reply in answers if reply.block), None)
    if block is None:
        return
    _show_heading("3  The first answer, ready to be put into a prompt")
    lines = block.strip().splitlines()
    shown = [shorten(line, SUMMARY_CHARS_MAX) for line in lines[:BLOCK_LINES_MAX]]
    rest = [f"… {len(lines) - BLOCK_LINES_MAX} more lines"] if len(lines) > BLOCK_LINES_MAX else []
    out.print(Panel(plain("\n".join([*shown, *rest])), title="reply.block", title_align="left", border_style="cyan"))


def show_attack(event: Event, recalled: RecallReply) -> None:
    _show_heading(f"4  A run in {REPOSITORY} ends with a log that speaks to the next agent")
    out.print(Panel(plain(LOG_END), border_style="red"))
    out.print(
        plain(f"{_words_of(event)}: ", STYLES.get(event.status, "yellow")),
        plain(", ".join(event.patterns) or event.reason or "no reason given"),
        sep="",
    )
    out.print(plain(f"The next agent asks “{shorten(QUESTION, 60)}” and gets {_count(len(recalled.items), 'lesson')}."))


def show_closing(told: Told, data: Path, seconds: float) -> None:
    _show_heading("Done")
    by_status = [run.event.status for run in told.runs]
    answered = sum(bool(reply.items) for _, reply in told.answers)
    out.print(
        f"{_count(by_status.count('written'), 'lesson')} from {_count(len(told.runs), 'run')} "
        f"({sum(run.is_replaced for run in told.runs)} replaced by a newer one), "
        f"{by_status.count('skipped')} without a lesson; "
        f"{answered} of {_count(len(told.answers), 'question')} answered, {len(told.answers) - answered} with silence; "
        f"{1 if told.hostile_run.status == 'refused' else 0} hostile run refused. "
        f"Everything is stopped again ({seconds:.1f} s).\n"
    )
    table = Table(box=None, pad_edge=False, show_header=False)
    for command, use in NEXT_STEPS:
        table.add_row(plain(command, "bold cyan"), plain(use))
    out.print(table)
    out.print(Text.assemble("\nLook around in what was learned: ", (f"lorebus up --data {data}", "bold cyan")))


def _show_heading(text: str) -> None:
    out.print()
    out.print(Rule(plain(text, "bold"), align="left", style="dim"))


def _count(number: int, noun: str) -> str:
    return f"{number or 'no'} {noun}{'' if number == 1 else 's'}"
