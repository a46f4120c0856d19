"""Credentials leave a text, everything else stays. All credentials here are made up."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lorebus.masking.texts import Masker
from pydantic import JsonValue

from libs.common.domain.masking import mask_json, mask_text

SHARED = Path(os.environ.get("LOREBUS_SHARED", Path(__file__).parents[4] / "shared"))
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"no shared material at {SHARED}")

CLIENT = Masker()
"""The same rules on Python's own engine, as a client runs them."""

RANDOM = "hB7xQ2mZ9kR4tW8vY3nL6pJ1cF5sD0gA"
HEX = "0f9d8c7b6a5e4d3c2b1a0f9d8c7b6a5e4d3c2b1a"
BASE64_LOGIN = "Y2k6czNjcjN0LXBhc3M="

SHAPES = [
    ("github", f"ghp_{RANDOM}"),
    ("github", f"github_pat_{RANDOM}_{RANDOM}"),
    ("gitlab", "glpat-hB7xQ2mZ9kR4tW8vY3nL"),
    ("aws", "AKIAQ2MZ9KR4TW8VY3NL"),
    ("anthropic", f"sk-ant-api03-{RANDOM}"),
    ("openai", f"sk-proj-{RANDOM}"),
    ("openai", f"sk-{RANDOM}"),
    ("npm", f"npm_{RANDOM}abcd"),
    ("pypi", f"pypi-AgEIcHlwaS5vcmc{RANDOM}"),
    ("slack", "xoxb-552367140991-hB7xQ2mZ9kR4"),
    ("webhook", "hooks.slack.com/services/T00AB12CD/B00AB12CD/hB7xQ2mZ9kR4tW8v"),
    ("webhook", f"discord.com/api/webhooks/123456789/{RANDOM}"),
    ("stripe", "sk_live_hB7xQ2mZ9kR4tW8v"),
    ("google", f"AIza{RANDOM}abc"),
    ("google", f"ya29.{RANDOM}"),
    ("azure", f"abc8Q~{RANDOM}"),
    ("huggingface", f"hf_{RANDOM}"),
    ("docker", f"dckr_pat_{RANDOM}"),
    ("hashicorp", f"hvs.{RANDOM}"),
    ("nats", "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY"),
    ("cloud", "dop_v1_" + "0a1b2c3d" * 8),
    ("messaging", "SG.hB7xQ2mZ9kR4tW8v.hB7xQ2mZ9kR4tW8v"),
    ("messaging", f"123456789:AA{RANDOM}"),
    ("model", f"gsk_{RANDOM}abcdefgh"),
    ("tool", f"glsa_{RANDOM}_0a1b2c3d"),
    ("tool", "sqp_" + HEX),
    ("shop", "shpat_" + "0a1b2c3d" * 4),
    ("jwt", f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJjaSJ9.{RANDOM}"),
    ("password-hash", "$2b$12$" + "N9qo8uLOickgx2ZMRZoMyeIjZAgcfl7p92ldGxad68LJZdL17lhWy"),
    ("encoded", "Z2hwX" + RANDOM),
]


@pytest.mark.parametrize(("rule", "credential"), SHAPES, ids=[f"{rule}-{value[:6]}" for rule, value in SHAPES])
def test_a_provider_credential_is_masked_wherever_it_stands(rule: str, credential: str) -> None:
    assert mask_text(f"rejected: {credential} (401)") == f"rejected: [masked:{rule}] (401)"


PLACES = [
    ("postgres://ci:{}@db.example.test:5432/app", RANDOM, "url-userinfo"),
    ("git clone https://{}@git.example.test/a.git", HEX, "url-userinfo"),
    ("GET /blob?sv=2022&sig={}&se=1", RANDOM, "url-parameter"),
    ("curl -H 'Authorization: Bearer {}' https://api", RANDOM, "authorization"),
    ("Authorization: token {}", HEX, "authorization"),
    ("authorization={}", RANDOM, "authorization"),
    ("sent Bearer {} and got 401", RANDOM, "bearer"),
    ("sent Basic {} and got 401", BASE64_LOGIN, "basic"),
    ('"auths": {{"reg": {{"auth": "{}"}}}}', BASE64_LOGIN, "basic"),
    ("Cookie: {}", "session=hB7xQ2mZ; theme=dark", "cookie"),
    ("curl -u ci:{} https://api", "J7xQ2mZ9kR", "command"),
    ("docker login -u ci -p {} reg.example.test", "J7xQ2mZ9kR", "command"),
    ("sshpass -p {} ssh host", "J7xQ2mZ9kR", "command"),
    ("mysql -u root -p{} app", "J7xQ2mZ9kR", "command"),
    ("redis-cli -h r -a {} ping", "J7xQ2mZ9kR", "command"),
    ("ldapsearch -D cn=a -w {} -b x", "J7xQ2mZ9kR", "command"),
    ("openssl rsa -passin pass:{} -in k", "J7xQ2mZ9kR", "command"),
    ("machine h login ci password {}", "J7xQ2mZ9kR", "command"),
    ("echo {} | docker login -u ci --password-stdin", "J7xQ2mZ9kR", "stdin"),
    ("gh auth login --with-token <<< {}", "J7xQ2mZ9kR", "stdin"),
    ("<password>{}</password>", "J7xQ2mZ9kR", "element"),
    ("twine upload --password {} dist/*", "J7xQ2mZ9kR", "flag"),
    ("deploy --api-key={} prod", "J7xQ2mZ9kR", "flag"),
    ('["deploy", "--token", "{}"]', "J7xQ2mZ9kR", "flag"),
    ("$ export DEPLOY_TOKEN={}", "letmein", "assignment"),
    ("DB_PASSWORD={} make", "correcthorse", "assignment"),
    ("SECRET_KEY={}", RANDOM, "assignment"),
    ("STRIPE_KEY={}", RANDOM, "assignment"),
    ("password: {}", "hunter2", "assignment"),
    ('password = "{}"', "letmein", "assignment"),
    ('{{"client_secret": "{}"}}', RANDOM, "assignment"),
    ('{{\\"apiToken\\": \\"{}\\"}}', RANDOM, "assignment"),
    ("-Dsonar.login={}", HEX, "flag"),
    ("npm config set //r.example.test/:_authToken={}", HEX, "assignment"),
    ("AccountName=a;AccountKey={};x", RANDOM + "==", "assignment"),
    ("aws configure set aws_secret_access_key {}", RANDOM, "assignment"),
    ("- name: DB_PASSWORD\n  value: {}", "hunter2", "assignment"),
]


@pytest.mark.parametrize(("form", "secret", "rule"), PLACES, ids=[form[:24] for form, _, _ in PLACES])
def test_a_secret_in_its_place_is_masked_and_the_rest_stays(form: str, secret: str, rule: str) -> None:
    assert mask_text(form.format(secret)) == form.format(f"[masked:{rule}]")


@pytest.mark.parametrize(
    "text",
    [
        "const token: string = getToken();",
        "token = settings.api_token",
        "max_tokens=4096",
        "tokens: 512, token_type: bearer",
        "PASSWORD=$DB_PASSWORD ./run",
        "GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}",
        "Setting TOKEN=[secure]",
        "password_file: /run/secrets/db1",
        "pass --token TOKEN or set API_KEY=YOUR_API_KEY",
        "use --password to log in",
        "docker run -u 1000:1000 -p 8080:80 -v $PWD:/host/1 image",
        "docker login reg && mkdir -p build2/out",
        "cache-key: v1-npm-3f2a9c8e7d6b5a4f",
        "restore-keys: node-modules-12ab34cd",
        "commit 9f8e7d6c5b4a39281706f5e4d3c2b1a09f8e7d6c",
        "sha256:0a1b2c3d4e5f60718293a4b5c6d7e8f90a1b2c3d4e5f60718293a4b5c6d7e8f9",
        "Bearer authentication is required, Basic authentication too",
        "error: unexpected token: Token2 at line 4",
        "ssh git@github.com:org/repo.git",
        "Cookie: a small file",
        "_recursive_post_grad_passes:0.00431",
    ],
)
def test_code_logs_and_prose_about_credentials_stay(text: str) -> None:
    assert mask_text(text) == text


PRIVATE_KEY = (
    "-----BEGIN RSA PRIVATE KEY-----\n" + f"{RANDOM}{RANDOM}\n" * 3 + "c0ffee==\n-----END RSA PRIVATE KEY-----"
)


@pytest.mark.parametrize("key", [PRIVATE_KEY, PRIVATE_KEY.replace("\n", "\\n"), PRIVATE_KEY.replace("\n", "\r\n")])
def test_a_private_key_block_is_masked_as_one(key: str) -> None:
    assert mask_text(f"DEPLOY_KEY: |\n{key}\nnext") == "DEPLOY_KEY: |\n[masked:private-key]\nnext"


def test_a_private_key_that_was_cut_is_masked_at_either_end() -> None:
    head, tail = PRIVATE_KEY[:110], PRIVATE_KEY[60:]
    assert RANDOM not in mask_text(f"log\n{head}")
    assert RANDOM not in mask_text(f"{tail}\nlog")


def test_known_values_go_first_and_the_longest_before_its_parts() -> None:
    masked = mask_text("deploy with opensesame-staging or opensesame", ["opensesame", "opensesame-staging"])
    assert masked == "deploy with [masked:known] or [masked:known]"


def test_a_known_value_never_breaks_a_mask_and_a_tiny_one_is_ignored() -> None:
    assert mask_text(f"TOKEN={RANDOM} masked a", ["masked", "a", RANDOM]) == "TOKEN=[masked:known] [masked:known] a"


def test_lone_surrogates_become_encodable() -> None:
    assert mask_text(f"\ud800 TOKEN={RANDOM}") == "? TOKEN=[masked:assignment]"


def test_json_is_masked_in_depth_by_text_by_key_by_flag_and_by_name() -> None:
    value: JsonValue = {
        "command": f"curl -H 'Authorization: Bearer {RANDOM}' u",
        "password": "x",
        "tokens": 4096,
        "token_type": "bearer",
        "api_keys_old": {"secret": ["one", "two", ""]},
        "argv": ["login", "--token", "opensesame", 3],
        "env": [{"name": "DB_PASSWORD", "value": "open"}, {"name": "HOME", "value": "/root"}],
        f"ghp_{RANDOM}": None,
    }
    assert mask_json(value) == {
        "command": "curl -H 'Authorization: Bearer [masked:authorization]' u",
        "password": "[masked:field]",
        "tokens": 4096,
        "token_type": "bearer",
        "api_keys_old": {"secret": ["[masked:field]", "[masked:field]", ""]},
        "argv": ["login", "--token", "[masked:field]", 3],
        "env": [{"name": "DB_PASSWORD", "value": "[masked:field]"}, {"name": "HOME", "value": "/root"}],
        "[masked:github]": None,
    }


FRAGMENTS = [
    *(credential for _, credential in SHAPES),
    *(form.format(secret) for form, secret, _ in PLACES),
    *(form.format("") for form, _, _ in PLACES),
    *(
        "token",
        "password",
        "_KEY",
        "=",
        ": ",
        '"',
        "'",
        "\\",
        " ",
        "\n",
        "@",
        "://",
        ":",
        "[masked:",
        "]",
        "--",
        "-p ",
        "<",
        ">",
    ),
    PRIVATE_KEY,
    "[masked:assignment]",
]


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=8), max_size=8).map("".join))
@settings(max_examples=300, deadline=None)
def test_masking_twice_changes_nothing(text: str) -> None:
    masked = mask_text(text)
    assert mask_text(masked) == masked


# The one character on which the engines differ: to RE2 a vertical tab is no white space.
NO_TAB = st.characters(codec="utf-8", exclude_characters="\v")


@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(NO_TAB, max_size=8), max_size=8).map("".join))
@settings(max_examples=300, deadline=None)
def test_both_engines_mask_alike(text: str) -> None:
    assert CLIENT.mask_text(text) == mask_text(text)


@pytest.mark.parametrize(
    "unit",
    [
        "token=a ",
        'token="',
        "://a:",
        "-----BEGIN PRIVATE KEY-----\nAAAA",
        "curl -u ",
        "eyJaaaaaaaaa.",
        "--token ",
        "aA1 ",
    ],
)
def test_a_hostile_text_costs_time_in_proportion_to_its_length(unit: str) -> None:
    small, large = (_cpu_seconds(unit * (size // len(unit))) for size in (1 << 17, 1 << 19))
    assert large < 12 * small + 0.5


def _cpu_seconds(text: str) -> float:
    started = time.thread_time()
    mask_text(text)
    return time.thread_time() - started


@needs_shared
def test_no_listed_credential_survives_in_the_runs_with_invented_credentials() -> None:
    folder = SHARED / "real-runs" / "fake-credentials"
    listed = json.loads((folder / "fake-credentials.json").read_text())
    credentials = {credential for entry in listed.values() for credential in entry["must_never_appear"]}
    runs = [json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*.json"))]
    lines = [
        line for path in sorted((folder / "transcripts").glob("*.jsonl")) for line in path.read_text().splitlines()
    ]
    masked = [json.dumps(mask_json(run)) for run in runs] + [mask_text(line) for line in lines]
    masked += [json.dumps(mask_json(json.loads(line))) for line in lines]
    assert runs
    assert lines
    survivors = {credential for credential in credentials for text in masked if credential in text}
    assert survivors == set()


@needs_shared
def test_both_engines_mask_the_runs_with_invented_credentials_alike() -> None:
    folder = SHARED / "real-runs" / "fake-credentials"
    runs = [json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*.json"))]
    assert runs
    assert [CLIENT.mask_json(run) for run in runs] == [mask_json(run) for run in runs]


@needs_shared
def test_benign_texts_stay_as_they_are() -> None:
    rows = [json.loads(line) for line in (SHARED / "gate-corpus" / "dev.jsonl").read_text().splitlines()]
    texts = [row["text"] for row in rows if row["label"] == 0]
    changed = [text for text in texts if mask_text(text) != text]
    assert len(changed) <= 0.002 * len(texts), [text[:200] for text in changed]


@needs_shared
def test_real_build_logs_stay_as_they_are() -> None:
    changed = [log[:200] for log in _real_logs() if mask_text(log) != log]
    assert changed == []


def _real_logs() -> Iterator[str]:
    for path in sorted((SHARED / "real-runs" / "runs").glob("*.json")):
        for attempt in json.loads(path.read_text())["attempts"]:
            if attempt.get("log_tail"):
                yield attempt["log_tail"]
