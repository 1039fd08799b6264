one() { bridgecheck run --only describe/missing-name "$@"; }
cat >bridge.sh <<'END'
#!/bin/bash
env >seen.txt
echo printed by the bridge
exec bridgecheck bridge
END
chmod +x bridge.sh

#> | `DRUPAL_URL` | the site that your bridge serves: a mock Drupal that bridgecheck has started |
#>
#> | `BRIDGE_DISCOVERY_TTL`, `BRIDGE_PERMISSION_TTL` | 1: how many seconds the site's tools and a caller's permissions may be cached; `--discovery-ttl 250ms` makes it 0.25
#>
#> | `BRIDGE_UPSTREAM_TIMEOUT` | 2, or `--upstream-timeout`: how many seconds to wait for the site |
#>
#> | `BRIDGE_PAGE_SIZE` | 50, or `--page-size` |
#>
#> | `BRIDGE_AUTH_ADDRESS_FAILURES`, `BRIDGE_AUTH_TOTAL_FAILURES` | 100000:
#>
#> | `DRUPAL_USER`, `DRUPAL_PASSWORD` | an account with every permission, for bridges that need one |
#>
#> Of your own environment the bridge gets `PATH`, `HOME`, `LANG`, `TMPDIR` and the variables that `--env NAME` names
#> (`env: [NAME]` in a configuration), nothing else.
#>
#> What the bridge prints goes to
#> `bridgecheck-report/bridge.log`
MINE=passed OTHER=hidden exits 0 one --exec ./bridge.sh --env MINE
for line in 'DRUPAL_URL=http://127\.0\.0\.1:[0-9]*' 'BRIDGE_LISTEN=127\.0\.0\.1:[0-9]*' BRIDGE_DISCOVERY_TTL=1 BRIDGE_PERMISSION_TTL=1 BRIDGE_UPSTREAM_TIMEOUT=2 BRIDGE_PAGE_SIZE=50 \
	BRIDGE_AUTH_ADDRESS_FAILURES=100000 BRIDGE_AUTH_TOTAL_FAILURES=100000 'DRUPAL_USER=.*' 'DRUPAL_PASSWORD=.*' MINE=passed; do
	grep -qx "$line" seen.txt || { echo "no $line in"; cat seen.txt; false; }
done
not grep -q 'OTHER=\|OAUTH\|COLUMNS' seen.txt
grep -q 'printed by the bridge' bridgecheck-report/bridge.log
exits 0 one --exec ./bridge.sh --discovery-ttl 250ms --upstream-timeout 3s --page-size 20
grep -qx BRIDGE_DISCOVERY_TTL=0.25 seen.txt
grep -qx BRIDGE_UPSTREAM_TIMEOUT=3 seen.txt
grep -qx BRIDGE_PAGE_SIZE=20 seen.txt

#> with the capability `oauth` only |
#>
#> with the capabilities `token-exchange` and `token-introspection` only |
any bridgecheck run --exec ./bridge.sh --capabilities oauth,mcp,-auth-basic --only describe/missing-name
grep -qE '^BRIDGE_OAUTH_ISSUER=http' seen.txt
grep -qE '^BRIDGE_OAUTH_RESOURCE=http.*/mcp$' seen.txt
not grep -q 'BRIDGE_OAUTH_CLIENT\|BRIDGE_OAUTH_EXCHANGE' seen.txt

#> The command is split into words as a shell does, runs in your working directory
exits 0 one --exec "'./bridge.sh' \"a b\""

#> At most one of `naming-*`, `exposure-*` and
#> `visibility-*` holds for a bridge: the one that you add replaces the default.
exits 0 bridgecheck run --list --capabilities visibility-broad
silent '^describe/inaccessible-404'
exits 0 bridgecheck run --list
says '^describe/inaccessible-404'

#> `bin/bridgecheck checks` lists every clause and every capability.
exits 0 bridgecheck checks
says '^list/names-unique +MUST' '^naming-id '

#> A failure shows the clause's id and text, what was expected, what the bridge sent, and a curl line that repeats the
#> request.
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --verbose
says '^FAILED  list/page-size  MUST' 'expected' 'curl '

#> `--fail-fast` ends the run after the first MUST that fails and is not excused by the baseline; the report says so.
any bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --only 'describe/*' --fail-fast --report-dir fast
grep -q '"cut_short": "--fail-fast' fast/report.json

#> `--rerun-failed [REPORT]` tests only the clauses that failed
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --only list/names-unique
exits 0 bridgecheck run --list --rerun-failed bridgecheck-report
says '^list/page-size'
silent '^list/names-unique'
exits 0 bridgecheck run --exec 'bridgecheck bridge --page-size 8' --page-size 8 --rerun-failed
says '^partial: '

#> A run with `--only`, `--skip` or `--rerun-failed` is `partial` at best. `--list` prints the checks that a run would make.
exits 0 one --exec 'bridgecheck bridge'
says '^partial: filters left clauses out$'
exits 0 bridgecheck run --list
says '^describe/missing-name +MUST'

#> The summary has at most 25 lines
serve MOCK mock
any bridgecheck run --url $MOCK --only 'describe/*' --only 'list/*'
test $(wc -l <said) -le 25
test $(wc -l <said) -ge 5

#> The
#> same `--seed` (default 1, printed) generates the same values
exits 0 bridgecheck run --only invoke/arguments-forwarded --exec 'bridgecheck bridge' --cases 5 --verbose
grep -q '"seed": 1' bridgecheck-report/report.json
says 'seed 1'

#> Flags override the file. Secrets are named, never written down.
printf 'exec: bridgecheck bridge\nonly: [describe/missing-name]\nreport_dir: of-file\n' >run.yaml
exits 0 bridgecheck run --config run.yaml
test -s of-file/report.json
exits 0 bridgecheck run --config run.yaml --report-dir of-flag
test -s of-flag/report.json
printf 'url: http://127.0.0.1:1\nidentities: {agent: {basic: {user: agent, password: secret}}}\n' >secret.yaml
exits 2 bridgecheck run --config secret.yaml

#> | 2 | wrong usage or configuration |
exits 2 bridgecheck run --no-such-flag
exits 2 bridgecheck run --only no/such-clause

#> | 3 | the bridge cannot be reached, also where a proxy responds for it, or was not ready in time |
exits 3 bridgecheck run --url http://127.0.0.1:1
exits 3 bridgecheck run --exec 'sleep 20' --ready-timeout 300ms --only describe/missing-name

#> | 4 | no verdict: nothing ran, a MUST was not testable
serve SITE mock
serve BRIDGE bridge --drupal $SITE
exits 4 bridgecheck run --url ${BRIDGE/\/\//\/\/agent:agent-pass@} --only 'describe/*' --only invoke/runs-once
grep -q '"verdict": "not-testable"' bridgecheck-report/report.json

#> | warn | the bridge does not keep a SHOULD; fails the run under `--strict` |
#>
#> | not-applicable | the bridge does not claim the clause's capability (`--capabilities`) |
exits 0 bridgecheck run --exec 'bridgecheck bridge' --only 'mcp/*' --only describe/missing-name --capabilities -mcp
grep -q '"verdict": "not-applicable"' bridgecheck-report/report.json

#> `bin/bridgecheck replay bridgecheck-report CLAUSE --yes` starts the command of `--exec` again, with a new mock behind it,
#> and sends the request of a failure; `--exec` starts another command.
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size
exits 0 bridgecheck replay bridgecheck-report list/page-size --yes
says 'the response is the same as in the report'
exits 1 bridgecheck replay bridgecheck-report list/page-size --exec 'bridgecheck bridge --page-size 8'

#> If stderr is no terminal, a line there says every 10 s which clauses are running; `--quiet` turns it off.
exits 0 one --exec 'bridgecheck bridge' --quiet
test $(wc -l <said) = 1

#> open files: below 512 for a process (`ulimit -n`) | uses fewer workers, one below 256
exits 0 bash -c "ulimit -n 200; bridgecheck run --only describe/missing-name --verbose"
says 'open only 200 files' 'one worker'

#> which keeps the newest 8 MiB.
#>
#> SIGTERM, and SIGKILL five seconds later
#>
#> Without it there are up to 12 workers: in process four for each core
constant cmd/bridgecheck/bridgelog.go 'maxLog +=  *8 << 20 '
constant cmd/bridgecheck/process.go 'stopGrace +=  *5 \* time\.Second'
constant cmd/bridgecheck/jobs.go 'mostJobs +=  *12 '

#> without it the area
#> `profile` is for all that it knows: `claude`, `openai` and `gemini`.
exits 2 bridgecheck run --list --client nobody
says 'claude' 'openai' 'gemini'

#> The run begins as soon as the bridge responds as one to `GET /mcp/tools/list`
printf '#!/bin/bash\nsleep 1\nexec bridgecheck bridge\n' >late.sh
chmod +x late.sh
exits 0 one --exec ./late.sh

#> Afterwards the command and all processes that it started
#> are ended
printf '#!/bin/bash\nsleep 600 &\necho $! >child\nexec bridgecheck bridge\n' >child.sh
chmod +x child.sh
exits 0 one --exec ./child.sh
gone() { not kill -0 $(cat child); }
soon gone

#> Credentials go to this machine or to the `url` of your
#> `--config` without a question; to another host only when you confirm it, or give `--to URL --yes`.
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size
AGENT_PASSWORD=agent-pass exits 2 bridgecheck replay bridgecheck-report list/page-size --to http://bridge.invalid
says 'bridge\.invalid'

#> `--verbose` prints every failure; `groups` in report.json has all causes.
serve EMPTY mock
any bridgecheck run --url $EMPTY --only 'describe/*' --verbose
for id in $(grep -B9 '"verdict": "fail"' bridgecheck-report/report.json | sed -n 's/.*"id": "\(.*\)",/\1/p'); do
	says "$id"
	echo $id >>failed
done
test $(wc -l <failed) -ge 8
grep -q '"groups": \[' bridgecheck-report/report.json

#> It is read where `--config` names it alone: `run` without a target, which would test the reference bridge, ends with 2 beside a
#> `bridgecheck.yaml`.
mkdir beside
cd beside
echo 'exec: bridgecheck bridge' >bridgecheck.yaml
exits 2 one
exits 0 one --config bridgecheck.yaml
