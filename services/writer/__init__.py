"""writer: turns a finished run into one lesson.

consumes run.finished · asks gate.screen · writes scopes, gate_verdicts, memory_items, memory_vectors,
memory_terms, inbox, outbox, dead_letters
"""
