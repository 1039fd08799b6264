serve SITE mock
serve BRIDGE bridge --drupal $SITE
export AGENT_PASSWORD=agent-pass OUTSIDER_PASSWORD=outsider-pass

#> Warnings, by clauses that are not MUST, leave
#> the gate green: `--strict` fails the run for them too, in each shard where there are several.
#>
#> Where the bridge has a `bridgecheck.yaml`, as every starter has, that says what it claims: give `--config bridgecheck.yaml` in the
#> recipes below in place of `--exec` (`config: bridgecheck.yaml` in place of `exec`), which tests by the default and leaves the file unread.
mkdir claims
printf 'exec: bridgecheck bridge --page-size 7\ncapabilities: [cursor-base64-offset]\nsettings: {page_size: 7}\n' >claims/bridgecheck.yaml
(
	cd claims
	exits 0 bridgecheck run --config bridgecheck.yaml --only list/page-size
	exits 2 bridgecheck run --only list/page-size
	exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size
	says 'bridgecheck.yaml is here and is not read'
)

#> A run that ends with 2 or 3 has tested nothing and leaves no report.
exits 2 bridgecheck run --no-such-flag --report-dir none
test ! -e none
exits 3 bridgecheck run --url http://127.0.0.1:1 --report-dir none
test ! -e none/report.json

#> Name the bridge in each report, so that several can be compared: `--implementation`, `--implementation-version`,
#> `--organisation` and `--contact`, or `implementation:` in the configuration.
exits 0 bridgecheck run --exec 'bridgecheck bridge' --only describe/missing-name --implementation Mine --implementation-version 1.4 --organisation Example --contact me@example.org --report-dir named
grep -q '"organisation": "Example"' named/report.json
grep -q '"contact": "me@example.org"' named/report.json
printf 'exec: bridgecheck bridge\nimplementation: {name: Ours, version: "2.0"}\n' >impl.yaml
exits 0 bridgecheck run --config impl.yaml --only describe/missing-name --report-dir named
grep -q '"name": "Ours"' named/report.json

#> It refuses shards of two runs, a shard that is there twice and one that is missing. The result of a
#> shard counts for nothing alone: it is `partial`
for n in 1 2; do
	exits 0 bridgecheck run --exec 'bridgecheck bridge' --only 'describe/*' --shard $n/2 --run-id today --report-dir shard-$n
	says '^partial'
done
exits 0 bridgecheck run --exec 'bridgecheck bridge' --only 'describe/*' --shard 2/2 --run-id tomorrow --report-dir other
exits 2 bridgecheck report merge shard-1 other --report-dir merged
exits 2 bridgecheck report merge shard-1 shard-1 --report-dir merged
exits 2 bridgecheck report merge shard-1 --report-dir merged
exits 0 bridgecheck report merge shard-1 shard-2 --report-dir merged
grep -q '"verdict": "pass"' merged/report.json

#> The outcome is `conformant (front)` with exit code 0 when nothing fails and every
#> MUST of the front side was tested; the others are listed as `NOT SEEN`, each with what would make it testable. It is never
#> called `conformant`: `summary.conformant` in report.json stays false. All MUSTs of the front side are testable with
#> credentials of `agent` and `outsider` and one allowed call under `invocations`.
cat >front.yaml <<END
url: $BRIDGE
wire: front
identities:
  agent: {basic: {user: agent, password: {env: AGENT_PASSWORD}}}
  outsider: {basic: {user: outsider, password: {env: OUTSIDER_PASSWORD}}}
invocations: [{tool: content.list}]
END
exits 0 bridgecheck run --config front.yaml --report-dir front
says '^conformant \(front\)' 'NOT SEEN'
grep -q '"conformant": false' front/report.json
sed -i '/invocations/d' front.yaml
exits 4 bridgecheck run --config front.yaml --report-dir front

#> A bridge with an unknown site behind it shows its front side alone, so that a run is `partial` with exit code 4.
exits 4 bridgecheck run --url ${BRIDGE/\/\//\/\/agent:agent-pass@} --report-dir out
says '^partial'

#> `contract: "1.0"` in the configuration does the same as the flag.
#>
#> Reports, badges and baselines name the version.
printf 'exec: bridgecheck bridge\ncontract: "1.0"\nonly: [describe/missing-name]\nreport_dir: old\n' >old.yaml
exits 0 bridgecheck run --config old.yaml
grep -q '"1.0"' old/report.json
grep -q '1\.0' old/badge.svg
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --contract 1.0 --write-baseline known.yaml
grep -q '1\.0' known.yaml

#> Each entry must fail as it says: its verdict is then `known` and does not fail the run. A clause that passes is `fixed` and
#> fails the run, as do an expired entry
#>
#> A bridge with known failures is `partial`, never
#> `conformant`.
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --write-baseline known.yaml
exits 0 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --baseline known.yaml
says '^partial'
grep -q '"verdict": "known"' bridgecheck-report/report.json
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 8' --page-size 8 --only list/page-size --baseline known.yaml
grep -q '"verdict": "fixed"' bridgecheck-report/report.json
printf 'known:\n- {clause: list/page-size, reason: old, until: 2020-01-01}\n' >expired.yaml
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --baseline expired.yaml
says 'expired'

#> # ends with 1 when something fails that did not
#>
#> # all files of a report agree, none was edited
#>
#> # the report shows what changed since
exits 0 bridgecheck run --exec 'bridgecheck bridge --page-size 8' --page-size 8 --only list/page-size --report-dir old
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --report-dir new --previous old
grep -q 'Newly failing' new/summary.md
exits 1 bridgecheck report diff old/report.json new/report.json
exits 0 bridgecheck report diff old/report.json old/report.json
exits 0 bridgecheck report verify new
sed -i 's/"verdict": "fail"/"verdict": "pass"/' new/report.json
exits 1 bridgecheck report verify new

#> # a folder of reports as pages: side by side, and over time
mkdir reports
exits 0 bridgecheck run --exec 'bridgecheck bridge' --only describe/missing-name --report-dir reports/one
serve PAGES report serve reports
gets 200 $PAGES
says '<html'

#> reports each failure, up to 100 (`findings` in report.json).
constant suites/check/findings.go 'maxFindings +=  *100$'

#> `--write-baseline` writes one entry for each tool and caller; when another one fails, the clause fails and the message says
#> which. Leave `tool` and `identity` out to excuse the clause for all.
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --write-baseline known.yaml
printf 'known:\n- {clause: list/page-size, identity: nobody, reason: x}\n' >narrow.yaml
printf 'known:\n- {clause: list/page-size, reason: x}\n' >wide.yaml
exits 0 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --baseline wide.yaml
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size --baseline narrow.yaml

#> A run tests the latest
#> released version
exits 0 bridgecheck run --only describe/missing-name --report-dir latest
LATEST=$(bridgecheck checks --openapi | sed -n 's/^  version: "\(.*\)"/\1/p')
grep -q "\"$LATEST\"" latest/report.json
exits 0 bridgecheck run --only describe/missing-name --report-dir draft --contract draft
not grep -q "\"$LATEST\"" draft/report.json

#> All shards of a run have its id: that of the CI run (`GITHUB_RUN_ID`, `CI_PIPELINE_ID`,
for n in 1 2; do GITHUB_RUN_ID=77 exits 0 bridgecheck run --only 'describe/*' --shard $n/2 --report-dir ci-$n; done
exits 0 bridgecheck report merge ci-1 ci-2 --report-dir ci
exits 2 bridgecheck run --only 'describe/*' --shard 1/2 --report-dir none

#> `report merge` makes the report that one run would have made, and ends with its exit code
#>
#> and ends with 1 when a clause of it fails. Give `--baseline` to `report
#> merge`, too.
whole() { bridgecheck run --exec 'bridgecheck bridge --page-size 7' --page-size 8 --only list/page-size,list/names-unique,describe/missing-name,describe/after-error "$@"; }
exits 1 whole --report-dir whole --write-baseline known.yaml
any whole --shard 1/2 --run-id same --report-dir part-1
echo $(tail -n 1 said) >ends
any whole --shard 2/2 --run-id same --report-dir part-2
echo $(tail -n 1 said) >>ends
test $(grep -c '^not conformant' ends) = 1
test $(grep -c '^partial' ends) = 1
exits 1 bridgecheck report merge part-1 part-2 --report-dir merged
verdicts() { grep -E '"(id|verdict)":' $1/report.json; }
verdicts whole >verdicts
diff verdicts <(verdicts merged)
test $(grep -c '"verdict"' verdicts) = 4
exits 0 bridgecheck report merge part-1 part-2 --report-dir merged --baseline known.yaml
says '1 failure is excused by the baseline'
