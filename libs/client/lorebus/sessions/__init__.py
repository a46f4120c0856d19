"""Sessions of an agent memory: one unit of work reads and writes under one session id (spec/sessions).

    facade = MemoryFacade()
    async with MemorySession(facade.bind(Caller("u1")), project_id="shop") as session:
        prompt += (await session.recall("currency of invoices")).text
        await session.save("Prices are stored in cents.", tags=["pricing"])

From the host inwards: `AgentRun` and `MemorySession` never raise for their memory's sake; `MemoryFacade` chooses the
provider and raises typed errors; a `MemoryProvider` speaks to a backend, ours over HTTP in the agentmemory format.
"""
