"""What the doctor says of what it finds."""

import json
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE, Popen

import pytest

from cli.checks import (
    CLAIM_SECONDS_MAX,
    MIGRATE,
    OUTBOX_SECONDS_MAX,
    START,
    WAITING_MAX,
    Addresses,
    Answer,
    BusFacts,
    Check,
    ConsumerState,
    Model,
    Place,
    Readiness,
    StoreFacts,
    is_healthy,
    judge_addresses,
    judge_answer,
    judge_bus,
    judge_claims,
    judge_consumer,
    judge_dead_letters,
    judge_model,
    judge_outbox,
    judge_pgvector,
    judge_postgres,
    judge_readiness,
    judge_store,
)
from cli.commands.doctor import render_json, render_verdict
from cli.footprint import MemoryBytes, Owner, find_owner, measure_memory
from cli.own_servers import RealServersNamed, refuse_real_servers

WRITTEN = ".lorebus/endpoints.json"
FOUND = Addresses(
    nats=Place("nats://127.0.0.1:4222", WRITTEN),
    database=Place("postgresql://127.0.0.1/lorebus", WRITTEN),
    http=Place("http://127.0.0.1:3111", WRITTEN),
    writer_pid=7,
)
BUS = BusFacts(
    version="2.15.1",
    consumers=[ConsumerState("writer", waiting=0, in_work=0, readers=1)],
    answers=[Answer("gate", 0.003), Answer("recall", 0.02)],
)
STORE = StoreFacts(
    version=180_006,
    pgvector="0.8.6",
    schema="0001",
    models=[Model("wordllama/l2_supercat_256", 256, "serving")],
)
PARTS = {"database": "ok", "bus": "ok", "streams": "ok"}


def states(checks: list[Check]) -> dict[str, str]:
    return {check.name: check.state for check in checks}


class TestAddresses:
    def test_says_where_they_are_from(self) -> None:
        assert judge_addresses(FOUND) == Check("addresses", "ok", f"from {WRITTEN}")

    def test_names_both_sources(self) -> None:
        found = replace(FOUND, nats=Place("nats://bus", "LOREBUS_NATS_URL"))
        assert judge_addresses(found).detail == f"from LOREBUS_NATS_URL and {WRITTEN}"

    @pytest.mark.parametrize(
        ("found", "detail"),
        [
            (replace(FOUND, nats=Place()), "no address of the bus is known"),
            (replace(FOUND, nats=Place(), database=Place()), "no address of the bus and the database is known"),
        ],
    )
    def test_fails_without(self, found: Addresses, detail: str) -> None:
        check = judge_addresses(found)
        assert (check.state, check.detail) == ("fail", detail)
        assert "lorebus up" in check.remedy

    def test_notices_what_a_killed_process_left(self) -> None:
        check = judge_addresses(replace(FOUND, writer_lives=False))
        assert check == Check(
            "addresses", "fail", f"{WRITTEN} was left by process 7, which is gone", "start `lorebus up` again"
        )


class TestBus:
    def test_all_is_well(self) -> None:
        checks = judge_bus(BUS, "nats://127.0.0.1:4222")
        assert states(checks) == dict.fromkeys(
            ("NATS", "streams", "queue of writer", "gate answers", "recall answers"), "ok"
        )

    def test_nothing_else_is_judged_when_it_is_away(self) -> None:
        [check] = judge_bus(BusFacts(fault="NoServersError"), "nats://127.0.0.1:4222")
        assert (check.state, check.detail) == ("fail", "nats://127.0.0.1:4222: NoServersError")

    def test_missing_streams_need_a_migration(self) -> None:
        checks = judge_bus(replace(BUS, missing=["stream RUNS", "consumer writer of RUNS"]), "")
        assert checks[1] == Check("streams", "fail", "missing: stream RUNS, consumer writer of RUNS", MIGRATE)

    @pytest.mark.parametrize(
        ("consumer", "state"),
        [
            (ConsumerState("writer", waiting=0, in_work=3, readers=0), "ok"),
            (ConsumerState("writer", waiting=WAITING_MAX, in_work=0, readers=1), "ok"),
            (ConsumerState("writer", waiting=WAITING_MAX + 1, in_work=0, readers=1), "warn"),
            (ConsumerState("writer", waiting=0, in_work=0, readers=0), "warn"),
            (ConsumerState("writer", waiting=1, in_work=0, readers=0), "fail"),
        ],
    )
    def test_a_queue_that_nobody_reads_is_an_error_once_something_waits(
        self, consumer: ConsumerState, state: str
    ) -> None:
        assert judge_consumer(consumer).state == state

    def test_a_silent_service_fails_and_a_slow_one_warns(self) -> None:
        assert judge_answer(Answer("gate", 0.1)) == Check("gate answers", "ok", "in 100 ms")
        assert judge_answer(Answer("gate", 0.9)).state == "warn"
        silent = judge_answer(Answer("gate", 2.0, "NoRespondersError"))
        assert silent == Check("gate answers", "fail", "NoRespondersError", f"no gate runs: {START}")


class TestStore:
    def test_all_is_well(self) -> None:
        checks = judge_store(STORE, "127.0.0.1:5432")
        assert set(states(checks).values()) == {"ok"}
        assert checks[0].detail == "18.6 at 127.0.0.1:5432"

    def test_nothing_else_is_judged_when_it_is_away(self) -> None:
        assert states(judge_store(StoreFacts(fault="ConnectionRefusedError"), "")) == {"Postgres": "fail"}

    def test_an_old_schema_hides_what_stands_on_it(self) -> None:
        checks = judge_store(replace(STORE, schema_fault="The schema is at nothing"), "")
        assert states(checks) == {"Postgres": "ok", "pgvector": "ok", "schema": "fail"}
        assert checks[-1].remedy == MIGRATE

    def test_old_servers(self) -> None:
        assert judge_postgres(150_004, "").state == "fail"
        assert judge_postgres(160_000, "").state == "ok"

    @pytest.mark.parametrize(
        ("version", "state"), [(None, "fail"), ("0.7.4", "fail"), ("0.8.0", "ok"), ("0.10.1", "ok"), ("1.0", "ok")]
    )
    def test_pgvector(self, version: str | None, state: str) -> None:
        assert judge_pgvector(version).state == state

    def test_a_model_must_serve(self) -> None:
        new = Model("openai/text-embedding-3-small", 1536, "building")
        assert judge_model([]).state == "fail"
        assert judge_model([new]).state == "fail"
        assert judge_model([*STORE.models, new]).detail == (
            "wordllama/l2_supercat_256, 256 dimensions, openai/text-embedding-3-small is being built"
        )

    def test_what_hangs(self) -> None:
        assert judge_claims(None).state == "ok"
        assert judge_claims(CLAIM_SECONDS_MAX).state == "ok"
        assert judge_claims(CLAIM_SECONDS_MAX + 1).state == "warn"
        assert judge_outbox(None).detail == "empty"
        assert judge_outbox(OUTBOX_SECONDS_MAX).state == "ok"
        assert judge_outbox(OUTBOX_SECONDS_MAX + 1).state == "fail"

    def test_dead_letters_are_to_be_looked_at(self) -> None:
        assert judge_dead_letters(0) == Check("dead letters", "ok", "none")
        assert judge_dead_letters(2).state == "warn"


class TestReadiness:
    def test_each_service_has_a_line(self) -> None:
        checks = judge_readiness(Readiness({"gate": PARTS, "writer": PARTS | {"bus": "TimeoutError"}}), "http://x")
        assert states(checks) == {"gate is ready": "ok", "writer is ready": "fail"}
        assert checks[1].detail == "bus: TimeoutError"

    def test_no_address_is_no_failure(self) -> None:
        assert [check.state for check in judge_readiness(Readiness(), "")] == ["warn"]

    def test_silence_is_one(self) -> None:
        [check] = judge_readiness(Readiness(fault="ConnectionRefusedError"), "http://127.0.0.1:3111")
        assert (check.state, check.detail) == ("fail", "http://127.0.0.1:3111/readyz: ConnectionRefusedError")


class TestReport:
    OK, WARN, FAIL = (Check("part", state, "detail", "remedy") for state in ("ok", "warn", "fail"))

    def test_a_warning_is_healthy(self) -> None:
        assert is_healthy([self.OK, self.WARN])
        assert not is_healthy([self.OK, self.FAIL])
        assert render_verdict([self.OK, self.WARN]) == "Every part works, 1 to be looked at."
        assert render_verdict([self.OK, self.FAIL]).startswith("1 of 2 checks failed")

    def test_json(self) -> None:
        memory = MemoryBytes(lorebus=3, postgres=2, nats=1)
        assert render_json([Check("part", "ok", "detail")], Owner(7, 4.5, lives=True), memory) == {
            "ok": True,
            "checks": [{"name": "part", "state": "ok", "detail": "detail", "remedy": None}],
            "start_seconds": 4.5,
            "memory_bytes": {"lorebus": 3, "postgres": 2, "nats": 1, "total": 6},
        }

    def test_json_where_nothing_runs(self) -> None:
        report = render_json([self.FAIL], Owner(7, 4.5, lives=False), None)
        assert (report["ok"], report["start_seconds"], report["memory_bytes"]) == (False, None, None)


class TestOwnServers:
    def test_samples_stay_away_from_real_servers(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.chdir(tmp_path)
        for name in ("LOREBUS_NATS_URL", "LOREBUS_DATABASE_URL"):
            monkeypatch.delenv(name, raising=False)
        refuse_real_servers("demo")
        monkeypatch.setenv("LOREBUS_DATABASE_URL", "postgresql://real/lorebus")
        with pytest.raises(RealServersNamed, match="not on those of LOREBUS_DATABASE_URL"):
            refuse_real_servers("demo")


class TestOwner:
    def test_no_state_file(self, tmp_path: Path) -> None:
        assert find_owner(tmp_path) == Owner()
        assert measure_memory(Owner()) is None

    @pytest.mark.parametrize("text", ["", "[]", '{"pid": "x"}', "{"])
    def test_a_broken_state_file(self, tmp_path: Path, text: str) -> None:
        (tmp_path / "state.json").write_text(text)
        assert find_owner(tmp_path) == Owner()

    def test_a_pid_of_another_program_is_not_ours(self, tmp_path: Path) -> None:
        with Popen(["cat"], stdin=PIPE) as other:
            (tmp_path / "state.json").write_text(json.dumps({"pid": other.pid, "start_seconds": 4}))
            owner = find_owner(tmp_path)
            assert (owner.pid, owner.start_seconds) == (other.pid, 4.0)
            assert owner.lives is False
