# The bridge expects its site at $SITE, where the run serves its mock; a mock that has ended leaves the address free.
serve SITE mock
kill $(cat SITE.pid)
serve BRIDGE bridge --drupal $SITE --discovery-ttl 1s --permission-ttl 1s --upstream-timeout 2s
run() { bridgecheck run --url $BRIDGE --mock-listen ${SITE#http://} "$@"; }

#> The run measures what it needs to know: how soon a change of the site shows
#> (`--discovery-ttl`), when the bridge gives a hanging site up (`--upstream-timeout`), how many tools a page has (`--page-size`);
#>
#> `--verbose` and the report have a table of what was given, measured and used. What you give and the bridge contradicts is a
#> warning; the checks go by what was measured.
#>
#> It sends at most 15 wrong passwords
#>
#> its accounts have names of their own (`check-k3x9qd-80001`).
exits 0 run --verbose --page-size 20 --only 'list/*' --only access/bad-credentials --only upstream/timeout
says '^MEASURED.*discovery_ttl: given' '^MEASURED.*upstream_timeout: given' '^MEASURED.*page_size: given 20, used 50' '^MEASURED.*wrong credentials: [0-9]+ of at most 15'
grep -q '"warning": "' bridgecheck-report/report.json
grep -q '"measured": ' bridgecheck-report/report.json
grep -qE 'user=check-[a-z0-9]+-[0-9]+ ' BRIDGE.log

#> A second run at the same time waits until the first has ended, whose mock is at the address.
(cd "$(mktemp -d)" && PATH="$OLDPWD:$PATH" && run --only 'list/*') >first.log 2>&1 &
soon curl -s -o /dev/null $SITE
exits 0 run --only describe/missing-name --report-dir second
wait $!
tail -n 1 first.log | grep -q '^partial: filters left'

#> A mock that you have started
#> yourself is in the way: end it.
serve MINE mock --listen ${SITE#http://}
exits 2 run --only describe/missing-name
says 'end it'

#> A bridge that stands before another site than the run's fails no clause: the run says so, exit code 3.
serve OTHER mock
serve AWAY bridge --drupal $OTHER
exits 3 bridgecheck run --url $AWAY --mock-listen ${SITE#http://} --only describe/missing-name
says 'another'

