"""Where credentials stand in texts: shapes that name their provider, and places that a secret is written to.

An expression finds the place; `accepts` decides whether what stands there is a secret. The group `bare` (or `dq`,
`sq`, `bt` within quotes) is the value to mask. None looks further ahead than what it then consumes, so that on RE2 a
hostile text costs time in proportion to its length.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from lorebus.masking.values import is_attribute, is_base64_login, is_jumbled, is_placeholder, is_random

# After "the token is", where words follow more often than secrets do.
PROSE_CHARS_MIN = 16


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in a place; `after` is the character behind it."""

    value: str
    span: tuple[int, int]
    quoted: bool
    name: str
    suffix: str
    separator: str
    after: str


@dataclass(frozen=True, slots=True)
class Place:
    rule: str
    # Lower-case words one of which every match contains: most texts skip most places on a plain substring test.
    hints: frozenset[str]
    source: str
    accepts: Callable[[Found], bool]


def _place(rule: str, hints: str, source: str, accepts: Callable[[Found], bool]) -> Place:
    return Place(rule, frozenset(hints.split()), source, accepts)


def is_secret_name(name: str) -> bool:
    """`password`, `apiToken`, `DB_PASSWORD`; not `password_file`, `tokenizer`, `max_tokens`."""
    match = _NAME.search(name)
    return match is not None and _HARMLESS_PART.search(name[match.end() :]) is None


def is_secret_flag(argument: str) -> bool:
    """`--api-key` alone: the next argument is the value."""
    return argument.startswith("-") and _NAME_AT_END.search(argument) is not None


def _is_given(found: Found) -> bool:
    return len(found.value) >= 3 and not is_placeholder(found.value)


def _is_long_given(found: Found) -> bool:
    return len(found.value) >= 8 and not is_placeholder(found.value)


def _is_random(found: Found) -> bool:
    return is_random(found.value)


def _is_base64_login(found: Found) -> bool:
    return is_base64_login(found.value)


def _is_login(found: Found) -> bool:
    # `-u 1000:1000` is a user and a group, `-p 8080:80` two ports.
    return _is_given(found) and not found.value.replace(":", "").isdigit()


def _is_flag_value(found: Found) -> bool:
    """`--token=x` gives a value for sure; in prose a flag is followed by an ordinary word."""
    if not _is_given(found) or found.value.startswith(("-", "/", "./", "~")):
        return False
    return found.separator == "=" or found.quoted or not (found.value.islower() and len(found.value) < 8)


def _is_assigned(found: Found) -> bool:
    if _HARMLESS_PART.search(found.suffix) or is_placeholder(found.value) or found.after in ("(", "["):
        return False
    # The working directory, not a password.
    if found.name == "PWD" or is_attribute(found.value):
        return False
    if found.separator.strip().isalpha():
        return len(found.value) >= PROSE_CHARS_MIN and is_random(found.value)
    if found.separator == "=" and found.name.isupper():
        return len(found.value) >= 4
    if _PASSWORD_NAME.search(found.name) is None:
        return is_random(found.value)
    return _is_password(found.value, quoted=found.quoted)


def _is_password(value: str, *, quoted: bool) -> bool:
    if any(map(str.isspace, value)):
        return False
    return len(value) >= 4 if quoted else is_jumbled(value) or (len(value) >= 6 and not _is_identifier(value))


def _is_identifier(value: str) -> bool:
    return value.replace("_", "").replace("-", "").isalpha()


def _is_member(found: Found) -> bool:
    return _is_given(found) and _HARMLESS_PART.search(found.suffix) is None


def _is_environment_key(found: Found) -> bool:
    return len(found.value) >= 16 and is_random(found.value) and _PUBLIC_NAME.search(found.name) is None


_PASSWORDS = r"password|passwd|passphrase|passcode|_pwd|\bpwd|(?:_|db|user|root|admin|ftp|smtp|key|store)pass"
_WORDS = (
    rf"(?:{_PASSWORDS}|secret|token|credentials?|_auth|sonar\.login|connection[_-]?string"
    r"|(?:api|access|account|private|secret|signing|signature|encryption|master|deploy|shared[_-]?access|storage"
    r"|ssh|gpg|license|auth|client|service|app|application|webhook|hmac|session|subscription|functions?)[ _-]?key)"
)
_HINTS = "pass pwd secret token credential key _auth sonar.login connection"
_NAME = re.compile(_WORDS, re.IGNORECASE)
_NAME_AT_END = re.compile(rf"{_WORDS}$", re.IGNORECASE)
_PASSWORD_NAME = re.compile(_PASSWORDS, re.IGNORECASE)
_PUBLIC_NAME = re.compile(r"cache|public|primary|foreign|sort|partition|restore|object|routing|registry", re.IGNORECASE)
# Such a part behind the word makes another thing of the name: token_url, secret_name, password_file, tokens.
_HARMLESS_PART = re.compile(
    r"(?:^|[_-])(?:e?s|ed|ing|types?|ur[il]s?|endpoints?|names?|files?|path|dir|counts?|limits?|len|length|size|ttl"
    r"|expir\w*|age|polic\w*|fields?|hash|digest|algo\w*|prefix|headers?|index|i[sz]\w*|providers?|version|refs?|store"
    r"|managers?|scopes?|methods?|format|kind|labels?|min|max|rotation|reset|input|param\w*|regex|patterns?|valid\w*"
    r"|required|enabled|check\w*|less|generator|service|list|map|budget|usage|ids?|arn|stream|stdin|env|var|class"
    r"|errors?|lifetime|timeout|source|mount|pos\w*|start|end|span|text|offset|numbers?|cost|per|key[_-]?ref)(?=$|[_-])",
    re.IGNORECASE,
)

_GROUP_NAME = re.compile(r"\?P<\w+>")
_QUOTE = r"\\?[\"']"
_VALUE = (
    r"(?:\\?\"(?P<dq>(?:[^\"\\\n]|\\[^\"\n])+)|\\?'(?P<sq>[^'\\\n]+)|`(?P<bt>[^`\n]+)"
    r"|(?P<bare>[^\s\"'`,;&|<>(){}\[\]\\]+))"
)
_WORD = r"(?P<bare>[^\s\"'|;]+)"
_GAP = r"[ =]?[\"']?"
_SAME_COMMAND = r"(?:[^\n;&|]|\\\n)*?"
_AUTHORIZATION = rf"(?i)authorization(?:{_QUOTE})?\s*[:=]\s*(?:{_QUOTE})?"
_SCHEME = r"(?:bearer|basic|token|digest|apikey|key|negotiate|ntlm|bot|splunk|aws4-hmac-sha256) +"

PLACES = (
    # A `#` belongs into a password no more than a `/` does, but people leave it there.
    _place("url-userinfo", "://", r"://[^\s/?#:@\"'<>]*:(?P<bare>[^\s/?@\"'<>]+)@", _is_given),
    _place("url-userinfo", "://", r"://(?P<bare>[A-Za-z0-9_-]{20,}):?@", _is_random),
    _place(
        "url-parameter",
        "sig= signature= key=",
        r"(?i)[?&;](?:sig|(?:x-(?:amz|goog|oss)-)?signature|key)=(?P<bare>[^\s&\"'#<>]+)",
        _is_random,
    ),
    _place("authorization", "authorization", rf"{_AUTHORIZATION}{_SCHEME}(?P<bare>[^\s\"'\\,;]+)", _is_long_given),
    _place("authorization", "authorization", rf"{_AUTHORIZATION}(?P<bare>[^\s\"'\\,;]+)", _is_random),
    _place("bearer", "bearer", r"(?i)\bbearer\s+(?P<bare>[A-Za-z0-9._~+/=-]+)", _is_random),
    _place("basic", "basic", r"(?i)\bbasic\s+(?P<bare>[A-Za-z0-9+/=]{8,})", _is_base64_login),
    _place(
        "basic",
        "auth",
        rf"(?i)auths?(?:{_QUOTE})?\s*[:=]\s*(?:{_QUOTE})?(?P<bare>[A-Za-z0-9+/=]{{8,}})",
        _is_base64_login,
    ),
    _place(
        "cookie",
        "cookie",
        rf"(?i)cookie(?:{_QUOTE})?\s*:\s*(?:{_QUOTE})?(?P<bare>[\w.-]+=[^\s;\"'\\]+(?:; ?[^;\"'\\\s]+)*)",
        _is_long_given,
    ),
    _place(
        "command",
        "curl wget",
        rf"\b(?:curl|wget)\b{_SAME_COMMAND}\s(?:-u|--(?:proxy-)?user){_GAP}[^\s:\"']+:{_WORD}",
        _is_login,
    ),
    _place("command", "login upload", rf"\b(?:login|twine\s+upload)\b{_SAME_COMMAND}\s-p[ =][\"']?{_WORD}", _is_login),
    _place("command", "sshpass", rf"\bsshpass\s+-p\s*[\"']?{_WORD}", _is_login),
    _place("command", "mysql", rf"\bmysql[a-z]*\b{_SAME_COMMAND}\s-p[\"']?{_WORD}", _is_login),
    _place("command", "redis-cli", rf"\bredis-cli\b{_SAME_COMMAND}\s-a{_GAP}{_WORD}", _is_login),
    _place("command", "ldap", rf"\bldap[a-z]+\b{_SAME_COMMAND}\s-w{_GAP}{_WORD}", _is_login),
    _place("command", "pass:", rf"\bopenssl\b{_SAME_COMMAND}\spass:{_WORD}", _is_login),
    _place("command", "sqlplus", rf"\bsqlplus\b{_SAME_COMMAND}\s[^\s/]+/(?P<bare>[^\s\"'/@]+)@", _is_login),
    _place("command", "add-mask", rf"::add-mask::{_WORD}", _is_given),
    _place("command", "password", rf"\blogin\s+\S+\s+password\s+{_WORD}", _is_given),
    _place(
        "stdin",
        "-stdin --with-token",
        rf"\becho\s+(?:-n\s+)?[\"']?{_WORD}[\"']?\s*\|[^\n|]*?-(?:stdin|-with-token)",
        _is_given,
    ),
    _place("stdin", "<<<", rf"-(?:stdin|-with-token)\s*<<<\s*[\"']?{_WORD}", _is_given),
    _place("element", "</", rf"(?i)<[\w.:-]*{_WORDS}(?:\s[^<>]*)?>(?P<bare>[^<>\s]+)</", _is_given),
    _place(
        "flag",
        f"{_HINTS} cookie",
        rf"(?i)(?:^|[\s\"'`=(\[,])--?[a-z0-9_.-]*?(?:{_WORDS}|cookie)(?P<separator>=|[ \t]+|{_QUOTE},\s*){_VALUE}",
        _is_flag_value,
    ),
    _place(
        "assignment",
        _HINTS,
        rf"(?i)(?P<name>{_WORDS})(?P<suffix>[a-z0-9_-]*)(?:{_QUOTE})?\]?(?: \[[^\]\n]*\])?"
        rf"(?P<separator>[ \t]*(?::=|=>|=|:)[ \t]*|[ \t]+(?:is|was)[ \t]+){_VALUE}",
        _is_assigned,
    ),
    _place(
        "assignment",
        "value",
        rf"(?i)\b(?:name|key)(?:{_QUOTE})?\s*[:=]\s*(?:{_QUOTE})?[\w.-]*?(?P<name>{_WORDS})(?P<suffix>[a-z0-9_-]*)"
        rf"(?:{_QUOTE})?,?\s+(?:{_QUOTE})?value(?:{_QUOTE})?\s*[:=]\s*{_VALUE}",
        _is_member,
    ),
    _place(
        "assignment",
        "_key _pat _cred _auth _dsn _salt",
        rf"\b(?P<name>[A-Z][A-Z0-9_]*_(?:KEY|PAT|CREDS?|AUTH|DSN|SALT))(?:=|: ){_VALUE}",
        _is_environment_key,
    ),
    _place(
        "assignment",
        _HINTS,
        rf"(?i)(?:\bset|\bsetx|\benv|\s-x|\bwrite)\s+[^\s=]*?{_WORDS}[a-z0-9_]*\s+{_VALUE}",
        _is_random,
    ),
)
PLACE_HINTS = frozenset[str]().union(*(place.hints for place in PLACES))
ANY_PLACE = "|".join(f"(?:{_GROUP_NAME.sub('?:', place.source)})" for place in PLACES)
"""All in one RE2 expression: flags in the middle of one are none of Python's."""
