"""What was compiled before is taken again, and only from where nobody else writes."""

import os
from hashlib import sha256
from pathlib import Path

import pytest

from services.gate.compiled import FILES_MAX, recall_or_compile


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "lorebus" / "gate"


def refuse() -> bytes:
    raise AssertionError("compiled again")


def test_what_was_compiled_is_kept_for_the_same_content(folder: Path) -> None:
    assert recall_or_compile(b"patterns", lambda: b"database") == b"database"
    assert recall_or_compile(b"patterns", refuse) == b"database"
    assert recall_or_compile(b"others", lambda: b"another") == b"another"
    assert len(list(folder.iterdir())) == 2


def test_a_folder_that_others_write_to_is_not_trusted(folder: Path) -> None:
    recall_or_compile(b"patterns", lambda: b"database")
    folder.chmod(0o777)
    assert recall_or_compile(b"patterns", lambda: b"fresh") == b"fresh"


def test_where_nothing_can_be_kept_it_compiles_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert [recall_or_compile(b"patterns", lambda: b"database") for _ in range(2)] == [b"database"] * 2


def test_what_was_used_last_is_kept(folder: Path) -> None:
    recall_or_compile(b"built in", lambda: b"first")
    [first] = folder.iterdir()
    os.utime(first, (0, 0))
    assert recall_or_compile(b"built in", refuse) == b"first"
    for number in range(FILES_MAX - 1):
        recall_or_compile(b"%d" % number, lambda: b"another")
        os.utime(folder / sha256(b"%d" % number).hexdigest(), (number + 1, number + 1))
    recall_or_compile(b"one more", lambda: b"another")
    assert len(list(folder.iterdir())) == FILES_MAX
    assert recall_or_compile(b"built in", refuse) == b"first"
