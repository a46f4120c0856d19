"""Questions to a language model: one port, its hosted adapter, and what the calls may cost.

port      what a language model is, and what it answers
hosted    any hosted or local model through LiteLLM (extra `llm`)
retrying  how often and when a failed call is made again
prices    what tokens cost
choose    the model that the settings name, or none
ledger    what calls cost by account and period, with a cap
spending  what each tenant's calls cost today, with a cap
metered   the model as services use it: every call is counted
answers   what was answered for an event in work, so that nothing is billed twice
"""
