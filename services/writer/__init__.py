"""writer: turns a finished run into one lesson, and keeps notes and entries.

consumes run.finished, memory.write · answers memory.save, evidence.put · asks gate.screen, a language model if one is
set · writes scopes, gate_verdicts, gate_findings, origin_quarantines, audit (refusals), memory_items, entries, sessions
(when one was used), memory_vectors, memory_terms, scope_terms, embedding_models (the first start), evidence_parts,
model_answers, model_spend, model_holds, inbox, outbox, dead_letters
"""
