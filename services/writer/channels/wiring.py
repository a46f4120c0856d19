"""Channel memory put together: what handles its messages, and what answers its questions."""

from dataclasses import dataclass
from typing import Any

from lorebus.contracts import subjects
from lorebus.contracts.channels import AskFlagged, EditMemory, RegisterChannel, SetChannel, ShowChannel
from lorebus.contracts.memory import AnyWrite, WriteChannelMessages, WriteChannelTurn
from sqlalchemy.ext.asyncio import AsyncEngine

from libs.common.administered_settings import AdministeredSettings
from libs.common.bus.answer import Answerer
from libs.common.bus.consume import Consumption
from libs.common.bus.relay import Relay
from libs.common.channel_budget import ChannelBudget
from libs.common.channels import ChannelDirectory
from libs.common.domain.lexical import count_documents, tokenize
from libs.common.embedding.models import background_texts
from libs.common.embedding.serving import Models
from libs.common.gate_client import GateClient
from libs.common.inbox import Claim, Inbox
from libs.common.language_model.answers import ModelAnswers
from libs.common.language_model.metered import MeteredModel
from services.writer.channels import editing, flagging
from services.writer.channels.ambient import Ambient
from services.writer.channels.directory import DirectoryDesk, refuse
from services.writer.channels.editing import Editing
from services.writer.channels.flagging import FlaggedDesk, Flagging
from services.writer.channels.ingest import FactFinding, Ingesting, Needs
from services.writer.channels.model.asking import ChannelModel
from services.writer.channels.notes import ChannelNotes
from services.writer.channels.store import ChannelStore
from services.writer.channels.turns import TurnDrafting, Turns
from services.writer.service import WriterService
from services.writer.settings import WriterSettings


@dataclass(frozen=True, slots=True)
class Parts:
    """What the writer has anyhow. `model` None: none is set."""

    relay: Relay
    engine: AsyncEngine
    inbox: Inbox
    gate: GateClient
    models: Models
    settings: AdministeredSettings
    model: MeteredModel | None


class Channels:
    """`answerers`: by subject."""

    def __init__(self, writer: WriterService, parts: Parts, settings: WriterSettings) -> None:
        directory = ChannelDirectory(parts.engine, parts.settings)
        budget = ChannelBudget(parts.engine, parts.settings)
        answers, tries_max = ModelAnswers(parts.engine), settings.writer_model_tries_max
        model = parts.model and ChannelModel(parts.model, answers, budget, settings.llm_tokens_max)
        words = count_documents(tokenize(text) for text in background_texts())
        self._writer = writer
        self._turns = Turns(writer, directory, TurnDrafting(model, words, tries_max), budget, parts.models)
        self._ingesting = Ingesting(
            writer,
            FactFinding(model, tries_max),
            Needs(
                directory=directory,
                store=ChannelStore(parts.engine, parts.inbox),
                gate=parts.gate,
                budget=budget,
                models=parts.models,
                settings=parts.settings,
            ),
        )
        notes = ChannelNotes(parts.engine)
        look = Flagging(notes, budget, parts.models, model, gate=parts.gate, settings=parts.settings)
        self._ambient = Ambient(parts.engine, parts.inbox, parts.relay, directory, notes=notes, flagging=look)
        self.answerers = _answerers(
            DirectoryDesk(directory),
            Editing(parts.engine, parts.gate, parts.models, directory, budget),
            FlaggedDesk(directory, notes, parts.gate),
        )

    def consumption(self) -> Consumption[Any]:
        """`channel.ambient`"""
        return self._ambient.consumption()

    async def write_told(self, message: AnyWrite, claim: Claim) -> None:
        """`memory.write` of every kind."""
        if isinstance(message, WriteChannelTurn):
            await self._turns.write(message, claim)
        elif isinstance(message, WriteChannelMessages):
            await self._ingesting.read(message, claim)
        else:
            await self._writer.write_told(message, claim)


def _answerers(desk: DirectoryDesk, edits: Editing, flagged: FlaggedDesk) -> dict[str, Answerer[Any, Any]]:
    def answerer(question: Any, answer: Any, say_no: Any = refuse) -> Answerer[Any, Any]:
        return Answerer(
            question=question,
            answer=answer,
            invalid=lambda reason: say_no("invalid_request", reason),
            broken=lambda: say_no("store", "the question could not be answered; ask again"),
        )

    return {
        subjects.CHANNEL_REGISTER: answerer(RegisterChannel, desk.register),
        subjects.CHANNEL_SET: answerer(SetChannel, desk.set),
        subjects.CHANNEL_SHOW: answerer(ShowChannel, desk.show),
        subjects.CHANNEL_EDIT: answerer(EditMemory, edits.edit, editing.refuse),
        subjects.CHANNEL_FLAGGED: answerer(AskFlagged, flagged.answer, flagging.refuse),
    }
