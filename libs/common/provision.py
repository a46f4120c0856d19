"""Everything that an installation needs before its services start: schema, streams, consumers. Safe to repeat."""

from libs.common.bus.connection import connect, create_broker
from libs.common.bus.streams import provision_streams
from libs.common.database import outages_as_missing_setup
from libs.common.migrate import migrate_database
from libs.common.settings import CommonSettings


async def provision(settings: CommonSettings) -> None:
    """What `lorebus migrate` does. Raises SetupIncomplete with the remedy."""
    with outages_as_missing_setup():
        await migrate_database(settings.database_url)
    await provision_bus(settings)


async def provision_bus(settings: CommonSettings) -> None:
    broker = create_broker(settings.nats_url, "migrate")
    try:
        client = await connect(broker, settings.nats_url)
        await provision_streams(client, replicas=settings.nats_replicas, lease_seconds=settings.lease_seconds)
    finally:
        await broker.stop()
