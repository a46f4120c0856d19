"""`lorebus migrate`: schema, streams and consumers of an installation."""

from cli.loading import new_app
from cli.output import notes, out
from cli.running import run
from libs.common.logging import configure_logging
from libs.common.provision import provision
from libs.common.settings import CommonSettings

app = new_app()


@app.command()
def migrate() -> None:
    """Bring the database and the bus to this version.

    Creates or upgrades the schema in LOREBUS_DATABASE_URL (Postgres 16 or newer with pgvector 0.8 or newer) and the
    streams and consumers in LOREBUS_NATS_URL. Safe to repeat, and with several copies at once.

    Example: LOREBUS_DATABASE_URL=postgresql://… LOREBUS_NATS_URL=nats://… lorebus migrate
    """
    settings = CommonSettings()
    configure_logging(settings.log_level, settings.log_format)
    with notes.status("migrating"):
        run(provision(settings))
    out.print("The database and the bus are ready for this version.")
