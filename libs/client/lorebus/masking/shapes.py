"""Credentials that can be told by their own look, by provider.

Most begin with letters of their provider's and go on in one alphabet; `_token` builds those. Every shape carries a
hint, which all it matches contain: one pass over the hints of all settles nearly every text, since few hold any.
"""

from collections.abc import Iterable
from dataclasses import dataclass

_ALNUM = "A-Za-z0-9"
# The dash first, so that more characters can follow.
_WORD = "-A-Za-z0-9_"
_BASE64 = "A-Za-z0-9+/"
_HEX = "a-f0-9"
_UPPER = "A-Z0-9"
_LOWER = "a-z0-9"
# So much of a token's alphabet follows its opening in the hint: `key-` alone stands in many texts.
_HINT_CHARS = 6


@dataclass(frozen=True, slots=True)
class Shape:
    rule: str
    hint: str
    source: str


def _token(rule: str, opening: str, alphabet: str, chars_min: int, end: str = "") -> Shape:
    return Shape(rule, f"{opening}[{alphabet}]{{{_HINT_CHARS}}}", f"{opening}[{alphabet}]{{{chars_min},}}{end}")


_KEY_BEGIN = r"-----BEGIN[A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----"
_KEY_END = r"-----END[A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----"
_KEY_HINT = "PRIVATE KEY"
_KEY_LINE = r"[A-Za-z0-9+/=]{16,}"
_LINE_END = r"(?:\s|\\[rn])"
_GUID = "[a-f0-9]{8}(?:-[a-f0-9]{4}){3}-[a-f0-9]{12}"

SHAPES = (
    Shape("private-key", _KEY_HINT, rf"{_KEY_BEGIN}(?:[^-]|-[^-])+{_KEY_END}"),
    # Cut evidence may hold one end of a block only.
    Shape("private-key", _KEY_HINT, rf"{_KEY_BEGIN}(?:{_LINE_END}*{_KEY_LINE})+"),
    Shape("private-key", _KEY_HINT, rf"(?:{_KEY_LINE}{_LINE_END}+)+(?:[A-Za-z0-9+/=]+{_LINE_END}+)?{_KEY_END}"),
    _token(
        "private-key",
        "LS0tLS1CRUdJTi(?:BSU0EgUFJJVk|BQUklWQV|BFQyBQUklW|BPUEVOU1NI|BFTkNSWVBUR)",
        _BASE64,
        40,
        "={0,2}",
    ),
    _token("encoded", r"\b(?:Z2hwX|Z2l0aHViX3BhdF|c2stYW50|c2stcHJva|QUtJQ|Z2xwYXQt|eG94|ZXlK)", _BASE64, 20, "={0,2}"),
    Shape("jwt", "eyJ[A-Za-z0-9]{4}", r"\beyJ[A-Za-z0-9_=-]{8,}(?:\.[A-Za-z0-9_=-]{4,}){1,4}"),
    _token("tool", r"\beyJrIjoi", _ALNUM, 40),
    _token("github", "gh[oprsu]_", _ALNUM, 20),
    _token("github", "github_pat_", _WORD, 20),
    _token("gitlab", "gl(?:pat|ptt|dt|rtr?|ft|soat|cbt|agent|imt|oas|ffct)-", f"{_WORD}.", 20),
    _token("gitlab", r"\bGR1348941", _WORD, 20),
    _token("aws", r"\b(?:AKIA|ASIA|ABIA|ACCA)", _UPPER, 16, r"\b"),
    _token("aws", r"\bABSK", _BASE64, 60, "={0,2}"),
    _token("anthropic", "sk-ant-", _WORD, 20),
    _token("openai", r"\bsk-(?:proj|svcacct|admin|None|or-v1|lf)-", _WORD, 20),
    _token("openai", r"\bsk-", _ALNUM, 32),
    _token("npm", r"\bnpm_", _ALNUM, 30),
    _token("pypi", r"\bpypi-A", _WORD, 40),
    _token("slack", r"\bxox[a-z](?:\.xox[a-z])?-", f"{_ALNUM}-", 10),
    _token("slack", r"\bxapp-\d-", f"{_ALNUM}-", 20),
    _token("webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/", f"{_WORD}/+", 20),
    _token("webhook", r"discord(?:app)?\.com/api/webhooks/\d+/", _WORD, 30),
    _token("webhook", r"webhook\.office\.com/webhookb2/", f"{_WORD}/@", 40),
    _token("stripe", r"\b[rs]k_(?:live|test|prod)_", _ALNUM, 10),
    _token("stripe", r"\bwhsec_", f"{_BASE64}=", 20),
    _token("google", r"\bAIza", _WORD, 35),
    _token("google", r"\b(?:ya29\.|GOCSPX-)", _WORD, 20),
    _token("google", r"\b1//0", _WORD, 40),
    Shape("azure", r"\dQ~", r"\b[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    Shape("azure", "AZDO", r"\b[A-Za-z0-9]{70,}AZDO[A-Za-z0-9]{4}\b"),
    _token("huggingface", r"\b(?:hf|api_org)_", _ALNUM, 30),
    _token("docker", r"\bdckr_(?:pat|oat)_", _WORD, 20),
    _token("hashicorp", r"\bhv[sbr]\.", _WORD, 20),
    Shape("hashicorp", r"\.atlasv1\.", r"\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    Shape("nats", r"\bS[UANOCX][A-Z2-7]{20}", r"\bS[UANOCX][A-Z2-7]{56}\b"),
    _token("cloud", r"\bdo[opr]_v1_", _HEX, 64),
    _token("cloud", r"\bdapi", _HEX, 32),
    _token("cloud", r"\b(?:pul-|sbp_)", _HEX, 40),
    _token("cloud", r"\b(?:nfp|vc[acikpr])_", _ALNUM, 24),
    _token("cloud", r"\bsb_secret_", _WORD, 20),
    _token("cloud", r"\bpscale_(?:tkn|oauth|pw)_", f"{_WORD}=.", 30),
    _token("cloud", r"\b(?:fm1[ar]?|fm2|fo1)_", f"{_WORD}+/=", 40),
    _token("cloud", r"\bHRKU-", _WORD, 36),
    _token("cloud", r"\bdp\.(?:pt|st|sa|ct|scim|audit)\.", f"{_WORD}.", 40),
    _token("cloud", r"\bLTAI", _ALNUM, 16),
    _token("cloud", r"\bsl\.(?:u\.)?", _WORD, 100),
    _token("cloud", r"\bsha256~", _WORD, 40),
    _token("cloud", r"\b4b1d", _ALNUM, 38, r"\b"),
    _token("cloud", r"\bdt0c01\.", f"{_UPPER}.", 60),
    _token("cloud", r"\bv1\.0-[a-f0-9]{24}-", _HEX, 100),
    _token("cloud", r"\bAQVN", _WORD, 34),
    _token("cloud", r"\by0_", _WORD, 50),
    _token("cloud", r"\btk-us-", _WORD, 40),
    _token("cloud", r"\bmdb_sa_sk_", _WORD, 30),
    Shape("messaging", r"\bSG\.[A-Za-z0-9_-]{6}", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _token("messaging", r"\b(?:SK|key-)", _HEX, 32, r"\b"),
    _token("messaging", r"\bxkeysib-", f"{_ALNUM}-", 64),
    _token("messaging", r"\b\d{8,10}:AA", _WORD, 32),
    Shape("messaging", r"\bre_[A-Za-z0-9]{8}_", r"\bre_[A-Za-z0-9]{8}_[A-Za-z0-9]{20,}"),
    Shape(
        "messaging",
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.",
        r"\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    ),
    _token("messaging", r"\b(?:EAA|IGQ)", _ALNUM, 80),
    _token("model", r"\bgsk_", _ALNUM, 40),
    _token("model", r"\br8_", _ALNUM, 30),
    _token("model", r"\b(?:xai|pplx|nvapi)-", _WORD, 40),
    _token("model", r"\b(?:pcsk_|tvly-)", _WORD, 24),
    _token("model", r"\blsv2_(?:pt|sk)_", f"{_HEX}_", 40),
    _token("tool", r"\bops_eyJ", f"{_BASE64}=", 100),
    Shape("tool", r"\bA3-[A-Z0-9]{6}-", r"\bA3-[A-Z0-9]{6}-[A-Z0-9-]{20,}"),
    _token("tool", r"\blin_(?:api|oauth)_", _ALNUM, 32),
    _token("tool", r"\b(?:ntn|secret)_", _ALNUM, 40),
    _token("tool", r"\bPMAK-", f"{_HEX}-", 50),
    _token("tool", r"\bgls?a_", f"{_ALNUM}_", 40),
    _token("tool", r"\bglc_", f"{_BASE64}=", 32),
    _token("tool", r"\bsntry[su]_", f"{_WORD}+/=", 40),
    _token("tool", r"\bNR(?:AK|II)-", f"{_ALNUM}_-", 27),
    _token("tool", r"\bNRJS-", _HEX, 19),
    _token("tool", r"\bfigd_", _WORD, 40),
    _token("tool", r"\bAT(?:AT|CT)T3", f"{_WORD}=", 50),
    _token("tool", r"\bATBB", _ALNUM, 32),
    Shape("tool", r"\bpat[A-Za-z0-9]{14}\.", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}"),
    Shape("tool", r"\bpat\.[A-Za-z0-9_-]{22}\.", r"\bpat\.[A-Za-z0-9_-]{22}\.[a-f0-9]{24}\.[A-Za-z0-9]{20}"),
    _token("tool", r"\b(?:rubygems|bkua|sgp|sq[apu])_", f"{_HEX}_", 40),
    _token("tool", r"\bsgp_local_", _HEX, 40),
    _token("tool", r"\boy2", _LOWER, 43, r"\b"),
    _token("tool", r"\bcio", _ALNUM, 32, r"\b"),
    _token("tool", r"\bAKCp", _ALNUM, 60),
    _token("tool", r"\bcmVmdGtuO", _ALNUM, 50),
    _token("tool", r"\bAGE-SECRET-KEY-1", _UPPER, 58),
    Shape("tool", "tskey-", r"\btskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}"),
    _token("tool", r"\bCCIPAT_", f"{_ALNUM}_", 40),
    _token("tool", r"\bCFPAT-", _WORD, 40),
    _token("tool", r"\b(?i:clojars)_", _LOWER, 60),
    _token("tool", r"\b(?:rdme|tfp)_", f"{_WORD}.=", 50),
    _token("tool", r"\bpnu_", _ALNUM, 36),
    _token("tool", r"\bsm_[aps]at_", _ALNUM, 16),
    _token("tool", r"\bAPI-", _UPPER, 26, r"\b"),
    _token("tool", r"\b(?:ico|p8e)-", _ALNUM, 32, r"\b"),
    _token("tool", r"\bfio-u-", f"{_WORD}=", 60),
    _token("tool", r"\bphx_", _ALNUM, 40),
    Shape("tool", r"_mmk\b", r"\b[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk\b"),
    Shape("tool", r"/\d{13,}:", r"\b[12]/\d{13,}:[a-f0-9]{32}\b"),
    _token("shop", r"\bshp(?:at|ca|pa|ss)_", "a-fA-F0-9", 32),
    _token("shop", r"\bsq0(?:atp|csp|idp)-", _WORD, 22),
    _token("shop", r"\bEAAA", _WORD, 60),
    _token("shop", r"\b(?:shippo|duffel)_(?:live|test)_", _WORD, 40),
    _token("shop", r"\b(?:live|test)_", _HEX, 35, r"\b"),
    _token("shop", r"\bEZ[AT]K", _ALNUM, 54),
    _token("shop", r"\bFLWSECK(?:_TEST)?-", f"{_ALNUM}-", 12),
    Shape("shop", r"\baccess-[a-z]{7,11}-[a-f0-9]{8}-", rf"\baccess-(?:sandbox|development|production)-{_GUID}"),
    Shape("password-hash", r"\$2[aby]\$", r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}"),
    Shape("password-hash", r"\$argon2", r"\$argon2id?\$v=\d+\$[^\s\"']{40,}"),
    Shape("password-hash", r"\$[156]\$", r"\$[156]\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22,}"),
)
"""In the order in which they are tried."""


def _join_hints(hints: Iterable[str]) -> str:
    """Those that begin words share one word boundary: Python's engine then skips them within words."""
    distinct = list(dict.fromkeys(hints))
    beginning = [hint.removeprefix(r"\b") for hint in distinct if hint.startswith(r"\b")]
    anywhere = [hint for hint in distinct if not hint.startswith(r"\b")]
    return rf"\b(?:{'|'.join(beginning)})|{'|'.join(anywhere)}"


SHAPE_HINT = _join_hints(shape.hint for shape in SHAPES)
