"""`/api/agent-memory`: the REST surface for logged-in users (sessions spec 4)."""
