"""Made-up credentials in their usual surroundings, the same ones on every machine.

A form such as `ghp_{36a}` is a credential with so many random characters of an alphabet. No value here has ever
opened anything.
"""

import base64
import random
import re
import string
from collections.abc import Iterator
from dataclasses import dataclass

SEED = 20_261_130
VALUES_PER_SURROUNDING = 2

ALPHABETS = {
    "a": string.ascii_letters + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "u": string.ascii_uppercase + string.digits,
    "L": string.ascii_letters,
    "U": string.ascii_uppercase,
    "h": "0123456789abcdef",
    "H": "0123456789ABCDEF",
    "d": string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "r": string.ascii_uppercase + "234567",
    "p": string.ascii_letters + string.digits + "!#%*+.^~",
}
_SLOT = re.compile(r"\{(\d+)(\w)\}")

PROVIDER_FORMS = {
    "1password": ("ops_eyJ{260b}", "A3-{6u}-{11u}-{5u}-{5u}-{5u}"),
    "adobe": ("p8e-{32l}",),
    "age": ("AGE-SECRET-KEY-1{58u}",),
    "alibaba": ("LTAI{20l}",),
    "anthropic": ("sk-ant-api03-{93w}AA", "sk-ant-admin01-{93w}AA", "sk-ant-oat01-{80w}AA"),
    "asana": ("1/{16d}:{32h}",),
    "artifactory": ("AKCp{69a}", "cmVmdGtuOjAxOj{50a}"),
    "atlassian": ("ATATT3{186w}", "ATBB{32a}", "ATCTT3{60w}"),
    "aws": ("AKIA{16r}", "ASIA{16r}", "ABSK{109b}="),
    "azure": ("{3a}8Q~{34w}", "{76a}AZDO{4a}"),
    "buildkite": ("bkua_{40h}",),
    "cargo": ("cio{32a}",),
    "circleci": ("CCIPAT_{22a}_{40h}",),
    "clickhouse": ("4b1d{38a}",),
    "clojars": ("CLOJARS_{60h}",),
    "cloudflare": ("v1.0-{24h}-{146h}",),
    "contentful": ("CFPAT-{43w}",),
    "databricks": ("dapi{32h}", "dapi{32h}-2"),
    "digitalocean": ("dop_v1_{64h}", "doo_v1_{64h}", "dor_v1_{64h}"),
    "discord": ("https://discord.com/api/webhooks/{19d}/{68w}", "MT{22a}.G{5w}.{38w}"),
    "docker": ("dckr_pat_{27w}", "dckr_oat_{32w}"),
    "doppler": ("dp.pt.{43a}", "dp.st.dev.{43a}"),
    "dropbox": ("sl.{135w}", "sl.u.{135w}"),
    "duffel": ("duffel_live_{43w}",),
    "dynatrace": ("dt0c01.{24u}.{64u}",),
    "easypost": ("EZAK{54a}", "EZTK{54a}"),
    "facebook": ("EAAC{110a}", "EAAM{110a}"),
    "figma": ("figd_{40w}",),
    "fly": ("fm2_{120b}", "fo1_{43w}"),
    "flutterwave": ("FLWSECK-{32h}-X", "FLWSECK_TEST-{12h}"),
    "frameio": ("fio-u-{64w}",),
    "github": ("ghp_{36a}", "gho_{36a}", "ghu_{36a}", "ghs_{36a}", "ghr_{36a}", "github_pat_{22a}_{59a}"),
    "gitlab": ("glpat-{20w}", "gldt-{20w}", "glrt-{20w}", "glptt-{40h}", "glcbt-1f_{20w}", "GR1348941{20w}"),
    "google": ("AIza{35w}", "ya29.{60w}", "GOCSPX-{28w}", "1//0{60w}"),
    "grafana": ("glsa_{32a}_{8h}", "glc_{60a}=", "eyJrIjoi{60a}"),
    "groq": ("gsk_{52a}",),
    "harness": ("pat.{22a}.{24h}.{20a}",),
    "hashicorp": ("hvs.{90w}", "hvb.{140w}", "{14a}.atlasv1.{64w}"),
    "heroku": ("HRKU-AA{58w}",),
    "huggingface": ("hf_{34L}", "api_org_{34L}"),
    "infracost": ("ico-{32a}",),
    "jwt": ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi{40a}.{43w}", "ZXlKaGJHY2lPaU{60a}"),
    "langfuse": ("sk-lf-{8h}-{4h}-{4h}-{4h}-{12h}",),
    "langsmith": ("lsv2_pt_{32h}_{10h}", "lsv2_sk_{32h}_{10h}"),
    "linear": ("lin_api_{40a}", "lin_oauth_{64h}"),
    "lob": ("live_{35h}",),
    "mailgun": ("key-{32h}",),
    "mapbox": ("sk.eyJ1Ijoi{60a}.{22a}",),
    "maxmind": ("{6a}_{29a}_mmk",),
    "meta": ("IGQVJ{80a}",),
    "mongodb": ("mdb_sa_sk_{40w}",),
    "nats": ("SU{56r}", "SA{56r}"),
    "netlify": ("nfp_{36a}",),
    "newrelic": ("NRAK-{27u}", "NRII-{32w}", "NRJS-{19h}"),
    "notion": ("ntn_{11d}{35a}", "secret_{43a}"),
    "npm": ("npm_{36a}",),
    "nuget": ("oy2{43l}",),
    "nvidia": ("nvapi-{64w}",),
    "octopus": ("API-{26u}",),
    "openai": ("sk-proj-{74w}T3BlbkFJ{74w}", "sk-svcacct-{58w}T3BlbkFJ{58w}", "sk-{20a}T3BlbkFJ{20a}"),
    "openrouter": ("sk-or-v1-{64h}",),
    "openshift": ("sha256~{43w}",),
    "perplexity": ("pplx-{48a}",),
    "pinecone": ("pcsk_{6a}_{50a}",),
    "plaid": ("access-sandbox-{8h}-{4h}-{4h}-{4h}-{12h}",),
    "planetscale": ("pscale_tkn_{43w}", "pscale_oauth_{43w}", "pscale_pw_{43w}"),
    "posthog": ("phx_{43a}",),
    "postman": ("PMAK-{24h}-{34h}",),
    "prefect": ("pnu_{36a}",),
    "pulumi": ("pul-{40h}",),
    "pypi": ("pypi-AgEIcHlwaS5vcmc{100w}", "pypi-AgENdGVzdC5weXBpLm9yZw{100w}"),
    "readme": ("rdme_{70l}",),
    "replicate": ("r8_{37a}",),
    "resend": ("re_{8a}_{24a}",),
    "rubygems": ("rubygems_{48h}",),
    "scalingo": ("tk-us-{48w}",),
    "sendgrid": ("SG.{22w}.{43w}",),
    "sendinblue": ("xkeysib-{64h}-{16a}",),
    "sentry": ("sntryu_{64h}", "sntrys_eyJpYXQiO{60a}_{43b}"),
    "settlemint": ("sm_pat_{16a}", "sm_aat_{16a}"),
    "shippo": ("shippo_live_{40h}",),
    "shopify": ("shpat_{32h}", "shpss_{32h}", "shpca_{32h}", "shppa_{32h}"),
    "slack": (
        "xoxb-{12d}-{12d}-{24a}",
        "xoxp-{12d}-{12d}-{12d}-{32h}",
        "xapp-1-A{10u}-{13d}-{64h}",
        "https://hooks.slack.com/services/T{8u}/B{8u}/{24a}",
        "xoxe.xoxp-1-{163u}",
    ),
    "sonar": ("sqp_{40h}", "squ_{40h}"),
    "sourcegraph": ("sgp_{16h}_{40h}", "sgp_{40h}"),
    "square": ("sq0atp-{22w}", "EAAA{60w}"),
    "stripe": ("sk_live_{24a}", "sk_test_{24a}", "rk_live_{24a}", "whsec_{32a}"),
    "supabase": ("sbp_{40h}", "sb_secret_{31w}"),
    "tailscale": ("tskey-auth-{12a}CNTRL-{32a}",),
    "tavily": ("tvly-dev-{32a}",),
    "teams": ("https://a.webhook.office.com/webhookb2/{8h}-{4h}-{4h}-{4h}-{12h}@{8h}/IncomingWebhook/{32h}/{8h}",),
    "telegram": ("{9d}:AA{33w}",),
    "twilio": ("SK{32h}",),
    "typeform": ("tfp_{59w}",),
    "vercel": ("vcp_{56a}",),
    "xai": ("xai-{80a}",),
    "yandex": ("AQVN{36w}", "y0_{55w}"),
}
"""By provider, as their documentation and public secret scanners describe them."""

PROVIDER_SURROUNDINGS = (
    "{}",
    "remote: rejected the credential {} for this repository",
    'client = Client("{}")',
    "  value: {}\n  other: 1",
    'config = {{"id": 7, "auth_value": "{}"}}',
    "step 3 printed `{}` before it failed.",
    "curl -sS -H 'X-Api: {}' https://api.example.test/v1",
    "$ export SERVICE={}\n$ make deploy",
    "[2026-03-04 12:11:09] DEBUG using ({}) from the environment",
    "GET https://api.example.test/v1?access={}&page=2",
    "a,b,{},d",
)

PASSWORD_FORMS = ("{12a}", "{16a}", "{20p}", "Summer{4d}!x", "{5l}-{5l}-{5l}")
RANDOM_FORMS = ("{24a}", "{32l}", "{40h}", "{40b}", "{64h}", "{8h}-{4h}-{4h}-{4h}-{12h}", "{32a}==")

PASSWORD_PLACES = (
    "postgres://app:{}@db.example.test:5432/app",
    "DATABASE_URL=mysql://root:{}@10.0.0.7/app?ssl=true",
    "redis://:{}@cache.example.test:6379/0",
    "mongodb+srv://svc:{}@cluster0.example.test/?retryWrites=true",
    "amqp://guest2:{}@mq.example.test//",
    "git clone https://ci-bot:{}@git.example.test/team/app.git",
    "curl -u admin:{} https://nexus.example.test/upload",
    "curl --user 'deploy:{}' -T app.tgz https://files.example.test",
    "wget --http-user=ci --http-password={} https://files.example.test/a",
    "docker login -u ci -p {} registry.example.test",
    "docker login registry.example.test --username ci --password {}",
    "echo {} | docker login -u ci --password-stdin registry.example.test",
    "sshpass -p '{}' ssh root@10.0.0.7",
    "mysql -h db -u root -p{} app < dump.sql",
    "mysqldump --password={} app",
    "PGPASSWORD={} psql -h db -U app",
    "redis-cli -h cache -a {} flushall",
    "ldapsearch -x -D cn=admin -w {} -b dc=example",
    "openssl rsa -in k.pem -passin pass:{}",
    "keytool -importkeystore -storepass {} -alias a",
    "twine upload -u __token__ -p {} dist/*",
    "machine git.example.test login ci password {}",
    "machine git.example.test\n  login ci\n  password {}\n",
    "export DB_PASSWORD={}",
    "export DB_PASSWORD='{}'",
    "ENV ADMIN_PASSWORD={}",
    "set SMTP_PASS={}",
    '$env:DB_PASSWORD = "{}"',
    "password: {}",
    "  db_password: '{}'\n  db_host: db",
    '{{"user": "ci", "password": "{}"}}',
    '{{\\"password\\": \\"{}\\", \\"user\\": \\"ci\\"}}',
    "spring.datasource.password={}",
    'password = "{}"',
    'conn = connect(host="db", user="app", password="{}")',
    "Server=db;Database=app;User Id=sa;Password={};Encrypt=true",
    "host=db port=5432 user=app password={} dbname=app",
    "jdbc:postgresql://db/app?user=app&password={}&ssl=true",
    "<password>{}</password>",
    '<add key="ClearTextPassword" value="{}" />',
    "- name: DB_PASSWORD\n  value: {}",
    "--from-literal=password={}",
    "helm upgrade app . --set auth.password={} --wait",
    "pg: user app, passwd={}",
    "sqlplus system/{}@db",
)
"""Where a password is written; it may be made up by a person."""

RANDOM_PLACES = (
    "https://oauth2:{}@git.example.test/team/app.git",
    "https://x-access-token:{}@github.example.test/a/b",
    "curl -H 'Authorization: Bearer {}' https://api.example.test",
    'curl -H "Authorization: token {}" https://api.example.test',
    '{{"Authorization": "Bearer {}"}}',
    "> authorization: Basic {}",
    "Proxy-Authorization: Bearer {}",
    "X-Api-Key: {}",
    "X-Auth-Token: {}",
    "PRIVATE-TOKEN: {}",
    "curl --header 'PRIVATE-TOKEN: {}' https://git.example.test/api/v4",
    "sent Bearer {} and got 403",
    "Set-Cookie: session={}; HttpOnly",
    "Cookie: sessionid={}; theme=dark",
    "export GITHUB_TOKEN={}",
    "AWS_SECRET_ACCESS_KEY={}",
    "aws_secret_access_key = {}",
    "aws configure set aws_secret_access_key {}",
    "AWS_SESSION_TOKEN={}",
    'token = "{}"',
    "api_key: {}",
    "apiKey: '{}',",
    '{{"client_secret": "{}", "client_id": "app"}}',
    '{{"access_token":"{}","expires_in":3600}}',
    '"refresh_token": "{}"',
    "SECRET_KEY = '{}'",
    "JWT_SECRET={}",
    "STRIPE_KEY={}",
    "secret_key_base: {}",
    "ENCRYPTION_KEY={}",
    "deploy --token {} --prod",
    "deploy --api-key={} prod",
    "vault login -token={}",
    "vercel --token={}",
    "gh auth login --with-token <<< {}",
    "npm config set //registry.example.test/:_authToken={}",
    "//registry.example.test/:_authToken={}",
    "_auth={}",
    "AccountName=a;AccountKey={};EndpointSuffix=example.test",
    "Endpoint=sb://a.example.test/;SharedAccessKeyName=k;SharedAccessKey={}",
    "https://a.blob.example.test/c/b?sv=2022-11-02&sig={}&se=2026",
    "https://api.example.test/v1?api_key={}&q=1",
    "https://api.example.test/v1?access_token={}",
    "https://bucket.example.test/k?X-Amz-Signature={}&X-Amz-Date=1",
    "- name: API_TOKEN\n  value: {}",
    "kubectl create secret generic s --from-literal=api-token={}",
    "-Dsonar.login={}",
    "TOKEN: {}",
    "CODECOV_TOKEN: {}",
    'os.environ["API_TOKEN"] = "{}"',
    "setx API_TOKEN {}",
    "fly secrets set API_TOKEN={}",
    "::add-mask::{}",
    "heroku config:set SECRET_TOKEN={} -a app",
    'ARG NPM_TOKEN="{}"',
    "signing_secret => '{}'",
    "hmac_key: {}",
    "The token is {} as printed by the job.",
)
"""Where a machine-made secret is written."""


@dataclass(frozen=True, slots=True)
class Written:
    """A secret within a text; `kind` is its provider, or the place."""

    kind: str
    secret: str
    text: str


def written_credentials(seed: int = SEED) -> Iterator[Written]:
    chance = random.Random(seed)
    for provider, forms in PROVIDER_FORMS.items():
        for form in forms:
            yield from _write(provider, form, PROVIDER_SURROUNDINGS, chance)
    for place in PASSWORD_PLACES:
        for form in PASSWORD_FORMS:
            yield from _write(place, form, (place,), chance)
    for place in RANDOM_PLACES:
        for form in RANDOM_FORMS:
            yield from _write(place, form, (place,), chance)
    yield from _keys(chance)
    yield from _logins(chance)


def _write(kind: str, form: str, surroundings: tuple[str, ...], chance: random.Random) -> Iterator[Written]:
    for surrounding in surroundings:
        for _ in range(VALUES_PER_SURROUNDING):
            secret = fill(form, chance)
            yield Written(kind, secret, surrounding.format(secret))


def _keys(chance: random.Random) -> Iterator[Written]:
    """Private keys, whole and cut; what must not stay is a line of their inside."""
    for name in ("RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", "DSA ", ""):
        lines = [fill("{64b}", chance) for _ in range(12)]
        block = "\n".join((f"-----BEGIN {name}PRIVATE KEY-----", *lines, f"-----END {name}PRIVATE KEY-----"))
        for text in (block, block.replace("\n", "\\n"), block.replace("\n", "\r\n"), block[:400], block[300:]):
            yield Written("private-key", lines[5] if text != block[:400] else lines[2], f"key: |\n{text}\nend")
        indented = block.replace("\n", "\n    ")
        yield Written("private-key", lines[5], f"data:\n  tls.key: |\n    {indented}\n")
    pgp = "\n".join(fill("{64b}", chance) for _ in range(8))
    yield Written(
        "private-key",
        pgp[:64],
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 2\n\n{pgp}\n=aB3d\n-----END PGP PRIVATE KEY BLOCK-----",
    )


def _logins(chance: random.Random) -> Iterator[Written]:
    """`user:password` in base64, as Basic headers and Docker's config have it."""
    for form in PASSWORD_FORMS:
        login = base64.b64encode(f"ci:{fill(form, chance)}".encode()).decode()
        for place in ("Authorization: Basic {}", '{{"auths": {{"reg.example.test": {{"auth": "{}"}}}}}}'):
            yield Written(place, login, place.format(login))


def fill(form: str, chance: random.Random) -> str:
    """The form with random characters in its slots."""
    return _SLOT.sub(lambda slot: "".join(chance.choices(ALPHABETS[slot[2]], k=int(slot[1]))), form)
