"""What `lorebus bench` measures.

runs     synthetic finished runs and the questions that fit them, from a seed
filling  stores them, over the bus like any other run
timing   times several parts in turn, so that a busy machine slows all of them alike
parts    what a recall consists of, each part callable alone
recall   the benchmark of recall
consolidation  finding what is alike, against a self join in SQL
"""
