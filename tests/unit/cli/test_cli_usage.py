"""What the command line says before it talks to anybody."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.endpoints import EndpointsUnknown, find_nats_url
from cli.main import COMMANDS, app

runner = CliRunner(env={"LOREBUS_NATS_URL": None, "LOREBUS_DATA": None, "LOREBUS_TENANT": None, "COLUMNS": "200"})

HEAVY = ("faststream", "sqlalchemy", "wordllama", "numpy", "asyncpg", "structlog")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No `.lorebus` of the developer's is found."""
    monkeypatch.chdir(tmp_path)


def modules_after(code: str) -> set[str]:
    script = f"import sys\n{code}\nprint(*sys.modules)"
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=root)
    return set(done.stdout.split())


class TestHelp:
    def test_the_overview_lists_every_command(self):
        result = runner.invoke(app, ["--help"])
        assert result.exit_code == 0
        for name, line in COMMANDS.items():
            assert name in result.output
            assert line in result.output

    @pytest.mark.parametrize("name", ["publish", "recall", "explain", "tap"])
    def test_each_command_teaches_with_an_example(self, name: str):
        result = runner.invoke(app, [name, "--help"])
        assert result.exit_code == 0
        assert f"Example: lorebus {name}" in result.output
        assert "--json" in result.output

    def test_the_overview_imports_no_command(self):
        loaded = modules_after(
            "from cli.main import app\nfrom typer.testing import CliRunner\n"
            "assert CliRunner().invoke(app, ['--help']).exit_code == 0"
        )
        assert "cli.main" in loaded
        assert not loaded & {"nats", "pydantic", "cli.commands.publish", *HEAVY}

    def test_publishing_needs_the_client_alone(self):
        loaded = modules_after("import cli.commands.publish")
        assert "nats" in loaded
        assert not loaded & set(HEAVY)

    def test_the_version(self):
        result = runner.invoke(app, ["--version"])
        assert (result.exit_code, result.output.split()[0]) == (0, "lorebus")


class TestWrongUsage:
    @pytest.mark.parametrize(
        ("arguments", "says"),
        [
            (["publsh"], "Did you mean 'publish'?"),
            (["publish"], "Missing argument"),
            (["recall", "query"], "--repository"),
            (["recall", "-r", "a/b", "--limit", "11", "query"], "--limit"),
            (["recall", "-r", "a/b", "--agent", "nobody", "query"], "implementer"),
            (["tap", "--since", "soon"], "15m"),
            (["tap", "--since", "1h", "--all"], "exclude each other"),
            (["tap", "a.>"], "lesson_written"),
            (["explain"], "Missing argument"),
        ],
    )
    def test_ends_with_2_and_says_why(self, arguments: list[str], says: str):
        result = runner.invoke(app, arguments)
        assert result.exit_code == 2
        assert says in result.output

    @pytest.mark.parametrize(
        "arguments", [["publish", "x.json"], ["recall", "-r", "a/b", "q"], ["explain", "i"], ["tap"]]
    )
    def test_without_a_bus_each_command_says_how_to_get_one(self, arguments: list[str]):
        result = runner.invoke(app, arguments)
        assert result.exit_code == 1
        assert result.stdout == ""
        assert "lorebus up" in result.stderr

    def test_a_tenant_that_is_none_is_said_plainly(self):
        result = runner.invoke(app, ["tap", "--nats-url", "nats://127.0.0.1:1", "--tenant", "a.>"])
        assert result.exit_code == 1
        assert "a tenant is" in result.stderr


class TestWhereTheBusIs:
    def test_the_option_goes_before_the_file(self, tmp_path: Path):
        (tmp_path / "endpoints.json").write_text(json.dumps({"nats": "nats://file:1"}))
        assert find_nats_url("nats://option:1", tmp_path) == "nats://option:1"
        assert find_nats_url(None, tmp_path) == "nats://file:1"

    def test_the_environment_goes_before_the_file(self, tmp_path: Path):
        (tmp_path / "endpoints.json").write_text(json.dumps({"nats": "nats://127.0.0.1:1"}))
        result = runner.invoke(
            app,
            ["recall", "-r", "a/b", "q", "--data", str(tmp_path), "--json"],
            env={"LOREBUS_NATS_URL": "nats://127.0.0.1:2"},
        )
        assert "127.0.0.1:2" in result.stderr

    @pytest.mark.parametrize("content", ["", "{}", "[]", '{"nats": null}'])
    def test_a_file_without_an_address_is_none(self, tmp_path: Path, content: str):
        (tmp_path / "endpoints.json").write_text(content)
        with pytest.raises(EndpointsUnknown, match="lorebus up"):
            find_nats_url(None, tmp_path)


def test_a_degraded_answer_is_data_on_stdout_and_a_reason_on_stderr():
    result = runner.invoke(app, ["recall", "-r", "a/b", "q", "--json", "--nats-url", "nats://127.0.0.1:1"])
    assert result.exit_code == 1
    reply = json.loads(result.stdout)
    assert (reply["items"], reply["degraded"], reply["reason"]) == ([], True, "bus")
    assert "cannot be reached" in result.stderr
