"""What `lorebus eval` measures.

shares      counts as shares, with their Wilson intervals, and percentiles
bars        what a figure must be at least or at most
corpus      labelled texts, read from JSON lines, and the groups they fall into
transforms  texts in disguise, and in other forms of the same text
judging     the verdict on each text, with the time it took
generality  how far the patterns speak for sources that nobody has seen
robustness  caught attacks in disguise, benign texts in another form
hostile     texts that try to cost time
costs       time by text and by size, and what the event loop feels of it
report      what was found, and the bars it is held to
gate        the whole evaluation of the gate
tables      the report for a person
recall      the evaluation of recall, a package of its own
"""
