"""Forgetting: `memory.delete` comes in, memories and every copy of them go, and the taps are told."""
