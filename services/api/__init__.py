"""api: memory over HTTP, for hosts that speak no NATS.

answers HTTP: /agentmemory/* (drop-in backend), /api/agent-memory/* (REST surface), /healthz, /readyz, /openapi.json ·
asks memory.save, recall.request · sends memory.delete · reads the memory tables · writes sessions, works, outbox
"""
