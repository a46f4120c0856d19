"""writer: turns a finished run into one lesson.

consumes run.finished · asks gate.screen · writes scopes, gate_verdicts, memory_items, memory_vectors,
memory_terms, scope_terms, embedding_models (the first start), inbox, outbox, dead_letters
"""
