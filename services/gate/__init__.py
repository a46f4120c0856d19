"""gate: screens texts for prompt injection, before they are stored and before they are recalled.

consumes nothing · answers gate.screen · asks nobody · writes gate_patterns (built-in ones), audit, facts
Knows patterns and texts; never sees a memory table.
"""
