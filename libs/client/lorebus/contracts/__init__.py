"""Every message of the bus, declared once: the public promise of Lorebus.

One module a conversation: `runs` (what happened), `gate` (screening), `recall` (asking),
`commands` (memory.write, memory.delete and their kin), `events` (facts for taps),
`envelope` (what all durable messages share) and `subjects` (names on the bus).
"""
