#> the reference bridge, everything in one process
#>
#> The last line is the outcome, `conformant`, `partial` or `not conformant`
#>
#> The report directory
#> (`bridgecheck-report`, or `--report-dir`) holds `report.html` for people
exits 0 bridgecheck run --only describe/missing-name
test "$(tail -n 1 said)" = 'partial: filters left clauses out'
test -s bridgecheck-report/report.html
exits 0 bridgecheck run --only describe/missing-name --report-dir elsewhere
test -s elsewhere/report.html
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size
tail -n 1 said | grep -q '^not conformant'

#> a small bridge that conforms, to start from
exits 0 bridgecheck init node new-bridge
test -s new-bridge/bridge.js
exits 2 bridgecheck init node new-bridge

#> `bridgecheck checks explain ID` shows why a clause matters and how to fix a bridge that breaks it;
#> `bridgecheck checks --html -o contract.html` writes [the contract](docs/contract.md) as one page.
exits 0 bridgecheck checks explain describe/missing-name
says 'why' 'fix'
exits 0 bridgecheck checks --html -o contract.html
grep -q 'describe/missing-name' contract.html

#> (`bridgecheck mock --with-module v1.3 --site transcripts` serves it)
serve MODULE mock --with-module v1.3 --site transcripts
gets 200 -H 'Content-Type: application/json' -c jar "$MODULE/user/login?_format=json" -d '{"name":"agent","pass":"agent-pass"}'
gets 200 -b jar $MODULE/mcp/tools/list
