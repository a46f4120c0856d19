"""The evaluation of recall: what is asked of labelled memories, and how much of the evidence comes back.

data        memories, questions and what is relevant, read from JSON lines; in the order in which they came
answering   what one who answers gives: everything ranked, and what passes the default bars
in_process  answers by the ranking of `libs/common/domain`, over all memories of a scope
over_bus    answers by running services, as agents get them
figures     shares of the evidence, with bootstrap intervals
report      what was found, and the bars it is held to
evaluation  the whole of it
tables      the report for a person
"""
