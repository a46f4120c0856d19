"""Who asks, and whether they may ask now: decided before anything of the request is read.

Each surface has a credential of its own; where none is set the service listens on a loopback only, and everybody is
the one user of the machine. Then the address in the Host header has to be the loopback's, since any page in a browser
on the machine could reach it by a name of its own.
"""

import time
from collections.abc import Callable
from hmac import compare_digest
from math import ceil
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from services.api.rates import Rates
from services.api.rules import ADMIN, Caller, is_loopback
from services.api.surfaces import AGENTMEMORY, OPEN_PATHS, is_below, render_refusal
from services.api.tokens import NotAuthenticated, Tokens


class Credentials:
    """What proves a caller on each surface; None leaves that surface to the one user of the machine."""

    def __init__(self, secret: str | None, tokens: Tokens | None, tenant: str) -> None:
        self._secret = secret
        self._tokens = tokens
        self._tenant = tenant

    def check(self, path: str, headers: Headers) -> Caller:
        """Raises NotAuthenticated."""
        scheme, _, presented = headers.get("authorization", "").partition(" ")
        bearer = presented.strip() if scheme.lower() == "bearer" else ""
        if is_below(path, AGENTMEMORY):
            return self._local(headers) if self._secret is None else self._read_secret(bearer, self._secret)
        return self._local(headers) if self._tokens is None else self._tokens.read(bearer)

    def _read_secret(self, presented: str, secret: str) -> Caller:
        if not compare_digest(presented.encode(), secret.encode()):
            raise NotAuthenticated("another secret")
        return Caller(key="secret", tenant=self._tenant, user_id="agentmemory")

    def _local(self, headers: Headers) -> Caller:
        host = urlsplit(f"//{headers.get('host', '')}").hostname or ""
        if not is_loopback(host):
            raise NotAuthenticated("another host than the loopback")
        return Caller(key="local", tenant=self._tenant, roles=frozenset({ADMIN}), has_every_work=True)


class Admission:
    """Puts the caller into the request's state, or answers 401 or 429."""

    def __init__(
        self, app: ASGIApp, credentials: Credentials, rates: Rates, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._app = app
        self._credentials = credentials
        self._rates = rates
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        answer = self._admit(scope)
        await (answer or self._app)(scope, receive, send)

    def _admit(self, scope: Scope) -> JSONResponse | None:
        """None: it may go on. Who cannot prove themselves is counted by address."""
        path: str = scope["path"]
        try:
            caller = self._credentials.check(path, Headers(scope=scope))
        except NotAuthenticated:
            caller = None
        key = caller.key if caller else f"address {(scope.get('client') or ('',))[0]}"
        if wait := self._rates.wait_seconds(key, self._clock()):
            body = render_refusal(path, 429, "too many requests")
            return JSONResponse(body, 429, {"retry-after": str(ceil(wait))})
        if caller is None:
            return JSONResponse(render_refusal(path, 401, "Unauthorized"), 401, {"www-authenticate": "Bearer"})
        scope.setdefault("state", {})["caller"] = caller
        return None
