#> no clause passes, and one sentence says what the target is.
serve MOCK mock
any bridgecheck run --url $MOCK --only 'describe/*' --only 'list/*'
says '^at fault: the target, which shows no sign of a bridge'
not grep -q '"verdict": "pass"' bridgecheck-report/report.json

#> [kill-matrix.md](kill-matrix.md) names for each clause the mutants that it kills, and counts mutants and correct variants. It
#> is generated from the golden sets
#>
#> # the kill matrix, from the golden sets: no mutant is run
exits 0 bridgecheck selftest --markdown
cmp said "$ROOT/docs/kill-matrix.md"

#> `bridgecheck checks explain ID` shows the same for one clause.
exits 0 bridgecheck checks explain list/names-unique
says 'proven by '
