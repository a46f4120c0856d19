"""Every message of the bus, declared once: the public promise of Lorebus.

One module a conversation: `runs` (what happened), `evidence` (what is put ahead of it), `memory` (notes), `gate`
(screening), `recall` (asking), `events` (facts for taps),
`envelope` (what all durable messages share) and `subjects` (names on the bus).
"""
