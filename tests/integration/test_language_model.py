"""Questions to a language model through LiteLLM, to a local server that answers and fails as providers do."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import AsyncIterator
from decimal import Decimal
from importlib.util import find_spec
from typing import Any
from uuid import uuid4

import pytest
import sqlalchemy as sa
from chat_completions import TOKENS_IN, TOKENS_OUT, Provider, Reply, chat_completions
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.database import create_engine
from libs.common.errors import ModelRefused, ModelUnavailable, SetupIncomplete, SpendingRefused
from libs.common.language_model.answers import KeptAnswer, ModelAnswers, delete_answers
from libs.common.language_model.choose import open_language_model
from libs.common.language_model.metered import MeteredModel
from libs.common.language_model.port import ANSWER_CHARS_MAX, Completion, LanguageModel, Message, Question
from libs.common.language_model.prices import Prices, choose_prices, find_listed_prices
from libs.common.language_model.retrying import Retrying
from libs.common.language_model.spending import Spending
from libs.common.schema import model_holds, model_spend
from libs.common.settings import CommonSettings

pytestmark = pytest.mark.skipif(find_spec("litellm") is None, reason="the extra llm is not installed")

PRICED = {"llm_input_usd_per_million_tokens": 1.0, "llm_output_usd_per_million_tokens": 10.0}
COST = Decimal("0.002")
SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}}
BUSY = Reply(status=429, body=b'{"error": {"message": "SECRETANSWER"}}', headers={"Retry-After": "7"})
BROKEN = Reply(status=500, body=b'{"error": {"message": "SECRETANSWER"}}')


def question(**fields: Any) -> Question:
    known: dict[str, Any] = {"messages": [Message("user", "SECRETPROMPT")], "tokens_max": 50}
    return Question(**(known | fields))


class Waits(list[float]):
    """Waits that were asked for and took no time."""

    async def sleep(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "test")


@pytest.fixture
def waits() -> Waits:
    return Waits()


async def open_model(provider: Provider, waits: Waits | None = None, **settings: Any) -> LanguageModel:
    known = {"llm_model": "openai/test-model", "llm_api_base": provider.url, "llm_timeout_seconds": 20, **PRICED}
    sleep = (Waits() if waits is None else waits).sleep
    model = await open_language_model(CommonSettings(**(known | settings)), Retrying(sleep=sleep))
    assert model is not None
    return model


async def test_a_question_is_answered_with_what_it_cost() -> None:
    async with chat_completions(Reply("Plums.")) as provider:
        model = await open_model(provider)
        completion = await model.complete(question(temperature=0.0))
    assert completion == Completion("Plums.", "openai/test-model", COST, TOKENS_IN, TOKENS_OUT)
    [request] = provider.requests
    assert request == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "SECRETPROMPT"}],
        "max_tokens": 50,
        "temperature": 0.0,
    }


async def test_a_json_answer_is_asked_for_in_the_strictest_form_that_the_model_is_known_to_take() -> None:
    async with chat_completions(Reply("{}")) as provider:
        for name in ("openai/test-model", "openai/gpt-4o-mini"):
            model = await open_model(provider, llm_model=name)
            await model.complete(question(answer_schema=SCHEMA))
    plain, known = (request["response_format"] for request in provider.requests)
    assert plain == {"type": "json_object"}
    assert known == {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}


async def test_a_refused_format_is_left_out_once(waits: Waits) -> None:
    async with chat_completions(Reply(status=400, body=b"{}"), Reply("Plums.")) as provider:
        completion = await (await open_model(provider, waits)).complete(question(answer_schema=SCHEMA))
    assert completion.text == "Plums."
    assert ["response_format" in request for request in provider.requests] == [True, False]
    assert waits == []


@pytest.mark.parametrize(
    "reply",
    [BROKEN, Reply(status=503, body=b"{}"), Reply("x" * 1_000, is_cut=True)],
    ids=["500", "503", "connection cut"],
)
async def test_an_outage_that_passes_is_waited_for(reply: Reply, waits: Waits) -> None:
    async with chat_completions(reply, reply, Reply("Plums.")) as provider:
        completion = await (await open_model(provider, waits)).complete(question())
    assert completion.text == "Plums."
    assert (len(waits), 0 <= waits[0] <= 2, 0 <= waits[1] <= 4) == (2, True, True)


@pytest.mark.parametrize(
    "reply",
    [BROKEN, Reply(body=b"<html>SECRETANSWER</html>"), Reply(body=b"{}"), Reply(body=b"[1]")],
    ids=["500", "html", "empty object", "list"],
)
async def test_an_outage_that_lasts_is_one(reply: Reply, waits: Waits) -> None:
    async with chat_completions(reply) as provider:
        with pytest.raises(ModelUnavailable) as caught:
            await (await open_model(provider, waits)).complete(question())
    assert (len(provider.requests), len(waits)) == (3, 2)
    assert "SECRET" not in str(caught.value)


async def test_no_server_is_an_outage() -> None:
    async with chat_completions(Reply()) as provider:
        pass
    with pytest.raises(ModelUnavailable):
        await (await open_model(provider)).complete(question())


async def test_a_busy_provider_is_asked_again_when_it_says(waits: Waits) -> None:
    async with chat_completions(BUSY, Reply("Plums.")) as provider:
        completion = await (await open_model(provider, waits)).complete(question())
    assert (completion.text, waits) == ("Plums.", [7.0])


async def test_a_provider_that_is_busy_for_long_is_left_alone(waits: Waits) -> None:
    async with chat_completions(Reply(status=429, body=b"{}", headers={"Retry-After": "21"})) as provider:
        with pytest.raises(ModelUnavailable):
            await (await open_model(provider, waits)).complete(question())
    assert (len(provider.requests), waits) == (1, [])


async def test_a_silent_provider_is_asked_again() -> None:
    async with chat_completions(Reply(is_silent=True), Reply("Plums.")) as provider:
        completion = await (await open_model(provider, llm_timeout_seconds=4)).complete(question())
    assert (completion.text, len(provider.requests)) == ("Plums.", 2)


async def test_a_provider_that_stays_silent_is_an_outage_within_the_time_budget() -> None:
    async with chat_completions(Reply(is_silent=True)) as provider:
        model = await open_model(provider, llm_timeout_seconds=1)
        async with asyncio.timeout(5):
            with pytest.raises(ModelUnavailable):
                await model.complete(question())
    assert len(provider.requests) >= 1


@pytest.mark.parametrize(
    ("status", "remedy"),
    [(400, "questions this long"), (401, "OPENAI_API_KEY"), (402, "credit"), (403, "API key"), (404, "LOREBUS_LLM_")],
)
async def test_a_refusal_is_not_repeated_and_names_the_remedy(status: int, remedy: str, waits: Waits) -> None:
    async with chat_completions(Reply(status=status, body=b'{"error": {"message": "SECRETANSWER"}}')) as provider:
        with pytest.raises(ModelRefused, match=remedy) as caught:
            await (await open_model(provider, waits)).complete(question())
    assert (len(provider.requests), waits) == (1, [])
    assert "SECRET" not in str(caught.value)


async def test_a_missing_key_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    async with chat_completions(Reply("Plums.")) as provider:
        with pytest.raises(ModelRefused, match="API key"):
            await (await open_model(provider)).complete(question())
    assert provider.requests == []


async def test_an_unknown_provider_is_a_refusal() -> None:
    async with chat_completions(Reply("Plums.")) as provider:
        with pytest.raises(ModelRefused, match="LOREBUS_LLM_MODEL"):
            await (await open_model(provider, llm_model="nobody/test-model")).complete(question())


@pytest.mark.parametrize(
    "reply", [Reply(None), Reply(""), Reply(body=b'{"choices": []}')], ids=["null", "empty", "no choices"]
)
async def test_an_answer_without_text_is_empty(reply: Reply) -> None:
    async with chat_completions(reply) as provider:
        assert (await (await open_model(provider)).complete(question())).text == ""


async def test_an_endless_answer_is_cut() -> None:
    async with chat_completions(Reply("x" * (1 << 20))) as provider:
        completion = await (await open_model(provider)).complete(question())
    assert len(completion.text) == ANSWER_CHARS_MAX + 1
    assert completion.cost_usd == COST


async def test_an_answer_that_nobody_counted_has_no_cost() -> None:
    body = b'{"choices": [{"message": {"role": "assistant", "content": "Plums."}}]}'
    async with chat_completions(Reply(body=body)) as provider:
        completion = await (await open_model(provider)).complete(question())
    assert (completion.text, completion.cost_usd) == ("Plums.", None)


async def test_nothing_of_a_question_or_answer_is_logged(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    async with chat_completions(Reply("SECRETANSWER"), BROKEN, BUSY, Reply(status=400, body=BUSY.body)) as provider:
        model = await open_model(provider)
        await model.complete(question())
        with pytest.raises(ModelRefused):
            await model.complete(question())
    told = caplog.text + "".join(capfd.readouterr())
    assert "language_model.call_failed" in told
    assert "SECRET" not in told


async def test_without_a_model_none_is_opened_and_nothing_imported() -> None:
    assert await open_language_model(CommonSettings()) is None
    script = (
        "import asyncio, sys; from libs.common.language_model.choose import open_language_model;"
        "from libs.common.settings import CommonSettings; import services.writer.model.distiller;"
        "asyncio.run(open_language_model(CommonSettings())); sys.exit('litellm' in sys.modules)"
    )
    process = await asyncio.to_thread(subprocess.run, [sys.executable, "-c", script], check=False)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("settings", "remedy"),
    [
        ({"llm_model": "test-model"}, "Use <provider>/<model>"),
        ({"llm_spend_usd_per_day_max": 1, "llm_output_usd_per_million_tokens": None}, "Set both"),
        ({"llm_spend_usd_per_day_max": 1, **dict.fromkeys(PRICED)}, "no price of openai/test-model is known"),
    ],
    ids=["provider", "half a price", "cap without price"],
)
async def test_a_setting_that_cannot_work_is_refused_at_the_start(settings: dict[str, Any], remedy: str) -> None:
    with pytest.raises(SetupIncomplete, match=remedy):
        await open_model(Provider("http://127.0.0.1:9"), **settings)


def test_prices_come_from_the_list_unless_they_are_set() -> None:
    listed = {"gpt-x": {"input_cost_per_token": 1.5e-07, "output_cost_per_token": 6e-07}, "odd": {}}
    known = Prices(Decimal("1.5E-7"), Decimal("6E-7"))
    assert find_listed_prices(listed, "openai/gpt-x") == find_listed_prices(listed, "gpt-x") == known
    assert find_listed_prices(listed, "odd") is None
    assert choose_prices(CommonSettings(), known) == known
    assert choose_prices(CommonSettings(**PRICED), known) == Prices(Decimal("0.000001"), Decimal("0.00001"))


@pytest.fixture
async def engine(servers: CommonSettings) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(servers.database_url, "tests")
    yield engine
    await engine.dispose()


@pytest.fixture
def tenant() -> str:
    return f"t-{uuid4().hex[:12]}"


async def spent(engine: AsyncEngine, tenant: str) -> tuple[int, Decimal] | None:
    query = sa.select(model_spend.c.calls, model_spend.c.cost_usd).filter_by(tenant=tenant)
    async with engine.connect() as connection:
        row = (await connection.execute(query)).one_or_none()
    return None if row is None else (row.calls, row.cost_usd)


async def holds(engine: AsyncEngine, tenant: str) -> list[Decimal]:
    async with engine.connect() as connection:
        return list(await connection.scalars(sa.select(model_holds.c.usd).filter_by(tenant=tenant)))


async def test_every_answered_call_is_counted_and_no_other(engine: AsyncEngine, tenant: str) -> None:
    spending = Spending(engine, cap_usd=1, hold_seconds=60)
    async with chat_completions(Reply("useless"), Reply("useless"), Reply(status=401, body=b"{}"), BROKEN) as provider:
        metered = MeteredModel(await open_model(provider), spending)
        assert [(await metered.ask(tenant, question())).text for _ in range(2)] == ["useless"] * 2
        for error in (ModelRefused, ModelUnavailable):
            with pytest.raises(error):
                await metered.ask(tenant, question())
    assert await spent(engine, tenant) == (2, 2 * COST)
    assert await holds(engine, tenant) == []


async def test_at_the_cap_no_call_is_made_and_the_refusal_says_what_to_do(engine: AsyncEngine, tenant: str) -> None:
    spending = Spending(engine, cap_usd=0.003, hold_seconds=60)
    async with chat_completions(Reply("Plums.")) as provider:
        metered = MeteredModel(await open_model(provider), spending)
        await metered.ask(tenant, question())
        await spending.check(tenant)
        await metered.ask(tenant, question())
        with pytest.raises(SpendingRefused) as caught:
            await metered.ask(tenant, question())
        with pytest.raises(SpendingRefused):
            await spending.check(tenant)
        await metered.ask(f"{tenant}-other", question())
    assert len(provider.requests) == 3
    told = str(caught.value)
    assert [part for part in ("0.0040", "0.003", "00:00 UTC", "LOREBUS_LLM_SPEND") if part not in told] == []


async def test_calls_in_flight_count_against_the_cap(engine: AsyncEngine, tenant: str) -> None:
    spending = Spending(engine, cap_usd=1, hold_seconds=60)
    taken = await asyncio.gather(*(spending.hold(tenant, Decimal("0.4")) for _ in range(6)), return_exceptions=True)
    refused = [hold for hold in taken if isinstance(hold, BaseException)]
    assert [type(refusal) for refusal in refused] == [SpendingRefused] * 3
    [first, *_] = [hold for hold in taken if not isinstance(hold, BaseException)]
    await spending.settle(first, Decimal("0.1"))
    assert await holds(engine, tenant) == [Decimal("0.4")] * 2
    assert await spent(engine, tenant) == (1, Decimal("0.1"))
    await spending.check(tenant)


async def test_the_hold_of_a_call_that_never_came_back_runs_out(engine: AsyncEngine, tenant: str) -> None:
    await Spending(engine, cap_usd=1, hold_seconds=0).hold(tenant, Decimal(5))
    await Spending(engine, cap_usd=1, hold_seconds=60).hold(tenant, Decimal("0.5"))
    assert await holds(engine, tenant) == [Decimal("0.5")]


async def test_a_cost_that_nobody_told_counts_as_it_was_estimated(engine: AsyncEngine, tenant: str) -> None:
    spending = Spending(engine, cap_usd=1, hold_seconds=60)
    await spending.settle(await spending.hold(tenant, Decimal("0.25")), None)
    assert await spent(engine, tenant) == (1, Decimal("0.25"))


async def test_without_a_cap_calls_are_counted_all_the_same(engine: AsyncEngine, tenant: str) -> None:
    spending = Spending(engine, cap_usd=None, hold_seconds=60)
    await spending.check(tenant)
    await spending.settle(await spending.hold(tenant, None), None)
    await spending.settle(await spending.hold(tenant, None), Decimal(2))
    assert await spent(engine, tenant) == (2, Decimal(2))


async def test_the_day_before_does_not_count(engine: AsyncEngine, tenant: str) -> None:
    yesterday = sa.text("(timezone('UTC', now()) - interval '1 day')::date")
    async with engine.begin() as connection:
        row = {"tenant": tenant, "day": yesterday, "calls": 1, "cost_usd": 5}
        await connection.execute(sa.insert(model_spend).values(row))
    await Spending(engine, cap_usd=1, hold_seconds=60).check(tenant)


async def test_an_answer_is_kept_once_and_goes_with_its_event(engine: AsyncEngine, tenant: str) -> None:
    answers = ModelAnswers(engine)
    first = KeptAnswer({"lesson": {"summary": "Plums."}}, "openai/test-model", Decimal("0.5"))
    assert await answers.find_answer(tenant, "e1", "lesson") is None
    await answers.keep_answer(tenant, "e1", "lesson", first)
    await answers.keep_answer(tenant, "e1", "lesson", KeptAnswer({}, "other/model", None))
    assert await answers.find_answer(tenant, "e1", "lesson") == first
    assert await answers.find_answer(tenant, "e1", "merge") is None
    assert await answers.find_answer(f"{tenant}-other", "e1", "lesson") is None
    async with engine.begin() as connection:
        await delete_answers(connection, tenant, "e1")
    assert await answers.find_answer(tenant, "e1", "lesson") is None
