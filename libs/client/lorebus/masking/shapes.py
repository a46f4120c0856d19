"""Credentials that can be told by their own look, by provider, and the openings that hint at any of them."""

_KEY_BEGIN = r"-----BEGIN[A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----"
_KEY_END = r"-----END[A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----"
_LINE_END = r"(?:\s|\\[rn])"

SHAPES: tuple[tuple[str, str], ...] = (
    ("private-key", rf"{_KEY_BEGIN}(?:[^-]|-[^-])+{_KEY_END}"),
    # Cut evidence may hold one end of a block only.
    ("private-key", rf"{_KEY_BEGIN}(?:{_LINE_END}*[A-Za-z0-9+/=]{{16,}})+"),
    ("private-key", rf"(?:[A-Za-z0-9+/=]{{16,}}{_LINE_END}+)+(?:[A-Za-z0-9+/=]+{_LINE_END}+)?{_KEY_END}"),
    (
        "private-key",
        r"LS0tLS1CRUdJTi(?:BSU0EgUFJJVk|BQUklWQV|BFQyBQUklW|BPUEVOU1NI|BFTkNSWVBUR)[A-Za-z0-9+/]{40,}={0,2}",
    ),
    ("encoded", r"\b(?:Z2hwX|Z2l0aHViX3BhdF|c2stYW50|c2stcHJva|QUtJQ|Z2xwYXQt|eG94)[A-Za-z0-9+/]{20,}={0,2}"),
    ("jwt", r"\beyJ[A-Za-z0-9_=-]{8,}(?:\.[A-Za-z0-9_=-]{4,}){1,4}"),
    ("github", r"gh[oprsu]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}"),
    (
        "gitlab",
        r"gl(?:pat|ptt|dt|rt|rtr|ft|soat|cbt|agent|imt|oas|ffct)-[A-Za-z0-9_.-]{20,}|\bGR1348941[A-Za-z0-9_-]{20,}",
    ),
    ("aws", r"\b(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b|\bABSK[A-Za-z0-9+/]{60,}={0,2}"),
    ("anthropic", r"sk-ant-[A-Za-z0-9_-]{20,}"),
    ("openai", r"\bsk-(?:proj|svcacct|admin|None|or-v1)-[A-Za-z0-9_-]{20,}|\bsk-[A-Za-z0-9]{32,}"),
    ("npm", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("pypi", r"\bpypi-A[A-Za-z0-9_-]{40,}"),
    ("slack", r"\bxox[a-z](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}|\bxapp-\d-[A-Za-z0-9-]{20,}"),
    ("webhook", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9/+_-]{20,}"),
    (
        "webhook",
        r"discord(?:app)?\.com/api/webhooks/\d+/[A-Za-z0-9_-]{30,}|webhook\.office\.com/webhookb2/[^\s\"']{40,}",
    ),
    ("stripe", r"\b[rs]k_(?:live|test|prod)_[A-Za-z0-9]{10,}|\bwhsec_[A-Za-z0-9+/=]{20,}"),
    (
        "google",
        r"\bAIza[A-Za-z0-9_-]{35}|\bya29\.[A-Za-z0-9_-]{20,}|\bGOCSPX-[A-Za-z0-9_-]{20,}|\b1//0[A-Za-z0-9_-]{40,}",
    ),
    ("azure", r"\b[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,34}"),
    ("huggingface", r"\bhf_[A-Za-z0-9]{30,}|\bapi_org_[A-Za-z0-9]{30,}"),
    ("docker", r"\bdckr_(?:pat|oat)_[A-Za-z0-9_-]{20,}"),
    ("hashicorp", r"\bhv[sbr]\.[A-Za-z0-9_-]{20,}|\b[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{60,}"),
    ("nats", r"\bS[UANOCX][A-Z2-7]{56}\b"),
    (
        "cloud",
        r"\bdo[opr]_v1_[a-f0-9]{64}|\bdapi[a-f0-9]{32}|\bpul-[a-f0-9]{40}|\bnfp_[A-Za-z0-9]{36}|\bsbp_[a-f0-9]{40}",
    ),
    (
        "cloud",
        r"\bsb_secret_[A-Za-z0-9_-]{20,}|\bpscale_(?:tkn|oauth|pw)_[A-Za-z0-9_=.-]{30,}|\bfm[12]_[A-Za-z0-9+/=_-]{80,}",
    ),
    (
        "cloud",
        r"\bHRKU-[A-Za-z0-9_-]{36,}|\bdp\.(?:pt|st|sa|ct|scim|audit)\.[A-Za-z0-9._-]{40,}|\bLTAI[A-Za-z0-9]{16,24}\b",
    ),
    ("messaging", r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}|\bSK[0-9a-f]{32}\b|\bkey-[0-9a-f]{32}\b"),
    ("messaging", r"\bxkeysib-[a-f0-9]{64}|\b\d{8,10}:AA[A-Za-z0-9_-]{32,}"),
    ("model", r"\bgsk_[A-Za-z0-9]{40,}|\br8_[A-Za-z0-9]{30,}|\bxai-[A-Za-z0-9]{60,}|\bpplx-[A-Za-z0-9]{40,}"),
    (
        "tool",
        r"\blin_(?:api|oauth)_[A-Za-z0-9]{32,}|\b(?:ntn|secret)_[A-Za-z0-9]{40,}|\bPMAK-[a-f0-9]{24}-[a-f0-9]{34}",
    ),
    ("tool", r"\bgl(?:sa_[A-Za-z0-9]{32}_[a-f0-9]{8}|c_[A-Za-z0-9+/=]{32,})|\bsntry[su]_[A-Za-z0-9_=+/-]{40,}"),
    ("tool", r"\bNRAK-[A-Z0-9]{27}|\bfigd_[A-Za-z0-9_-]{40,}|\bATATT3[A-Za-z0-9_=-]{60,}|\bATBB[A-Za-z0-9]{32}"),
    ("tool", r"\bpat[A-Za-z0-9]{14}\.[a-f0-9]{64}|\brubygems_[a-f0-9]{48}|\boy2[a-z0-9]{43}\b|\bcio[A-Za-z0-9]{32}\b"),
    (
        "tool",
        r"\bAKCp[A-Za-z0-9]{60,}|\bcmVmdGtuO[A-Za-z0-9]{50,}|\bsq[apu]_[a-f0-9]{40}\b|\bAGE-SECRET-KEY-1[A-Z0-9]{58}",
    ),
    ("tool", r"\btskey-[a-z]+-[A-Za-z0-9]+-[A-Za-z0-9]{16,}|\bCCIPAT_[A-Za-z0-9_]{40,}"),
    ("shop", r"\bshp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|\bsq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,}|\bEAAA[A-Za-z0-9_-]{60}"),
    ("password-hash", r"\$2[aby]\$\d\d\$[./A-Za-z0-9]{53}|\$argon2id?\$v=\d+\$[^\s\"']{40,}"),
    ("password-hash", r"\$[156]\$[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{22,}"),
)
"""The rule's name and its expression, in the order in which they are tried."""

SHAPE_HINT = (
    r"PRIVATE KEY|LS0tLS1CRUdJTi|Z2hwX|Z2l0aHViX3BhdF|c2st(?:YW50|cHJva)|QUtJQ|Z2xwYXQt|eG94|eyJ[A-Za-z0-9]{4}"
    r"|gh[oprsu]_[A-Za-z0-9]|github_pat_|gl(?:pat|ptt|dt|rtr?|ft|soat|cbt|agent|imt|oas|ffct)-|GR1348941"
    r"|A(?:KIA|SIA|BIA|CCA|BSK)[A-Za-z0-9+/]{4}|\bsk-[A-Za-z0-9]|npm_[A-Za-z0-9]{4}|pypi-A|xox[a-z]|xapp-|hooks\.slack"
    r"|api/webhooks|webhookb2|[rs]k_(?:live|test|prod)_|whsec_|AIza|ya29\.|GOCSPX-|1//0|\dQ~|hf_[A-Za-z0-9]|api_org_"
    r"|dckr_|hv[sbr]\.|\.atlasv1|\bS[UANOCX][A-Z2-7]{6}|do[opr]_v1_|dapi[a-f0-9]|pul-[a-f0-9]|nfp_|sbp_|sb_secret_"
    r"|pscale_|fm[12]_|HRKU-|dp\.[a-z]|LTAI|SG\.|SK[0-9a-f]{4}|key-[0-9a-f]{4}|xkeysib-|:AA[A-Za-z0-9_-]{4}|gsk_|\br8_"
    r"|xai-|pplx-|lin_[ao]|ntn_|secret_[A-Za-z0-9]|PMAK-|glsa_|glc_|sntry[su]_|NRAK-|figd_|ATATT3|ATBB|rubygems_|oy2"
    r"|\bpat[A-Za-z0-9]{6}|cio[A-Za-z0-9]{6}|AKCp|cmVmdGtuO|sq[apu]_[a-f0-9]|AGE-SECRET|tskey-|CCIPAT_"
    r"|shp(?:at|ca|pa|ss)_|sq0|EAAA|\$2[aby]\$|\$argon2|\$[156]\$"
)
"""Every shape contains one of these. One pass over them settles nearly every text, since few hold any."""
