"""`lorebus vacuum`: the bytes of what was forgotten leave the database's files."""

from pathlib import Path
from typing import Annotated

import typer
from lorebus import LorebusError
from sqlalchemy.exc import SQLAlchemyError

from cli.actor import find_actor
from cli.endpoints import DATA_DEFAULT, DataFolder
from cli.loading import new_app
from cli.output import notes, show_json, show_table
from cli.running import run
from cli.stores import find_database_url
from cli.vacuuming import Vacuumed, vacuum
from libs.common.database import create_engine, outages_as_store_unavailable

app = new_app()

SECONDS_MAX = 3_600.0


class NotVacuumed(LorebusError):
    """A table could not be vacuumed; the text names the remedy."""


@app.command("vacuum")
def vacuum_command(
    rewrite: Annotated[
        bool, typer.Option("--rewrite", help="Rewrite every memory table, whatever its share of dead rows.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON array on stdout.")] = False,
    data: DataFolder = DATA_DEFAULT,
) -> None:
    """Free the dead rows of the memory tables; meant to run every night.

    A table is rewritten when more than a fifth of it is dead, or when half of the time has passed within which a delete
    was promised to be physical. A rewrite locks its table: recall answers empty until it is done.

    Example: lorebus vacuum --rewrite
    """
    done = run(_vacuum(data, rewrite=rewrite))
    if as_json:
        show_json([_as_json(one) for one in done])
    else:
        show_table(("table", "rows", "dead", "done"), [_as_row(one) for one in done])


async def _vacuum(data: Path, *, rewrite: bool) -> list[Vacuumed]:
    engine = create_engine(find_database_url(data), "cli", connections_max=2, timeout_seconds=SECONDS_MAX)
    try:
        with outages_as_store_unavailable(), notes.status("vacuuming"):
            return await vacuum(engine, rewrite=rewrite, actor=find_actor())
    except SQLAlchemyError as error:
        raise NotVacuumed(
            f"a table could not be vacuumed ({type(error).__name__}): it stayed locked by others, or this role "
            "may not vacuum it. Try again, as the owner of the tables"
        ) from error
    finally:
        await engine.dispose()


def _as_json(one: Vacuumed) -> dict[str, object]:
    table = one.table
    return {"table": table.name, "live": table.live, "dead": table.dead, "rewritten": one.why}


def _as_row(one: Vacuumed) -> tuple[object, ...]:
    done = f"rewritten: {one.why}" if one.why else "vacuumed"
    return one.table.name, one.table.live, f"{one.table.dead_share:.0%}", done
