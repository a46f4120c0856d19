"""consolidator: merges memories that say the same into one, and forgets what is to be forgotten.

consumes consolidation.requested, memory.delete · asks gate.screen, a language model if one is set · writes
consolidation_schedules, gate_verdicts, memory_items, memory_sources, memory_vectors, memory_terms, scope_terms, scopes,
model_answers, model_spend, model_holds, inbox, outbox, dead_letters, audit, tombstones, bus_erasures,
embedding_models (the first start); deletes evidence_parts and inbox_copies of what is forgotten
"""
