"""Tokens: the key decides the algorithm, and what is not proved is not believed."""

import base64
import hmac
import time
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from services.api.tokens import NotAuthenticated, TokenKeys, Tokens

SECRET = "a key that is longer than any of the HMACs asks for, so that none warns of it"
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def tokens(**options: Any) -> Tokens:
    keys = TokenKeys(SECRET, {"k1": RSA.public_key()})
    return Tokens(keys, **{"issuer": None, "audience": None, **options})


def signed(key: Any = SECRET, algorithm: str = "HS256", kid: str | None = None, **claims: Any) -> str:
    payload = {"sub": "ann", "exp": time.time() + 60, **claims}
    return jwt.encode(payload, key, algorithm, {"kid": kid} if kid else None)


def test_a_caller_is_who_the_claims_say() -> None:
    work = "6F1D3C52-6A0E-4D53-9C1C-7F6A3F0F4B1E"
    caller = tokens().read(signed(tenant="acme", teams=["t"], roles=["admin"], works={work: "editor"}))
    assert (caller.user_id, caller.tenant, caller.teams) == ("ann", "acme", {"t"})
    assert (caller.is_admin, caller.works) == (True, {work.lower(): "editor"})


@pytest.mark.parametrize("kid", ["k1"])
def test_rs256_is_taken_by_its_key_id(kid: str) -> None:
    assert tokens().read(signed(RSA, "RS256", kid)).user_id == "ann"


def _public_as_secret() -> str:
    """The old trick: the public key, which anybody has, as the secret of an HMAC. The library would not sign so."""
    public = RSA.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    header, payload, _ = signed(SECRET, "HS256", "k1").split(".")
    digest = hmac.digest(public, f"{header}.{payload}".encode(), "sha256")
    return f"{header}.{payload}.{base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


UNPROVED = {
    "nothing": "",
    "no token": "a.b.c",
    "another secret": signed(SECRET + "!"),
    "no algorithm": jwt.encode({"sub": "ann", "exp": time.time() + 60}, None, "none"),
    "another HMAC": signed(SECRET, "HS512"),
    "the public key as a secret": _public_as_secret(),
    "an unknown key": signed(RSA, "RS256", "k2"),
    "no key id": signed(RSA, "RS256"),
    "expired": signed(exp=time.time() - 5),
    "without an end": jwt.encode({"sub": "ann"}, SECRET, "HS256"),
    "without a user": jwt.encode({"exp": time.time() + 60}, SECRET, "HS256"),
    "an empty user": signed(sub=""),
    "a tenant that is none": signed(tenant="a.b"),
    "works that are a list": signed(works=["w"]),
}


@pytest.mark.parametrize("token", UNPROVED.values(), ids=UNPROVED.keys())
def test_what_proves_nothing_is_refused(token: str) -> None:
    with pytest.raises(NotAuthenticated):
        tokens().read(token)


def test_issuer_and_audience_count_where_they_are_set() -> None:
    bound = tokens(issuer="https://id.example", audience="lorebus")
    assert bound.read(signed(iss="https://id.example", aud="lorebus")).user_id == "ann"
    for claims in ({"iss": "https://id.example"}, {"aud": "lorebus"}, {"iss": "x", "aud": "lorebus"}):
        with pytest.raises(NotAuthenticated):
            bound.read(signed(**claims))
