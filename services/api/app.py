"""The HTTP service's composition root."""

from lorebus.connection import Connection, ConnectionOptions
from pydantic import SecretStr

from libs.common.bus.relay import Relay
from libs.common.database import create_pool
from libs.common.errors import SetupIncomplete
from libs.common.run import Program, Resources, Service
from services.api.agent_memory.access import Access
from services.api.backend import Backend
from services.api.edge.admission import Credentials
from services.api.exporting import Exporting
from services.api.records import Records
from services.api.rules import missing_credentials
from services.api.service import MemoryService
from services.api.serving import Serving, listen
from services.api.settings import ApiSettings
from services.api.store import ApiStore
from services.api.sweeping import Sweeping
from services.api.tokens import TokenKeys, Tokens, read_public_keys
from services.api.web import build_app


async def build(resources: Resources[ApiSettings]) -> Service:
    settings = resources.settings
    credentials = open_credentials(settings)
    listening = listen(settings.api_host, settings.api_port)
    store = ApiStore(resources.engine)
    pool = await create_pool(
        settings.database_url,
        "api",
        connections_max=settings.database_connections_max,
        timeout_seconds=settings.database_timeout_seconds,
    )
    records = Records(pool)
    relay = Relay(resources.engine, resources.client)
    connection = Connection(ConnectionOptions(settings.nats_url, "lorebus-api-questions"))
    backend = Backend(
        connection, store, save_seconds=settings.api_save_seconds_max, recall_seconds=settings.api_recall_seconds_max
    )
    access = Access(store, records, settings.api_project_default)
    memory = MemoryService(store, records, backend, relay)
    app = build_app(memory, Exporting(store, records), access, credentials, settings)
    serving = Serving(app, listening)
    connection.open()
    sweeping = Sweeping(
        store, relay, idle_seconds=settings.api_session_idle_seconds, every_seconds=settings.api_sweep_seconds
    )
    return Service(
        name="api",
        tasks=[serving.run, relay.run, sweeping.run],
        stopping=[serving.stop],
        closing=[connection.close, pool.close],
    )


def open_credentials(settings: ApiSettings) -> Credentials:
    """Raises SetupIncomplete where the service would listen to others and could not tell who they are."""
    secret = _reveal(settings.api_secret)
    keys = TokenKeys(_reveal(settings.api_jwt_secret), read_public_keys(settings.api_jwks_file))
    if missing := missing_credentials(settings.api_host, has_secret=secret is not None, has_token_key=bool(keys)):
        raise SetupIncomplete(
            f"the API would listen at {settings.api_host} for everybody: set {' and '.join(missing)},"
            " or LOREBUS_API_HOST=127.0.0.1"
        )
    tokens = Tokens(
        keys, issuer=settings.api_jwt_issuer, audience=settings.api_jwt_audience, tenant=settings.api_tenant
    )
    return Credentials(secret, tokens if keys else None, settings.api_tenant)


def _reveal(secret: SecretStr | None) -> str | None:
    return None if secret is None else secret.get_secret_value()


PROGRAM = Program(name="api", settings=ApiSettings, build=build)
