"""Which settings there are, and what each of them takes."""

import math

import pytest

from libs.common.domain.setting_keys import DAYS_MAX, KEYS, LEVELS, Key, Level, check_setting, get_key
from libs.common.errors import SettingRefused

ALL = pytest.mark.parametrize("key", KEYS.values(), ids=KEYS.keys())


@ALL
def test_the_default_is_in_its_own_range(key: Key[object]) -> None:
    assert key.check_value(key.default) == key.default


@ALL
def test_a_key_says_what_it_does_who_reads_it_and_where_it_may_be_set(key: Key[object]) -> None:
    assert key.meaning
    assert key.read_by
    assert "platform" in key.levels
    assert key.levels == tuple(level for level in LEVELS if level in key.levels)


DEFAULTS = {
    "memory.supersedeThreshold": 0.92,
    "memory.supersedeRule": "mutual",
    "memory.embeddingRetentionDays": 7,
    "memory.physicalErasureDays": 30,
    "memory.lessonMaxAgeDays": 0,
    "memory.lessonTranscriptEvidence": True,
    "memory.orgSimilarityThreshold": 0.7,
    "channel.memoryContextItems": 5,
    "channel.memoryDedupThreshold": 0.85,
    "channel.passiveIngestLimit": 50,
    "channel.memoryThreshold": 0.65,
    "channel.privateByDefault": False,
    "channel.monthlyBudgetUsd": 0.0,
    "channel.orgFlagCooldownHours": 20.0,
    "lessonRetrievalLimit": 5,
    "lessonRetrievalThreshold": 0.7,
    "lessonRetrievalCalibration": "background",
    "consolidationCron": "0 3 * * 0",
    "consolidationEnabled": True,
    "consolidationMinClusterSize": 3,
    "consolidationSimilarityThreshold": 0.85,
    "workspace.regexScanBudgetMs": 250,
    "workflow.transcriptCaptureEnabled": True,
    "workflow.transcriptRetentionDays": 7,
    "workflow.transcriptMaxBytes": 67_108_864,
}


def test_every_setting_has_its_default() -> None:
    assert {name: key.default for name, key in KEYS.items()} == DEFAULTS


EDGES: dict[str, tuple[tuple[object, ...], tuple[object, ...]]] = {
    "memory.supersedeThreshold": ((0, 0.5, 1), (-0.01, 1.01, True, "0.9", None, math.nan, math.inf, [0.9])),
    "memory.lessonMaxAgeDays": ((0, 1, DAYS_MAX), (-1, 1.5, 7.0, DAYS_MAX + 1, True, "7", None)),
    "memory.lessonTranscriptEvidence": ((True, False), (0, 1, "true", None)),
    "channel.memoryContextItems": ((1, 50), (0, 51)),
    "channel.passiveIngestLimit": ((1, 500), (0, 501)),
    "memory.supersedeRule": (("mutual", "cosine"), ("nearest", "", True, None)),
    "lessonRetrievalLimit": ((1, 10), (0, 11)),
    "lessonRetrievalCalibration": (("background", "cosine"), ("bare", 1, None)),
    "lessonRetrievalThreshold": ((0, 1), (-1, 2)),
    "consolidationCron": (("*/5 * * * *",), ("* * * *", "61 * * * *", 5, None)),
    "consolidationMinClusterSize": ((2, 20), (1, 21)),
    "consolidationSimilarityThreshold": ((0.5, 1), (0.49, 1.01)),
    "workspace.regexScanBudgetMs": ((0.5, 60_000), (0, -1, 60_001, True, "250")),
    "workflow.transcriptRetentionDays": ((1, 30), (0, -1)),
    "workflow.transcriptMaxBytes": ((1, 2**30), (0, 2**30 + 1)),
}
GOOD = [(name, value) for name, (good, _) in EDGES.items() for value in good]
BAD = [(name, value) for name, (_, bad) in EDGES.items() for value in bad]


@pytest.mark.parametrize(("name", "value"), GOOD)
def test_a_value_within_the_range_is_accepted(name: str, value: object) -> None:
    assert check_setting(name, value, "platform") == value


@pytest.mark.parametrize(("name", "value"), BAD)
def test_a_value_outside_the_range_is_refused_and_the_range_is_named(name: str, value: object) -> None:
    with pytest.raises(SettingRefused, match="takes ") as refusal:
        check_setting(name, value, "platform")
    assert KEYS[name].range.words in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("memory.lessonMaxAgeDays", "channel"),
        ("lessonRetrievalLimit", "team"),
        ("consolidationMinClusterSize", "organization"),
        ("workspace.regexScanBudgetMs", "channel"),
    ],
)
def test_a_level_where_a_key_may_not_be_set_is_refused_and_the_others_are_named(name: str, level: Level) -> None:
    with pytest.raises(SettingRefused, match=r"only for .*the platform"):
        check_setting(name, KEYS[name].default, level)


@pytest.mark.parametrize("level", ["channel", "platform"])
@pytest.mark.parametrize("name", ["consolidationMinClusterSize", "consolidationSimilarityThreshold"])
def test_a_channel_may_merge_by_its_own_measure(name: str, level: Level) -> None:
    assert check_setting(name, KEYS[name].default, level) == KEYS[name].default


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("lessonMaxAgeDays", "memory.lessonMaxAgeDays"),
        ("memory.lessonmaxagedays", "memory.lessonMaxAgeDays"),
        ("consolidationCorn", "consolidationCron"),
    ],
)
def test_an_unknown_key_is_refused_with_those_that_are_near(typed: str, meant: str) -> None:
    with pytest.raises(SettingRefused, match=f"did you mean.*{meant}"):
        get_key(typed)


def test_a_key_that_is_near_to_none_is_refused_with_where_to_look() -> None:
    with pytest.raises(SettingRefused, match="lorebus settings list"):
        get_key("zzz")
