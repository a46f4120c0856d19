"""The recall statement: one prepared text, exact, every condition inside it.

`asked` weighs the query's words by how rare they are in the scope and the background together; `covered` adds up the
weights that each item carries, and knows whether its evidence holds an error line of the query; the scope's vectors
come out of the covering index in one scan (ADR 2). An item passes when its similarity or its coverage does, or with
that error line; the rank is that of `domain/relevance`, and between equals the higher origin tier comes first
(`float4`, since sums of the same weights in another order are equal). A bare `0.5` would be a numeric, whose logarithm
is slow, so all arithmetic is in `float8`. `offset 0` keeps the similarity from being computed again for every use,
`+ 0` keeps any approximate index out of the plan, and the lateral joins fetch by key the texts of what was chosen and
what a later pattern set found in them. $1 tenant, $2 scope and $3 model bind every table that is read. Without a vector
the same statement ranks by the words: a vector without direction is as near to all.
"""

FIND_SCOPE = "select id, team_id, org_id, items_active from scopes where tenant = $1 and kind = $2 and key = $3"

RECALL = """
with asked as materialized (
    select term, power(ln(1 + (items_active + $8::int - everywhere + half) / (everywhere + half)), 2) as weight
    from (select items_active from scopes where id = $2 and tenant = $1) as scope
    cross join unnest($6::text[], $7::int[]) as word(term, known)
    left join (
        select term, documents from scope_terms where scope_id = $2 and term = any($6::text[])
    ) as counted using (term)
    cross join lateral (
        select coalesce(documents, 0) as here, known + coalesce(documents, 0) as everywhere, 0.5::float8 as half
    ) as sums
    where items_active < $14 or here <= items_active * $15::float8
), covered as (
    select item_id, sum(weight) / (select sum(weight) from asked) as share, bool_or(is_same) as same_failure
    from (
        select item_id, weight, false as is_same from asked join memory_terms using (term) where scope_id = $2
        union all
        select item_id, 0, true from memory_fingerprints where scope_id = $2 and fingerprint = any($19::bigint[])
    ) as told
    group by item_id
), scanned as (
    select item_id, terms_total, origin_tier as tier, -(embedding <#> $4) + 0 as similarity
    from memory_vectors
    where scope_id = $2 and model_id = $3 and active and created_at >= $5 and origin_tier >= $18
    offset 0
), chosen as (
    select item_id, similarity, tier, coalesce(share, 0) as coverage, coalesce(same_failure, false) as same_failure,
        ((similarity - $9::float8) / $10::float8
        + $16::float8 * coalesce(share, 0) / sqrt(0.5::float8 + 0.5::float8 * terms_total / $17::float8)
        + case when same_failure then $20::float8 else 0 end)::float4 as rank
    from scanned left join covered using (item_id)
    where similarity >= $11 or share >= $12 or same_failure
    order by rank desc, similarity desc, tier desc, item_id
    limit $13
)
select id, summary, failure_type, confidence, created_at, run_id, pattern_set, similarity, coverage, tier,
    rank, same_failure, variant_group, finding_set, finding_patterns
from chosen cross join lateral (
    select id, summary, failure_type, confidence, created_at, run_id, pattern_set, variant_group
    from memory_items where id = item_id and tenant = $1 and scope_id = $2 limit 1
) as item
left join lateral (
    select pattern_set as finding_set, patterns as finding_patterns
    from gate_findings where gate_findings.item_id = id and tenant = $1
) as finding on true
order by rank desc, similarity desc, tier desc, item_id
"""

_SCANNED_END = "    offset 0\n"
_TAGGED = "        and item_id in (select item_id from entries where tags && $tags::text[])\n"


def tagged(statement: str, parameter: int) -> str:
    """The recall statement over those entries alone that carry any of the tags in this parameter."""
    return statement.replace(_SCANNED_END, _TAGGED.replace("$tags", f"${parameter}") + _SCANNED_END)


NEWEST = """
select id, summary, failure_type, confidence, created_at, run_id, memory_items.pattern_set,
    1::float8 as similarity, 0::float8 as coverage, origin_tier as tier,
    gate_findings.pattern_set as finding_set, patterns as finding_patterns
from memory_items left join gate_findings on gate_findings.item_id = id and gate_findings.tenant = $1
where memory_items.tenant = $1 and scope_id = $2
    and superseded_at is null and consolidated_at is null and held_at is null
    and (cardinality($3::text[]) = 0 or exists (select from entries where entries.item_id = id and tags && $3::text[]))
order by created_at desc, id
limit $4
"""
