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
#>
#> | `BRIDGE_LISTEN` | `HOST:PORT` to listen on |
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

#> | warn | the bridge does not keep a SHOULD; fails the run under `--strict` |
#>
#> | 1 | a MUST is broken (or a SHOULD, under `--strict`)
forgets() { bridgecheck run --exec 'bridgecheck bridge --max-stale 1ms' --capabilities discovery-cache --only fresh/stale-on-error "$@"; }
exits 0 forgets
grep -q '"verdict": "warn"' bridgecheck-report/report.json
exits 1 forgets --strict

#> A bridge of `--exec` that ends by itself, as a process that panics does, fails the clause that was tested, also where that is a
#> SHOULD. The run starts it again for the clauses that are left; after the third time, of those that share a bridge, they stay untested.
cat >dies.sh <<'END'
#!/bin/bash
echo begins >>begins
bridgecheck bridge 2>log.$$ & # it has discovered tools when it warns of their names
until grep -q 'the same name' log.$$; do sleep 0.01; done
kill -9 $!
exit 7
END
chmod +x dies.sh
exits 1 bridgecheck run --exec ./dies.sh --capabilities discovery-cache --only fresh/stale-on-error
says '^FAILED +fresh/stale-on-error +SHOULD'
rm begins
exits 1 bridgecheck run --exec ./dies.sh --jobs 1 --only 'invoke/*'
says 'it ended by itself: exit status 7' 'the run was cut short [(]the bridge ended by itself[)]'
test $(grep -c '"verdict": "fail"' bridgecheck-report/report.json) = 3
test $(grep -c '"verdict": "not-testable"' bridgecheck-report/report.json) -gt 10
test "$(wc -l <begins)" = 3

#> The old report stays until the new run has started.
exits 0 one --report-dir old
exits 2 one --no-such-flag --report-dir old
exits 3 one --url http://127.0.0.1:1 --report-dir old
exits 0 bridgecheck report verify old

#> `--jobs N` sets it.
#>
#> so the report is the same for any
verdicts() { exits 0 bridgecheck run --exec 'bridgecheck bridge' --only 'describe/*,list/names-unique,list/page-size' --jobs $1 --report-dir jobs; grep -E '"(id|verdict)":' jobs/report.json >verdicts.$1; }
verdicts 1
verdicts 3
cmp verdicts.1 verdicts.3
test -s verdicts.1

#> `--keep` leaves the bridge and the mock Drupal running after the run: it prints their addresses, the control plane and the
#> mock's accounts; Enter sends the request of each failed clause again, `q` and Enter or Ctrl-C ends.
mkfifo keys
bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --keep <keys >kept.log 2>&1 &
exec 3>keys
soon grep -q '^Enter sends' kept.log
grep -q 'control plane  *http:' kept.log
for word in 'bridge  *http:' 'mock Drupal  *http:' 'agent  *agent-pass'; do grep -q "$word" kept.log; done
gets 200 -u agent:agent-pass $(sed -n 's/^ *bridge  *//p' kept.log)/mcp/tools/list
echo >&3
soon grep -q '^list/page-size: the same response: 200' kept.log
echo q >&3
wait $! || test $? = 1

#> `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY` hold for the bridge of `--url`, and the run names the proxy; never for this machine's own
#> addresses
unset NO_PROXY
serve PROXY mock
serve B bridge --drupal $PROXY
export HTTP_PROXY=$PROXY
exits 1 one --url http://bridge.invalid
says "the requests to the bridge go through the proxy $PROXY" 'no sign of a bridge'
export HTTP_PROXY=http://127.0.0.1:1
exits 3 one --url http://bridge.invalid
says 'through the proxy http://127.0.0.1:1'
exits 0 one --url ${B/\/\//\/\/agent:agent-pass@}
silent proxy
NO_PROXY=bridge.invalid exits 3 one --url http://bridge.invalid
silent 'the proxy http'

#> | loopback interface (`ip link set lo up`) | ends with 4, unless it tests a bridge elsewhere |
if unshare -n true 2>/dev/null; then
	exits 4 unshare -n bridgecheck run --only describe/missing-name
	says 'ip link set lo up'
else
	echo 'NOT TESTED: no network namespace can be made'
fi

#> | address space: below 1 GiB (`ulimit -v`) | says so
exits 0 bash -c 'ulimit -v 1000000; bridgecheck run --only describe/missing-name'
says 'ulimit -v'
grep -A3 '"lacks"' bridgecheck-report/report.json | grep -q 'ulimit -v'
exits 0 bash -c 'ulimit -v 2000000; bridgecheck run --only describe/missing-name'
silent 'ulimit -v'

#> | disk: report or bridge.log cannot be written | prints failures and verdict all the same, with its exit code; says what bridge.log lacks |
printf '#!/bin/bash\n(sleep 0.5; rm -rf gone; : >gone) &\nexec bridgecheck bridge --page-size 7\n' >takes.sh
chmod +x takes.sh
exits 1 bridgecheck run --exec ./takes.sh --jobs 1 --page-size 8 --only list/page-size --only upstream/timeout --report-dir gone
says '^FAILED  list/page-size' '^not conformant: 1 clause fails' '^the report in gone cannot be written: '

#> While you write it, let the run watch the files of the command.
#> Each change is tested at once: first what failed, then the areas of that, then all; the screen shows what turned green and red, until Ctrl-C:
mkdir watched temp
printf '#!/bin/bash\nexec bridgecheck bridge --page-size 7\n' >watched/bridge.sh
chmod +x watched/bridge.sh
(cd watched; TMPDIR=../temp exec bridgecheck run --watch --exec ./bridge.sh --page-size 8 --only list/page-size) >watch.log 2>&1 &
soon grep -q '^red  *list/page-size' watch.log
sed -i 's/--page-size .*/--page-size 8/' watched/bridge.sh
soon grep -q '^green  *list/page-size' watch.log

#> The default is a bridge that names tools by method id, shows what the
#> caller may run, goes by the McpTool attribute, and forwards HTTP Basic to the site.
exits 0 bridgecheck run --list --exec none
cp said plain
exits 0 bridgecheck run --list --exec none --capabilities naming-id,visibility-filtered,exposure-attribute,auth-basic,auth-passthrough
cmp said plain
for other in naming-underscore visibility-broad exposure-patterns auth-bearer -auth-passthrough; do
	exits 0 bridgecheck run --list --exec none --capabilities $other
	not cmp -s said plain
done

#> Where a client cannot log in, `bridgecheck auth doctor https://drupal.example/mcp` goes its way from the challenge to the
#> registration, with `--login` up to a token that is accepted and refreshed, and says which layer fails, with the clause and the
#> remedy.
serve MOCK mock
serve B bridge --drupal $MOCK
exits 1 bridgecheck auth doctor $B/mcp
says '^fails +challenge ' ' auth/challenge$' 'Send 401 with `WWW-Authenticate: Bearer`' '^skipped +registration '

#> Where the run itself is killed, the command and the processes in its process group are killed, too.
printf '#!/bin/bash\necho $$ >group\nsleep 600 &\necho $! >>group\nbridgecheck bridge &\necho $! >>group\nwait\n' >group.sh
chmod +x group.sh
bridgecheck run --exec ./group.sh --keep --only describe/missing-name >kept.log 2>&1 < <(sleep 60) &
soon grep -q '^Enter sends' kept.log
for pid in $(cat group); do kill -0 $pid; done
kill -9 $!
ended() { not kill -0 $1 || grep -q 'State:.Z' /proc/$1/status; } # nobody may wait for it
all() { for pid in $(cat group); do ended $pid || return 1; done; }
soon all

#> It is read where `--config` names it alone: `run` without a target, which would test the reference bridge, ends with 2 beside a
#> `bridgecheck.yaml`.
mkdir beside
cd beside
echo 'exec: bridgecheck bridge' >bridgecheck.yaml
exits 2 one
exits 0 one --config bridgecheck.yaml
