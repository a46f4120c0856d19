"""`/agentmemory`: what clients of an agentmemory server send, answered as its first-party provider reads it
(sessions spec 7)."""
