
bridgecheck run --only 'describe/*' --exec 'bridgecheck bridge' --report-dir report >run.log 2>&1 || { cat run.log; false; }

#> `bridgecheck run` writes a report directory with every format that has a file. `bridgecheck report convert REPORT --to NAME`
#> writes one of them, and `bridgecheck report verify DIR` checks that all files of a directory agree.
for f in report.json report.html junit.xml report.sarif summary.md badge.svg badge.json; do
	test -s report/$f
	grep -qF "\`$f\`" "$ROOT/docs/report-formats.md"
done
for f in $(sed -n 's/^| `\([a-z-]*\)` |.*/\1/p' "$ROOT/docs/report-formats.md"); do
	exits 0 bridgecheck report convert report --to $f
	test -s said
done
exits 0 bridgecheck report verify report
sed -i 's/describe/descripe/' report/junit.xml
exits 1 bridgecheck report verify report
bridgecheck report convert report --to junit -o report/junit.xml
exits 0 bridgecheck report verify report

#> `groups` are the causes of what fails, the gravest first (`severity`: `exposure`, `execution`, `protocol`,
#> `form`), each with the clause to read first and how to fix it. `duration_ms` is the time of the whole run
#>
#> Each clause has the `requests` that its check sent and how
#> long it waited for their responses (`waited_ms`; `duration_ms` has pauses and what the check computes, too). `cost` is of the whole
#> run: its requests, the milliseconds of a processor that its process took (`cpu_ms`: checks, mock and, in process, the bridge) and
#> those of the bridges that it started (`bridge_cpu_ms`).
grep -q '"duration_ms": [1-9]' report/report.json
grep -q '"waited_ms":' report/report.json
grep -q '"requests": [1-9]' report/report.json
grep -q '"cpu_ms": [1-9]' report/report.json
grep -q '"bridge_cpu_ms": [1-9]' report/report.json
exits 1 bridgecheck run --exec 'bridgecheck bridge --page-size 7' --only list/page-size --page-size 8 --report-dir bad
grep -q '"groups": \[' bad/report.json
grep -qE '"severity": "(exposure|execution|protocol|form)"' bad/report.json

#> `convert` to standard output
#> writes JSON so, too.
exits 0 bridgecheck report convert report --to json
says '^\{'

#> report.json holds 16 KiB of a body.
#>
#> holds the whole body (up to 4 MiB)
constant suites/check/evidence.go 'KeptBody +=  *16 << 10 '
constant reports/bodies.go 'MaxWhole = 4 << 20$'

#> Texts in a report come from the bridge. report.json has them as they came; every other format writes them with control and
#> format characters and the commands of CI systems escaped (`\x1b`, `\u202e`, `:\x3aerror`)
printf 'title: "A\\u202e\\e[31m ::error::x"\n' >hostile.yaml
serve HOSTILE mock --site hostile.yaml
any bridgecheck run --url $HOSTILE --only 'describe/*' --report-dir hostile
RAW=$(printf '\u202e')
grep -qF "$RAW\\u001b[31m ::error::x" hostile/report.json
for f in html junit sarif markdown annotations console; do
	exits 0 bridgecheck report convert hostile --to $f
	not grep -nF -e "$RAW" -e "$(printf '\x1b')" said
	not grep -n '31m ::error' <(grep -v '^::error title=' said)
	case $f in annotations | markdown) ;; *) says 'u202e.*x1b[[]31m' ;; esac
done
