"""Facts for taps, `memory.event.<kind>`, by who tells them."""
