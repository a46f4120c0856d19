"""Memory for pipelines: what earlier runs learned at the start, a digest of this one at the end (spec/sessions 3).

Any pipeline in Python can take part. It asks each modifier at building time whether it can be left out, puts the steps
of the others first and last, calls `execute` for them, and `rollback` when a run fails or is cancelled:

    hooks = collect_hooks([MemoryModifier(memory)], Build("standard-pipeline", {MODIFIER_ID: settings}))
    pipeline = Pipeline([Step("write", write)], hooks)
    await pipeline.run(RunContext(Work("w1", "shop", "Shop"), prompt="..."))

`Pipeline` does that for plain async functions; examples/pipelines show it, and the same by hand for LangGraph.
"""
