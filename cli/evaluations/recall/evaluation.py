"""The evaluation of recall: each set told in process, by its arms alone, and to running services."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from cli.evaluations.judging import Track
from cli.evaluations.recall.answering import Answer, Answerer
from cli.evaluations.recall.data import EvalSet, Question, Step
from cli.evaluations.recall.in_process import InProcess
from cli.evaluations.recall.over_bus import OverBus
from cli.evaluations.recall.report import DEPTHS, Outcome, RecallReport, SetReport
from cli.sample_machine import sample_machine
from libs.common.domain.lexical import count_documents, tokenize
from libs.common.embedding.choose import create_embedder
from libs.common.embedding.models import background_texts
from libs.common.embedding.port import Embedder


async def evaluate_recall(sets: Sequence[EvalSet], setting: str, track: Track, *, is_served: bool) -> RecallReport:
    """`setting` names the embedder, as LOREBUS_EMBEDDER does."""
    embedder = create_embedder(setting)
    if not is_served:
        return RecallReport(embedder.name, is_served, [await _report(one, embedder, None, track) for one in sets])
    async with _services(setting, embedder) as services:
        return RecallReport(embedder.name, is_served, [await _report(one, embedder, services, track) for one in sets])


@asynccontextmanager
async def _services(setting: str, embedder: Embedder) -> AsyncGenerator[OverBus]:
    async with (
        sample_machine("eval recall", ("gate", "recall"), embedder=setting, settings_cache_seconds=0) as machine,
        OverBus.open(machine, embedder) as services,
    ):
        yield services


async def _report(eval_set: EvalSet, embedder: Embedder, services: OverBus | None, track: Track) -> SetReport:
    texts = background_texts()
    background, words = await embedder.embed(texts), count_documents(map(tokenize, texts))
    name = eval_set.form.name

    async def ask_arm(arm: InProcess, named: str) -> list[Outcome]:
        return await ask_all(eval_set, arm, track, f"{name}: {named}")

    in_process = await ask_arm(InProcess(embedder, background, words), "in process")
    vector = await ask_arm(InProcess(embedder, background, words, "vector"), "the vector alone")
    lexical = await ask_arm(InProcess(embedder, background, words, "words"), "the words alone")
    served = await ask_all(eval_set, services, track, f"{name}: over the bus") if services else in_process
    return SetReport(eval_set.form, len(eval_set.items), served, in_process, vector, lexical)


async def ask_all(eval_set: EvalSet, answerer: Answerer, track: Track, words: str) -> list[Outcome]:
    """In the order of the steps, which is the same for whoever answers."""
    outcomes: list[Outcome] = []
    for step, question in track(_flatten(list(eval_set.steps())), words):
        if step is not None:
            await answerer.store(step.memories)
        outcomes.append(await _ask(question, answerer))
    return outcomes


def _flatten(steps: Sequence[Step]) -> list[tuple[Step | None, Question]]:
    """Every question; the first of a step with the step, whose memories come before it."""
    return [(step if place == 0 else None, question) for step in steps for place, question in enumerate(step.questions)]


async def _ask(question: Question, answerer: Answerer) -> Outcome:
    answer = await answerer.answer(question.text, question.repository)
    elsewhere = await answerer.answer(question.text, question.elsewhere) if question.elsewhere else None
    return judge_answer(question, answer, elsewhere)


def judge_answer(question: Question, answer: Answer, elsewhere: Answer | None) -> Outcome:
    return Outcome(
        reached={depth: question.share_in(answer.ranked[:depth]) for depth in DEPTHS},
        is_empty=not answer.given,
        has_evidence=question.share_in(answer.given) > 0,
        is_silent_elsewhere=None if elsewhere is None else not elsewhere.given,
    )
