"""Who a token speaks for. The key decides the algorithm, never the token: a public key verifies no HMAC.

Claims: `sub`, `exp`, and of ours `tenant`, `teams`, `roles`, `works` (role by work id).
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import jwt
from lorebus.contracts.envelope import DEFAULT_TENANT, Tenant
from lorebus.errors import LorebusError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from libs.common.errors import SetupIncomplete
from services.api.rules import Caller


class NotAuthenticated(LorebusError):
    """No token, or one that proves nothing."""


class Claims(BaseModel):
    """What a token says that we use."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)

    sub: str = Field(min_length=1, max_length=200)
    tenant: Tenant | None = None
    teams: list[str] = Field(default_factory=list[str])
    roles: list[str] = Field(default_factory=list[str])
    works: dict[str, str] = Field(default_factory=dict[str, str])


class TokenKeys:
    """HS256 by a shared secret, RS256 by public keys, or both."""

    def __init__(self, secret: str | None, public_keys: Mapping[str | None, Any]) -> None:
        self._secret = secret
        self._public_keys = public_keys

    def __bool__(self) -> bool:
        """Whether there is any."""
        return self._secret is not None or bool(self._public_keys)

    def find(self, token: str) -> tuple[Any, Literal["HS256", "RS256"]] | None:
        """The key that has to have signed it, and how."""
        header = jwt.get_unverified_header(token)
        match header.get("alg"):
            case "HS256" if self._secret is not None:
                return self._secret, "HS256"
            case "RS256" if header.get("kid") in self._public_keys:
                return self._public_keys[header.get("kid")], "RS256"
            case _:
                return None


class Tokens:
    def __init__(
        self, keys: TokenKeys, *, issuer: str | None, audience: str | None, tenant: str = DEFAULT_TENANT
    ) -> None:
        self._keys = keys
        self._issuer = issuer
        self._audience = audience
        self._tenant = tenant

    def read(self, token: str) -> Caller:
        """Raises NotAuthenticated."""
        try:
            claims = Claims.model_validate(self._verify(token))
        except (jwt.PyJWTError, ValidationError) as error:
            raise NotAuthenticated(type(error).__name__) from None
        tenant = claims.tenant or self._tenant
        return Caller(
            key=f"user {tenant} {claims.sub}",
            tenant=tenant,
            user_id=claims.sub,
            teams=frozenset(claims.teams),
            roles=frozenset(claims.roles),
            works={work_id.lower(): role for work_id, role in claims.works.items()},
        )

    def _verify(self, token: str) -> dict[str, Any]:
        found = self._keys.find(token)
        if found is None:
            raise jwt.InvalidKeyError
        key, algorithm = found
        return jwt.decode(
            token,
            key,
            algorithms=[algorithm],
            issuer=self._issuer,
            audience=self._audience,
            options={"require": ["exp", "sub"], "verify_aud": self._audience is not None},
        )


def read_public_keys(path: Path | None) -> dict[str | None, Any]:
    """The RSA keys of a JWKS file by their ids. Raises SetupIncomplete."""
    if path is None:
        return {}
    try:
        keys = jwt.PyJWKSet.from_dict(json.loads(path.read_bytes())).keys
    except (OSError, ValueError, jwt.PyJWTError) as error:
        fault = type(error).__name__
        raise SetupIncomplete(f"LOREBUS_API_JWKS_FILE cannot be read as a set of keys ({fault}).") from error
    found = {key.key_id: key.key for key in keys if key.key_type == "RSA"}
    if not found:
        raise SetupIncomplete("LOREBUS_API_JWKS_FILE holds no RSA key.")
    return found
