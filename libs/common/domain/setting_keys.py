"""What administrators can set: every key once, with its range, where it may be set, and who reads it (spec 10).

These are decisions about memory, kept in the database and changed while everything runs (`lorebus settings`). What a
process needs to start, and what describes its machine, is in `libs/common/settings`, from the environment.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Generic, Literal, TypeVar

from libs.common.domain.calibration import Calibration
from libs.common.domain.cron import CHARS_MAX, is_cron
from libs.common.domain.supersession import Rule
from libs.common.errors import SettingRefused

ValueT = TypeVar("ValueT")
WordT = TypeVar("WordT", bound=str)
Level = Literal["channel", "team", "organization", "platform"]

LEVELS: tuple[Level, ...] = ("channel", "team", "organization", "platform")
"""Nearest first: the first one that has a value wins."""
_PLATFORM: tuple[Level, ...] = ("platform",)
_TEAM: tuple[Level, ...] = ("team", "organization", "platform")
_CHANNEL_OR_PLATFORM: tuple[Level, ...] = ("channel", "platform")

_ARTICLES: Mapping[Level, str] = {
    "channel": "a channel",
    "team": "a team",
    "organization": "an organization",
    "platform": "the platform",
}

DAYS_MAX = 36_500
"""A hundred years, so that no date leaves the calendar."""


@dataclass(frozen=True, slots=True)
class Range(Generic[ValueT]):
    """Which values a key takes: in words, and as a check that gives None for any other."""

    words: str
    read: Callable[[object], ValueT | None]


@dataclass(frozen=True, slots=True)
class Key(Generic[ValueT]):
    """One thing that can be set."""

    name: str
    default: ValueT
    range: Range[ValueT]
    levels: tuple[Level, ...]
    """Where it may be set, nearest first."""
    read_by: str
    meaning: str

    def check_level(self, level: Level) -> None:
        """Raises SettingRefused where the key may not be set at this level."""
        if level not in self.levels:
            raise SettingRefused(f"{self.name} cannot be set for {_ARTICLES[level]}, only for {_either(self.levels)}")

    def check_value(self, value: object) -> ValueT:
        """The value as it is stored, or SettingRefused."""
        accepted = self.range.read(value)
        if accepted is None:
            raise SettingRefused(f"{self.name} takes {self.range.words}")
        return accepted


def _either(levels: tuple[Level, ...]) -> str:
    *others, last = [_ARTICLES[level] for level in levels]
    return f"{', '.join(others)} or {last}" if others else last


def _whole(low: int, high: int) -> Range[int]:
    def read(value: object) -> int | None:
        return value if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high else None

    return Range(f"a whole number from {low} to {high}", read)


def _number(low: float, high: float) -> Range[float]:
    def read(value: object) -> float | None:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if low <= value <= high else None

    return Range(f"a number from {low:g} to {high:g}", read)


def _milliseconds(high: float) -> Range[float]:
    within = _number(0, high)
    return Range(f"a number above 0, up to {high:g}", lambda value: within.read(value) or None)


def _word(*words: WordT) -> Range[WordT]:
    return Range(" or ".join(words), lambda value: next((word for word in words if word == value), None))


_RULE: Range[Rule] = _word("mutual", "cosine")
_CALIBRATION: Range[Calibration] = _word("background", "cosine")
_SWITCH: Range[bool] = Range("true or false", lambda value: value if isinstance(value, bool) else None)
_CRON: Range[str] = Range(
    f"the five fields of a cron line (minute hour day month weekday), at most {CHARS_MAX} characters",
    lambda value: value if isinstance(value, str) and is_cron(value) else None,
)

SUPERSEDE_THRESHOLD = Key(
    "memory.supersedeThreshold", 0.92, _number(0, 1), LEVELS, "writer",
    "a newer lesson at least this near replaces an older one; 1 turns it off",
)  # fmt: skip
SUPERSEDE_RULE = Key(
    "memory.supersedeRule", "mutual", _RULE, LEVELS, "writer",
    "cosine: by the threshold alone; mutual: of two lessons that are each other's nearest, and no variants",
)  # fmt: skip
LESSON_MAX_AGE_DAYS = Key(
    "memory.lessonMaxAgeDays", 0, _whole(0, DAYS_MAX), _TEAM, "recall, consolidator",
    "older lessons are left out of recall, search and merges, and come back when it is raised; 0 leaves out none",
)  # fmt: skip
LESSON_TRANSCRIPT_EVIDENCE = Key(
    "memory.lessonTranscriptEvidence", True, _SWITCH, _TEAM, "writer",
    "whether a lesson may rest on what the transcripts of its run say",
)  # fmt: skip
ORG_SIMILARITY_THRESHOLD = Key(
    "memory.orgSimilarityThreshold", 0.7, _number(0, 1), _TEAM, "writer",
    "how alike another channel's note must be to be flagged across the organization",
)  # fmt: skip
CHANNEL_CONTEXT_ITEMS = Key(
    "channel.memoryContextItems", 5, _whole(1, 50), LEVELS, "recall",
    "how many notes a channel's turn is given",
)  # fmt: skip
CHANNEL_DEDUP_THRESHOLD = Key(
    "channel.memoryDedupThreshold", 0.85, _number(0, 1), LEVELS, "writer",
    "a fact at least this near to a note of the channel is not written again",
)  # fmt: skip
CHANNEL_INGEST_LIMIT = Key(
    "channel.passiveIngestLimit", 50, _whole(1, 500), LEVELS, "writer",
    "how many messages one pass of passive ingest reads",
)  # fmt: skip
CHANNEL_THRESHOLD = Key(
    "channel.memoryThreshold", 0.65, _number(0, 1), LEVELS, "recall",
    "how alike a channel's own note must be where the question does not say; other channels' must be at least 0.75",
)  # fmt: skip
CHANNEL_PRIVATE_BY_DEFAULT = Key(
    "channel.privateByDefault", False, _SWITCH, _TEAM, "writer",
    "whether a new channel of which its bot does not say it counts as private",
)  # fmt: skip
CHANNEL_MONTHLY_BUDGET_USD = Key(
    "channel.monthlyBudgetUsd", 0.0, _number(0, 1_000_000), LEVELS, "writer, consolidator",
    "what the model and embedding calls of each channel may cost a month (UTC); 0 is no cap",
)  # fmt: skip
CHANNEL_FLAG_COOLDOWN_HOURS = Key(
    "channel.orgFlagCooldownHours", 20.0, _number(0, 24 * DAYS_MAX), LEVELS, "writer",
    "how long after a look through the organization's notes none is taken for the channel again",
)  # fmt: skip
LESSON_RETRIEVAL_LIMIT = Key(
    "lessonRetrievalLimit", 5, _whole(1, 10), _PLATFORM, "recall",
    "how many lessons a recall gives where the question does not say",
)  # fmt: skip
LESSON_RETRIEVAL_THRESHOLD = Key(
    "lessonRetrievalThreshold", 0.7, _number(0, 1), _PLATFORM, "recall",
    "how alike a lesson must be where the question does not say; 0 lets everything through in rank order",
)  # fmt: skip
LESSON_RETRIEVAL_CALIBRATION = Key(
    "lessonRetrievalCalibration", "background", _CALIBRATION, _PLATFORM, "recall",
    "background: the threshold means the same under every model; cosine: it is the bare cosine",
)  # fmt: skip
CONSOLIDATION_CRON = Key(
    "consolidationCron", "0 3 * * 0", _CRON, _PLATFORM, "consolidator",
    "when like lessons are merged",
)  # fmt: skip
CONSOLIDATION_ENABLED = Key(
    "consolidationEnabled", True, _SWITCH, _TEAM, "consolidator",
    "whether the schedule merges like lessons of the repositories",
)  # fmt: skip
CONSOLIDATION_MIN_CLUSTER_SIZE = Key(
    "consolidationMinClusterSize", 3, _whole(2, 20), _CHANNEL_OR_PLATFORM, "consolidator",
    "how many like items it takes to merge them",
)  # fmt: skip
CONSOLIDATION_SIMILARITY_THRESHOLD = Key(
    "consolidationSimilarityThreshold", 0.85, _number(0.5, 1), _CHANNEL_OR_PLATFORM, "consolidator",
    "how alike items must be to be merged",
)  # fmt: skip
PHYSICAL_ERASURE_DAYS = Key(
    "memory.physicalErasureDays", 30, _whole(1, DAYS_MAX), _PLATFORM, "consolidator",
    "within how many days of a delete its bytes are gone from files, logs and back-ups of the database: you keep it",
)  # fmt: skip
REGEX_SCAN_BUDGET_MS = Key(
    "workspace.regexScanBudgetMs", 250.0, _milliseconds(60_000), _PLATFORM, "gate",
    "CPU time of all patterns together on one window of text; the gate reads that of the tenant `default`",
)  # fmt: skip
TRANSCRIPT_CAPTURE_ENABLED = Key(
    "workflow.transcriptCaptureEnabled", True, _SWITCH, _PLATFORM, "writer",
    "whether evidence may be put ahead of its run; off refuses it",
)  # fmt: skip
TRANSCRIPT_RETENTION_DAYS = Key(
    "workflow.transcriptRetentionDays", 7, _whole(1, DAYS_MAX), _PLATFORM, "writer",
    "how long evidence is kept whose run never came",
)  # fmt: skip
TRANSCRIPT_MAX_BYTES = Key(
    "workflow.transcriptMaxBytes", 64 * 1024 * 1024, _whole(1, 1024 * 1024 * 1024), _PLATFORM, "writer",
    "how much evidence may be put for one run",
)  # fmt: skip
EMBEDDING_RETENTION_DAYS = Key(
    "memory.embeddingRetentionDays", 7, _whole(1, DAYS_MAX), _PLATFORM, "reembedder",
    "how long the vectors of a model that serves no more are kept, so that it can come back; of the tenant `default`",
)  # fmt: skip

KEYS: Mapping[str, Key[Any]] = {
    key.name: key
    for key in (
        SUPERSEDE_THRESHOLD,
        SUPERSEDE_RULE,
        LESSON_MAX_AGE_DAYS,
        LESSON_TRANSCRIPT_EVIDENCE,
        ORG_SIMILARITY_THRESHOLD,
        CHANNEL_CONTEXT_ITEMS,
        CHANNEL_DEDUP_THRESHOLD,
        CHANNEL_INGEST_LIMIT,
        CHANNEL_THRESHOLD,
        CHANNEL_PRIVATE_BY_DEFAULT,
        CHANNEL_MONTHLY_BUDGET_USD,
        CHANNEL_FLAG_COOLDOWN_HOURS,
        LESSON_RETRIEVAL_LIMIT,
        LESSON_RETRIEVAL_THRESHOLD,
        LESSON_RETRIEVAL_CALIBRATION,
        CONSOLIDATION_CRON,
        CONSOLIDATION_ENABLED,
        CONSOLIDATION_MIN_CLUSTER_SIZE,
        CONSOLIDATION_SIMILARITY_THRESHOLD,
        PHYSICAL_ERASURE_DAYS,
        REGEX_SCAN_BUDGET_MS,
        EMBEDDING_RETENTION_DAYS,
        TRANSCRIPT_CAPTURE_ENABLED,
        TRANSCRIPT_RETENTION_DAYS,
        TRANSCRIPT_MAX_BYTES,
    )
}


def get_key(name: str) -> Key[Any]:
    """Raises SettingRefused for an unknown one, with the names that are near to it."""
    if name in KEYS:
        return KEYS[name]
    by_lower = {known.lower(): known for known in KEYS}
    near = [by_lower[match] for match in get_close_matches(name.lower(), by_lower)]
    remedy = f"did you mean {' or '.join(near)}?" if near else "`lorebus settings list` shows them all"
    raise SettingRefused(f"there is no such setting: {remedy}")


def check_setting(name: str, value: object, level: Level) -> object:
    """The value as it is stored at this level. Raises SettingRefused, which names the remedy."""
    key = get_key(name)
    key.check_level(level)
    return key.check_value(value)
