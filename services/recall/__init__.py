"""recall: finds the few memories that fit a question, screened again and fenced as data.

answers recall.request, recall.search, recall.explain · asks gate.screen · reads the memory tables · writes
recall_log, outbox
"""
