"""The recall statement: one prepared text, exact, index-only, every condition inside it.

`scanned` reads the scope's vectors out of the covering index once (ADR 2); `covered` weighs the query's words by how
rare they are in the scope and the background together. An item passes when either says so; the order is
z(similarity) + 0.5 z(coverage for the item's length) over the whole scope, as `domain/relevance` defines it.
`+ 0` and the materialized scan keep any approximate index out of the plan; the lateral join fetches texts by key.
"""

FIND_SCOPE = "select id from scopes where tenant = $1 and kind = $2 and key = $3"

RECALL = """
with scanned as materialized (
    select item_id, terms_total, -(embedding <#> $4) + 0 as similarity
    from memory_vectors
    where scope_id = $2 and model_id = $3 and active and created_at >= $5
), size as materialized (
    select count(*) as items, nullif(avg(terms_total), 0)::float8 as terms_mean from scanned
), hits as materialized (
    select term, item_id from memory_terms where scope_id = $2 and term = any($6::text[])
), asked as (
    select term, known + coalesce(documents, 0) as documents
    from unnest($6::text[], $7::int[]) as background(term, known)
    left join (select term, count(*) as documents from hits group by term) as counted using (term)
), weighed as (
    select term, power(ln(1 + (items + $8::int - documents + 0.5) / (documents + 0.5)), 2)::float8 as weight
    from asked, size
), covered as (
    select item_id, sum(weight) / (select sum(weight) from weighed) as share
    from hits join weighed using (term) group by item_id
), measured as materialized (
    select item_id, similarity, coalesce(share, 0) as coverage,
        coalesce(share / sqrt(0.5 + 0.5 * terms_total / terms_mean), 0) as words
    from size, scanned left join covered using (item_id)
), spread as (
    select avg(similarity) as similarity_mean, nullif(stddev_pop(similarity), 0) as similarity_deviation,
        avg(words) as words_mean, nullif(stddev_pop(words), 0) as words_deviation
    from measured
), chosen as (
    select item_id, similarity, coverage,
        coalesce((similarity - similarity_mean) / similarity_deviation, 0)
        + 0.5 * coalesce((words - words_mean) / words_deviation, 0) as rank
    from measured, spread
    where similarity >= $9 or coverage >= $10
    order by rank desc, similarity desc, item_id
    limit $11
)
select id, summary, failure_type, confidence, created_at, run_id, similarity, coverage
from chosen cross join lateral (
    select id, summary, failure_type, confidence, created_at, run_id
    from memory_items where id = item_id and tenant = $1 and scope_id = $2 limit 1
) as item
order by rank desc, similarity desc, item_id
"""
