"""What of a session becomes an entry (spec 4.6), shown with Claude Code's format."""

from lorebus.contracts.runs import Transcript
from transcript_builders import Claude, digest_of, lines, transcript

from services.writer.transcripts.digest import Digest, Entry

CHARS_MAX = 4_000


def texts(entries: tuple[Entry, ...]) -> list[str]:
    return [entry.text for entry in entries]


def session(*contents: bytes) -> Transcript:
    return transcript(b"".join(contents))


def test_a_tool_result_marked_as_error_is_a_failed_tool():
    read = Claude().use("Read", "File does not exist.", is_error=True, file_path="a.py")
    assert texts(digest_of(session(read)).failed_tools) == ["Read a.py: File does not exist."]


def test_a_failed_tool_without_a_file_shows_the_head_of_its_input():
    search = Claude().use("WebSearch", "no network", is_error=True, query="x" * 5_000)
    (entry,) = digest_of(session(search)).failed_tools
    assert entry.text.startswith('WebSearch {"query": "xxx')
    assert entry.text.endswith("…: no network")


def test_a_tool_that_nobody_declared_is_reported_only_when_marked():
    claude = Claude()
    quiet, marked = claude.use("Odd", "Error: no"), claude.use("Odd", "Error: no", is_error=True, a=1)
    assert texts(digest_of(session(quiet, marked)).failed_tools) == ['Odd {"a": 1}: Error: no']


def test_a_failed_shell_call_is_listed_only_as_a_command():
    digest = digest_of(session(Claude().run("make", "hook says no", is_error=True)))
    assert (texts(digest.failed_commands), digest.failed_tools) == (["make\n→ hook says no"], ())


def test_an_exit_code_on_the_first_line_tells_a_failure():
    assert texts(digest_of(session(Claude().run("make", "Exit code 2\nno rule"))).failed_commands) == [
        "make\n→ Exit code 2\nno rule"
    ]


def test_an_exit_code_anywhere_else_does_not_count():
    claude = Claude()
    quiet = [
        claude.run("a", "ok\nExit code 1"),
        claude.run("b", "Exit code 1 was seen"),
        claude.run("c", "Exit code 0"),
    ]
    assert digest_of(session(*quiet)).is_empty


def test_a_command_keeps_its_head_and_its_output_the_tail():
    (entry,) = digest_of(
        session(Claude().run("head " + "c" * 3_000, "o" * 3_000 + " end", is_error=True))
    ).failed_commands
    assert entry.text.startswith("head ccc")
    assert entry.text.endswith("ooo end")
    assert "c…\n→ …o" in entry.text
    assert len(entry.text) == CHARS_MAX // 4


def test_an_error_keeps_its_head():
    (entry,) = digest_of(
        session(Claude().use("Read", "first " + "x" * 3_000, is_error=True, file_path="a"))
    ).failed_tools
    assert entry.text.startswith("Read a: first xxx")
    assert entry.text.endswith("x…")


def test_a_file_written_three_times_is_churned():
    claude = Claude()
    often = [claude.use(tool, "ok", file_path="a.py") for tool in ("Write", "Edit", "MultiEdit", "Edit")]
    twice = [claude.use("Edit", "ok", file_path="b.py") for _ in range(2)]
    looked_at = [claude.use("Read", "ok", file_path="c.py") for _ in range(5)]
    assert texts(digest_of(session(*often, *twice, *looked_at)).churned_files) == ["a.py: written 4 times"]


def test_a_write_that_failed_wrote_nothing():
    claude = Claude()
    writes = [claude.use("Edit", "ok", file_path="a.py") for _ in range(2)]
    assert digest_of(session(*writes, claude.use("Edit", "no", is_error=True, file_path="a.py"))).churned_files == ()


def test_a_file_counts_over_all_sessions_of_the_run():
    def edit_twice(name: str, day: int) -> Transcript:
        claude = Claude()
        writes = b"".join(claude.use("Edit", "ok", file_path="a.py") for _ in range(2))
        return transcript(writes, id=name, closed_at=f"2026-01-0{day}T00:00:00Z")

    digest = digest_of(edit_twice("one", 1), edit_twice("two", 2))
    assert digest.churned_files == (Entry("a.py: written 4 times", ("one", "two")),)


def test_the_last_assistant_text_is_the_final_note():
    claude = Claude()
    digest = digest_of(session(claude.say("first"), claude.say(" last \n"), claude.say("  "), claude.run("ls", "ok")))
    assert texts(digest.final_notes) == ["last"]


def test_a_sub_agent_does_not_speak_for_the_session():
    claude = Claude()
    assert texts(digest_of(session(claude.say("mine"), claude.say("its", isSidechain=True))).final_notes) == ["mine"]


def test_a_long_final_note_keeps_its_head():
    (entry,) = digest_of(session(Claude().say("done " + "x" * 3_000))).final_notes
    assert entry.text.startswith("done xxx")
    assert len(entry.text) == CHARS_MAX // 4


def test_identical_entries_are_listed_once():
    claude = Claude()
    failed = [claude.run("make", "no", is_error=True) for _ in range(3)]
    assert texts(digest_of(session(*failed, claude.run("x", "y", is_error=True))).failed_commands) == [
        "make\n→ no",
        "x\n→ y",
    ]


def test_entries_that_are_alike_once_cut_leave_their_room_to_the_others():
    claude = Claude()
    alike = [claude.run("make", f"{n}" + "x" * 3_000, is_error=True) for n in range(4)]
    digest = digest_of(session(*alike, claude.run("other", "y" * 3_000, is_error=True)))
    assert [len(text) for text in texts(digest.failed_commands)] == [500, 500]


def test_the_latest_five_of_a_kind_are_kept():
    claude = Claude()
    failed = [claude.run(f"step {n}", "no", is_error=True) for n in (1, 2, 3, 4, 5, 6, 7, 4)]
    assert texts(digest_of(session(*failed)).failed_commands) == [f"step {n}\n→ no" for n in (3, 5, 6, 7, 4)]


def test_the_kinds_share_the_characters_equally():
    claude = Claude()
    commands = [claude.run(f"{n} " + "c" * 900, "o" * 900 + f" {n}", is_error=True) for n in range(9)]
    tools = [claude.use("Read", f"{n}" + "e" * 900, is_error=True, file_path="f" * 300) for n in range(9)]
    writes = [claude.use("Write", "ok", file_path="p" * 300 + f"/{n % 6}.py") for n in range(30)]
    digest = digest_of(session(*commands, *tools, *writes, claude.say("n" * 9_000)))
    kinds = (digest.failed_tools, digest.failed_commands, digest.churned_files, digest.final_notes)
    assert [len(kind) for kind in kinds] == [5, 5, 5, 1]
    assert max(sum(map(len, texts(kind))) for kind in kinds) <= CHARS_MAX // 4
    assert digest.churned_files[-1].text.endswith("ppp/5.py: written 5 times")


def test_what_a_short_entry_leaves_goes_to_the_long_ones():
    claude = Claude()
    digest = digest_of(session(claude.run("a", "b", is_error=True), claude.run("c", "o" * 3_000, is_error=True)))
    assert [len(text) for text in texts(digest.failed_commands)] == [len("a\n→ b"), 1_000 - len("a\n→ b")]


def test_texts_are_cleaned_before_they_are_cut():
    def clean(text: str) -> str:
        return text.replace("SECRET" * 300, "[masked]")

    claude = Claude()
    secret = "SECRET" * 300
    contents = [claude.run(secret, f"x{secret}", is_error=True), claude.say(f"note {secret}")]
    contents += [claude.use("Read", secret, is_error=True, file_path=secret)]
    contents += [claude.use("Write", "ok", file_path=f"{secret}/{n // 3}") for n in range(3)]
    digest = digest_of(session(*contents), clean=clean)
    assert list(digest.entries().values()) == [
        "Read [masked]: [masked]",
        "[masked]\n→ x[masked]",
        "[masked]/0: written 3 times",
        "note [masked]",
    ]


def test_a_call_that_is_replayed_counts_once():
    claude = Claude()
    once = claude.use("Edit", "ok", file_path="a.py")
    assert digest_of(session(once * 4)).churned_files == ()


def test_a_result_nobody_asked_for_is_ignored():
    answer = {"type": "tool_result", "tool_use_id": "gone", "content": "no", "is_error": True}
    assert digest_of(session(lines({"type": "user", "message": {"content": [answer]}}))).is_empty


def two_sessions() -> Digest:
    claude = Claude()
    first = claude.run("make", "no", is_error=True) + claude.run("only", "here", is_error=True)
    second = claude.run("make", "no", is_error=True) + claude.say("done")
    return digest_of(
        transcript(first, id="one", closed_at="2026-01-01T00:00:00Z"),
        transcript(second, id="two", closed_at="2026-01-02T00:00:00Z"),
        transcript(claude.run("ls", "ok"), id="three", closed_at="2026-01-03T00:00:00Z"),
    )


def test_only_transcripts_that_contributed_are_cited():
    digest = two_sessions()
    assert digest.failed_commands == (Entry("only\n→ here", ("one",)), Entry("make\n→ no", ("one", "two")))
    assert digest.transcript_ids == ("one", "two")


def test_dropping_the_last_entry_of_a_transcript_drops_its_citation():
    digest = two_sessions()
    ids = {text: entry_id for entry_id, text in digest.entries().items()}
    kept = digest.without({ids["make\n→ no"], ids["done"]})
    assert (kept.transcript_ids, list(kept.entries().values())) == (("one",), ["only\n→ here"])
    assert kept.without(kept.entries()).is_empty


def small_digest() -> Digest:
    return Digest(
        failed_tools=(Entry("Read: no such file", ("one",)),),
        failed_commands=(Entry("make\n→ Error 2", ("one", "two")),),
        final_notes=(Entry("Done.", ("three",)),),
    )


def test_the_model_reads_the_kinds_that_hold_something():
    assert small_digest().render() == {
        "failedTools": ["Read: no such file"],
        "failedCommands": ["make\n→ Error 2"],
        "finalNotes": ["Done."],
    }


def test_a_lesson_cites_the_transcripts_and_how_much_they_gave():
    assert small_digest().citation() == {
        "ids": ["one", "two", "three"],
        "failed_tools": 1,
        "failed_commands": 1,
        "churned_files": 0,
    }


def test_the_transcripts_of_some_entries_can_be_named():
    assert small_digest().only({"failed_commands-0"}).transcript_ids == ("one", "two")
