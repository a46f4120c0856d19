"""Real sessions against what a reader found in them; the expectations below `expected/` were checked by hand."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from lorebus.contracts.runs import RunFinished
from transcript_builders import digest_of

from libs.common.domain.masking import mask_text
from services.writer.transcripts.digest import Digest

EXPECTED = sorted((Path(__file__).parent / "expected").glob("*.json"))
CLOSED = "2026-01-02T03:04:05Z"


def load_run(file: Path) -> RunFinished:
    """The run, its transcripts closed and carried inline."""
    fields = json.loads(file.read_text("utf-8"))
    for transcript in fields["transcripts"]:
        transcript["closed_at"] = CLOSED
        for part in transcript["parts"]:
            part["data"] = base64.b64encode((file.parent / part["path"]).read_bytes()).decode()
    return RunFinished.model_validate(fields)


def as_expected(digest: Digest) -> dict[str, list[str]]:
    kinds = ("failed_tools", "failed_commands", "churned_files", "final_notes")
    return {kind: [entry.text for entry in getattr(digest, kind)] for kind in kinds}


@pytest.mark.parametrize("file", EXPECTED, ids=lambda file: file.stem)
def test_a_real_session_gives_what_a_reader_found(file: Path, shared: Path):
    expected: dict[str, Any] = json.loads(file.read_text("utf-8"))
    run = load_run(shared / "real-runs" / "runs" / expected["run"])
    (transcript,) = (one for one in run.transcripts if one.id == expected["transcript"])
    digest = digest_of(transcript, clean=mask_text)
    assert as_expected(digest) == expected["digest"]
    assert digest.transcript_ids == (expected["transcript"],)


def test_all_real_transcripts_have_an_expectation(shared: Path):
    runs = [json.loads(path.read_text("utf-8")) for path in (shared / "real-runs" / "runs").glob("*.json")]
    ids = {transcript["id"] for run in runs for transcript in run.get("transcripts") or []}
    assert ids == {json.loads(file.read_text("utf-8"))["transcript"] for file in EXPECTED}


def test_of_the_real_session_that_was_retried_the_last_try_counts(shared: Path):
    run = load_run(shared / "real-runs" / "runs" / "marot__spotter--spotter-push-no-upstream--01.json")
    assert [one.attempt for one in run.transcripts] == [1, 2]
    assert digest_of(*run.transcripts).transcript_ids == (run.transcripts[1].id,)


def test_no_credential_of_a_session_reaches_its_digest(shared: Path):
    folder = shared / "real-runs" / "fake-credentials"
    secrets = json.loads((folder / "fake-credentials.json").read_text("utf-8"))
    for file in sorted((folder / "runs").glob("*.json")):
        run = load_run(file)
        digest = digest_of(*run.transcripts, clean=mask_text)
        told = "\n".join(digest.entries().values())
        assert len(digest.failed_commands) == 2
        assert [secret for secret in secrets[run.run_id]["must_never_appear"] if secret in told] == []
