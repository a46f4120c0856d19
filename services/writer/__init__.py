"""writer: turns a finished run into one lesson, and keeps notes, entries and what chat channels tell.

consumes run.finished, memory.write, channel.ambient · answers memory.save, evidence.put, channel.register, .set,
.show, .edit, .flagged · asks gate.screen, a language model if one is
set · writes scopes, gate_verdicts, gate_findings, origin_quarantines, audit (refusals), memory_items, entries, sessions
(when one was used), memory_vectors, memory_terms, scope_terms, embedding_models (the first start), evidence_parts,
model_answers, model_spend, model_holds, inbox, outbox, dead_letters
"""
