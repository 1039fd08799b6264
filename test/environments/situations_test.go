//go:build unix

package environments

// situation is how a machine is, and what the program makes of it.
type situation struct {
	name  string
	set   string   // a script of sh, which calls $BC; $ONE selects one clause, $EXEC gives the reference bridge as a process
	needs []string // what has to be there; see haves
	exit  int
	says  []string // of stdout and stderr together
	never []string // what neither says
	long  bool     // it tests all clauses: not with -short
	jumps bool     // the wall clock jumps
}

// situations are ordinary machines that the author of a bridge may have. In each the reference bridge is blamed for nothing.
var situations = []situation{
	// Languages, terminals and clocks.
	{name: "language C", set: `LANG=C LC_ALL=C "$BC" run $ONE`, says: passes},
	{name: "German", set: `LC_ALL=de_DE.UTF-8 "$BC" run $ONE`, says: passes},
	{name: "Turkish, whose i has another capital", set: `LC_ALL=tr_TR.UTF-8 "$BC" run $ONE $EXEC`, says: passes},
	{name: "a language that is not there", set: `LC_ALL=xx_YY.nothing "$BC" run $ONE`, says: passes},
	{name: "time zone of half an hour", set: `TZ=America/St_Johns "$BC" run $ONE`, says: passes},
	{name: "time zone that is not there", set: `TZ=No/Where "$BC" run $ONE`, says: passes},
	{name: "no TERM", set: `unset TERM; "$BC" run $ONE`, says: passes},
	{name: "dumb terminal", set: `TERM=dumb "$BC" run $ONE`, says: passes, never: []string{"\x1b["}},
	{name: "NO_COLOR", set: `TERM=xterm NO_COLOR=1 "$BC" run $ONE`, says: passes, never: []string{"\x1b["}},
	{name: "narrow", set: `COLUMNS=40 "$BC" run $ONE`, says: passes},
	{name: "COLUMNS is no number", set: `COLUMNS=wide "$BC" run $ONE`, says: passes},
	{name: "CI", set: `CI=true "$BC" run $ONE`, says: passes},
	{name: "the wall clock jumps, one process", set: `"$BC" run`, exit: either, long: true, jumps: true},
	{name: "the wall clock jumps, a bridge of its own", set: `"$BC" run $EXEC`, exit: either, long: true, jumps: true},
	{name: "GitHub Actions whose summary cannot be written", set: `GITHUB_ACTIONS=true GITHUB_STEP_SUMMARY=/no/where/x "$BC" run $ONE`, says: []string{"1 passed", "/no/where/x"}},

	// What a process gets.
	{name: "stdin is closed", set: `"$BC" run $ONE $EXEC <&-`, says: passes},
	{name: "stderr is closed", set: `"$BC" run $ONE 2>&-`, says: passes},
	{name: "stdout is closed", set: `"$BC" run $ONE >&-; test -s bridgecheck-report/report.json`},
	{name: "stdout is a pipe that nobody reads", set: `"$BC" run $ONE | true; test -s bridgecheck-report/report.json`},
	{name: "stdout is a full disk", set: `"$BC" run $ONE >/dev/full`, needs: []string{"linux"}, says: []string{"the standard output cannot be written: no space left on device; partial: filters left clauses out"}},
	{name: "stdout is a full disk, as JSON", set: `"$BC" run $ONE --json >/dev/full`, needs: []string{"linux"}, exit: 4, says: []string{"no space left on device"}},
	{name: "the reader of stdout leaves", set: `"$BC" run $ONE $EXEC | head -n 1`, says: []string{"1 passed"}},
	{name: "the first process of a container", set: `unshare -p -f --mount-proc "$BC" run $ONE $EXEC`, needs: []string{"root", "unshare"}, says: passes},
	{name: "few processes", set: `chmod 777 .; exec prlimit --nproc=40 setpriv --reuid 54321 --regid 54321 --clear-groups "$BC" run $ONE $EXEC`, needs: []string{"root", "setpriv", "prlimit"},
		says: []string{"the machine lets this user have only 40 processes and threads: raise the limit (ulimit -u ", "1 passed"}},
	{name: "too few processes", set: `chmod 777 .; exec prlimit --nproc=12 setpriv --reuid 54321 --regid 54321 --clear-groups "$BC" run $ONE $EXEC`, needs: []string{"root", "setpriv", "prlimit"}, exit: 4,
		says: []string{"nothing can be tested: the machine lets this user have only 12 processes and threads"}},
	{name: "little time of a processor", set: `ulimit -t 60; "$BC" run $ONE $EXEC`, says: []string{"the machine ends a process that has computed for 60 s", "1 passed"}},
	{name: "no null device", set: `unshare -m sh -c 'mount -t tmpfs none /dev && exec "$BC" run $ONE $EXEC'`, needs: []string{"root", "unshare"}, exit: 4, says: []string{"cannot be started: open /dev/null"}},
	{name: "a small shared memory", set: `unshare -m sh -c 'mount -t tmpfs -o size=4k none /dev/shm && exec "$BC" run $ONE $EXEC'`, needs: []string{"root", "unshare"}, says: passes},
	{name: "stopped for a while and continued", set: `"$BC" run --only "describe/*" $EXEC & p=$!; sleep 1; kill -STOP $p; sleep 12; kill -CONT $p; wait $p`, exit: either, long: true},
	{name: "no variables", set: `env -i "$BC" run $ONE`, says: passes},
	{name: "no HOME", set: `unset HOME; "$BC" run $ONE $EXEC`, says: passes},
	{name: "HOME is not there", set: `HOME=/no/where "$BC" run $ONE $EXEC`, says: passes},
	{name: "one processor", set: `GOMAXPROCS=1 "$BC" run $ONE $EXEC`, says: passes},
	{name: "low priority", set: `nice -n 19 "$BC" run $ONE $EXEC`, says: passes},
	{name: "small stacks", set: `ulimit -s 256; "$BC" run $ONE $EXEC`, says: passes},
	{name: "a user without a name", set: `chmod 777 .; setpriv --reuid 54321 --regid 54321 --clear-groups "$BC" run $ONE $EXEC`, needs: []string{"root", "setpriv"}, says: passes},
	{name: "no /proc", set: `unshare -m sh -c 'mount -t tmpfs none /proc && exec "$BC" run $ONE $EXEC'`, needs: []string{"root", "unshare"}, says: passes},
	{name: "HOME is read-only", set: `mkdir home; chmod 500 home; chmod 777 .; HOME=$PWD/home setpriv --reuid 54321 --regid 54321 --clear-groups "$BC" run $ONE $EXEC`, needs: []string{"root", "setpriv"}, says: passes},

	// Files.
	{name: "% in the name of the directory", set: `mkdir 'a%zz b' && cd 'a%zz b' && "$BC" run $ONE --exec "\"$BC\" bridge"`, says: passes},
	{name: "line break in the name of the directory", set: "mkdir 'a\nb' && cd 'a\nb' && $BC run $ONE $EXEC", says: passes},
	{name: "quotes and signs in the name of the directory", set: `mkdir "it's \"\$x\" & <b>" && cd "it's \"\$x\" & <b>" && "$BC" run $ONE $EXEC`, says: passes},
	{name: "other scripts in the name of the directory", set: `mkdir 'мост 橋 é' && cd 'мост 橋 é' && "$BC" run $ONE $EXEC`, says: passes},
	{name: "no UTF-8 in the name of the directory", set: "d=$(printf 'a\\377b') && mkdir \"$d\" && cd \"$d\" && $BC run $ONE $EXEC", needs: []string{"linux"}, says: passes},
	{name: "a long path", set: `d=$(printf '%0200d' 0); mkdir -p $d/$d/$d && cd $d/$d/$d && "$BC" run $ONE $EXEC`, says: passes},
	{name: "the working directory is a link", set: `mkdir there; ln -s there here; cd here; "$BC" run $ONE $EXEC && test -s ../there/bridgecheck-report/report.json`, says: passes},
	{name: "the working directory is gone", set: `mkdir gone; cd gone; rmdir ../gone; "$BC" run $ONE`, exit: 2, says: []string{"the report directory bridgecheck-report cannot be written: no such file or directory"}},
	{name: "umask 777", set: `chmod 777 .; umask 777; setpriv --reuid 54321 --regid 54321 --clear-groups "$BC" run $ONE; c=$?; chmod 700 bridgecheck-report; exit $c`, needs: []string{"root", "setpriv"}, exit: 2,
		says: []string{"the report directory bridgecheck-report cannot be written: permission denied"}},
	{name: "the report directory is a dangling link", set: `ln -s nowhere bridgecheck-report; "$BC" run $ONE`, exit: 2, says: []string{"it is a link to nowhere, which is not there"}},
	{name: "the report directory is a link", set: `mkdir there; ln -s there bridgecheck-report; "$BC" run $ONE && test -s there/report.json`, says: passes},
	{name: "the report directory is a file", set: `echo x > bridgecheck-report; "$BC" run $ONE`, exit: 2, says: []string{"the report directory bridgecheck-report cannot be written", "--report-dir"}},
	{name: "the report directory is below one that is not there", set: `"$BC" run $ONE --report-dir a/b/c && test -s a/b/c/report.json`, says: passes},
	{name: "the directory is read-only", set: `chmod 555 .; setpriv --reuid 54321 --regid 54321 --clear-groups "$BC" run $ONE`, needs: []string{"root", "setpriv"}, exit: 2,
		says: []string{"the report directory bridgecheck-report cannot be written: permission denied"}},
	{name: "umask 077", set: `umask 077; "$BC" run $ONE $EXEC && test -z "$(find bridgecheck-report -type f -perm /077)"`, needs: []string{"linux"}, says: passes},
	{name: "umask 000", set: `umask 000; "$BC" run $ONE $EXEC && test -z "$(find bridgecheck-report -type f -perm /022)"`, needs: []string{"linux"}, says: passes},
	{name: "TMPDIR is not there", set: `TMPDIR=/no/where "$BC" run $ONE`, exit: 2, says: []string{"the directory for temporary files /no/where is not there: make it, or set TMPDIR to another"}},
	{name: "TMPDIR is relative", set: `mkdir tmp; TMPDIR=tmp "$BC" run --only 'describe/*' $EXEC`, says: []string{"partial: filters left clauses out"}},
	{name: "TMPDIR is full", set: `mkdir tmp; unshare -m sh -c 'mount -t tmpfs -o size=16k,nr_inodes=2 none tmp && touch tmp/x && TMPDIR=$PWD/tmp exec "$BC" run --jobs 3 --only "describe/*" --exec "$BC bridge"'`,
		needs: []string{"root", "unshare"}, says: []string{"partial: filters left clauses out", "bridge.log lacks", "no space left on device"}},
	{name: "the disk is full when the report is written", set: `mkdir r; unshare -m sh -c 'mount -t tmpfs -o size=8k none r && exec "$BC" run $ONE --report-dir r'`,
		needs: []string{"root", "unshare"}, says: []string{"the machine's disk has only 8 KiB free for r: free some of it", "1 passed", "the report in r cannot be written: no space left on device"}},
	{name: "the disk is full while the bridge writes", set: `cat >b.sh <<'X'
#!/bin/sh
(while :; do seq 1000; sleep 0.01; done) &
exec "$BC" bridge
X
chmod +x b.sh; mkdir r; unshare -m sh -c 'mount -t tmpfs -o size=4k none r && exec "$BC" run --only "describe/*" --env BC --exec ./b.sh --report-dir r'`,
		needs: []string{"root", "unshare"}, says: []string{"partial: filters left clauses out", "bridge.log lacks", "no space left on device"}, never: []string{"ended by itself"}},
	{name: "a killed run leaves nothing", set: `mkdir tmp; export TMPDIR=$PWD/tmp; "$BC" run --jobs 3 $EXEC >/dev/null 2>&1 & p=$!; sleep 3; kill -KILL $p; wait $p; test -z "$(ls -A tmp)"`, says: nil},

	// Limits.
	{name: "64 open files", set: `ulimit -n 64; "$BC" run`, exit: either, says: []string{"the machine lets a process open only 64 files: raise the limit (ulimit -n "}, long: true},
	{name: "128 open files, a process", set: `ulimit -n 128; "$BC" run $EXEC`, exit: either, says: []string{"the machine lets a process open only 128 files", "one worker tests all"}, long: true},
	{name: "small files only", set: `ulimit -f 1; "$BC" run $ONE`, says: []string{"1 passed", "cannot be written"}},
	{name: "few addresses", set: `ulimit -v 900000; "$BC" run $ONE`, exit: either, says: []string{"the machine gives a process 878 MiB of addresses: raise the limit (ulimit -v unlimited)"}},
	{name: "256 MiB of memory", set: `"$BC" run $EXEC --jobs 1`, needs: []string{"memory 256"}, exit: either, long: true},
	{name: "512 MiB of memory", set: `"$BC" run $EXEC`, needs: []string{"memory 512"}, exit: either, long: true},
	{name: "a third of a processor, in slices of a second", set: `"$BC" run`, needs: []string{"processor 300"}, exit: either, long: true},
	{name: "20 ms of a processor in a second, two shards", set: `shard() { "$BC" run --shard $1/2 --run-id x --only load/concurrent-exact --only list/answers-json --report-dir $1 $EXEC; }
		shard 1; shard 2; echo merged; exec "$BC" report merge 1 2 --report-dir all`,
		needs: []string{"processor 20"}, exit: 4, says: []string{"merged\nNOT TESTABLE  load/concurrent-exact", "the machine is overloaded", "at fault: the machine (1 MUST not tested)"}, long: true},
	{name: "few ports", set: `unshare -n sh -c 'ip link set lo up && echo "40000 40060" >/proc/sys/net/ipv4/ip_local_port_range && exec "$BC" run $EXEC'`,
		needs: []string{"root", "unshare", "ip"}, exit: either, says: []string{"the machine has only 61 ports for connections"}, long: true},

	// What is wrong is found all the same.
	{name: "ten mutants, 128 open files", set: `ulimit -n 128; ` + tenMutants, long: true},
	{name: "ten mutants, 512 MiB of memory", set: tenMutants, needs: []string{"memory 512"}, long: true},
	{name: "ten mutants, a third of a processor", set: tenMutants, needs: []string{"processor 300"}, long: true},

	// Networks.
	{name: "no loopback interface, one process", set: `unshare -n "$BC" run`, needs: []string{"root", "unshare"}, exit: 4, says: []string{"nothing can be tested: the machine", "ip link set lo up"}},
	{name: "no loopback interface, a bridge of its own", set: `unshare -n "$BC" run $ONE $EXEC`, needs: []string{"root", "unshare"}, exit: 4, says: []string{"nothing can be tested: the machine", "ip link set lo up"}},
	{name: "no IPv4", set: `unshare -n sh -c 'ip link set lo up && ip addr del 127.0.0.1/8 dev lo && exec "$BC" run $ONE $EXEC'`, needs: []string{"root", "unshare", "ip"}, exit: 4, says: []string{"nothing can be tested: the machine has no"}},
	{name: "a name of this machine that is in no table", set: `unshare -u sh -c 'hostname no-entry && exec "$BC" run $ONE $EXEC'`, needs: []string{"root", "unshare", "hostname"}, says: passes},
	{name: "HTTP_PROXY beside a bridge of --exec", set: `HTTP_PROXY=http://127.0.0.1:9 http_proxy=http://127.0.0.1:9 "$BC" run $ONE $EXEC`, says: passes},
	{name: "ALL_PROXY", set: `ALL_PROXY=socks5://127.0.0.1:9 "$BC" run $ONE $EXEC`, says: passes},
	{name: "HTTP_PROXY before a bridge that is up", set: `HTTP_PROXY=http://127.0.0.1:9 "$BC" run $ONE --url http://bridge.example`, exit: 3,
		says: []string{"the requests to the bridge go through the proxy http://127.0.0.1:9 of the environment", "NO_PROXY"}},
	{name: "nothing listens there", set: `"$BC" run $ONE --url http://127.0.0.1:9`, exit: 3, says: []string{"connection refused"}},
	{name: "a mock on an empty address", set: `$BC mock --listen ''`, exit: 2, says: []string{"--listen is empty, which would be every address of this machine"}},
	{name: "a bridge on every address", set: `DRUPAL_URL=http://127.0.0.1:9 timeout 3 "$BC" bridge --listen :0; true`, says: []string{"PLAIN HTTP beyond this machine"}},
	{name: "a mock on every address", set: `timeout 3 "$BC" mock --listen :0; true`, says: []string{"with passwords that everybody knows", "keeps them out"}},

	// Secrets in files.
	{name: "DRUPAL_PASSWORD_FILE", set: `echo service-pass >pw; $BC mock --listen 127.0.0.1:0 >mock.txt & p=$!; while ! grep -q http mock.txt; do sleep 0.1; done
DRUPAL_URL=$(sed 's/.*\(http[^ ]*\).*/\1/;q' mock.txt) DRUPAL_USER=service DRUPAL_PASSWORD_FILE=pw $BC bridge --check; c=$?; kill $p; exit $c`, says: []string{"service may run"}},
	{name: "a wrong password", set: `$BC mock --listen 127.0.0.1:0 >mock.txt & p=$!; while ! grep -q http mock.txt; do sleep 0.1; done
DRUPAL_URL=$(sed 's/.*\(http[^ ]*\).*/\1/;q' mock.txt) DRUPAL_USER=service DRUPAL_PASSWORD=wrong $BC bridge --check; c=$?; kill $p; exit $c`, exit: 2, says: []string{"a wrong user name or password"}},
	{name: "DRUPAL_PASSWORD_FILE is not there", set: `DRUPAL_URL=http://127.0.0.1:9 DRUPAL_USER=service DRUPAL_PASSWORD_FILE=no-such-file $BC bridge --check`, exit: 2, says: []string{"no-such-file"}},

	// Programs.
	{name: "CRLF after a shebang", set: `printf '#!/bin/sh\r\nexec x\n' >b.sh; chmod +x b.sh; "$BC" run $ONE --exec ./b.sh`, exit: 3, says: []string{"ends with CRLF"}},
	{name: "a variable before the command", set: `"$BC" run $ONE --exec "FOO=1 $BC bridge"`, exit: 3, says: []string{"write 'env FOO=1 …'"}},
	{name: "a pipe in the command", set: `"$BC" run $ONE --exec "$BC bridge | cat"`, exit: 3, says: []string{"--exec runs no shell", "sh -c"}},
	{name: "a program that goes into the background", set: `printf '#!/bin/sh\nexit 0\n' >b.sh; chmod +x b.sh; "$BC" run $ONE --exec ./b.sh`, exit: 3, says: []string{"has to stay in the foreground"}},
	{name: "a program whose child serves later", set: `printf '#!/bin/sh\n(sleep 1; exec "$BC" bridge) &\n' >b.sh; chmod +x b.sh; "$BC" run $ONE --env BC --exec ./b.sh`, says: passes},
	{name: "no such program", set: `"$BC" run $ONE --exec ./no-such-program`, exit: 3, says: []string{"cannot be started: no such file or directory"}},
	{name: "a program that may not be run", set: `echo x >b.sh; "$BC" run $ONE --exec ./b.sh`, exit: 3, says: []string{"cannot be started: permission denied"}},
	{name: "a directory for a program", set: `"$BC" run $ONE --exec /tmp`, exit: 3, says: []string{"cannot be started"}},
	{name: "a program that prints what is no text", set: `printf '#!/bin/sh\nhead -c 100000 /dev/urandom\nexec "$BC" bridge\n' >b.sh; chmod +x b.sh; "$BC" run $ONE --env BC --exec ./b.sh`, says: passes},
	{name: "a program that ends at once", set: `"$BC" run $ONE --exec false`, exit: 3, says: []string{"ended before it was ready: exit status 1", "it wrote nothing to its log"}},

	// Ends.
	{name: "SIGTERM", set: `"$BC" run $EXEC & p=$!; sleep 2; kill -TERM $p; wait $p`, exit: 4, says: []string{"the run was cut short (terminated", "report: "}},
	{name: "SIGINT", set: `trap - INT; "$BC" run --jobs 2 $EXEC & p=$!; sleep 2; kill -INT $p; wait $p; c=$?; test -s bridgecheck-report/report.json && exit $c`, exit: 4, says: []string{"the run was cut short"}},
	{name: "the time of the run is over", set: `"$BC" run $EXEC --run-timeout 1s`, exit: 4, says: []string{"the run time-out (--run-timeout) passed", "report: "}},
	{name: "SIGHUP under nohup", set: `trap '' HUP; "$BC" run $ONE $EXEC & p=$!; kill -HUP $p; wait $p`, says: passes},
	{name: "two runs in one directory", set: `"$BC" run $ONE $EXEC >1.txt 2>&1 & p=$!; "$BC" run --only describe/reflects-safely; c=$?; wait $p && cat 1.txt && "$BC" report verify bridgecheck-report >/dev/null && exit $c`, says: passes},
}

// passes is what a run of one clause says that passes.
var passes = []string{"1 passed", "partial: filters left clauses out"}

// either is the exit code of a run that either tests all, or leaves something untested for the machine.
const either = -1

// tenMutants fails where one of ten bridges with a fault, of ten areas, is not found out.
const tenMutants = `for name in tools-object-when-empty describe-ends-with-a-comment invoke-jsonrpc-envelope list-open-to-outsiders denials-in-drupals-form \
	mcp-arguments-demanded schema-negative-length ttls-three-times-as-long allow-in-small-letters site-asked-before-validation; do
	"$BC" selftest --mutant $name >said.txt 2>&1 || { echo "$name is not found out"; cat said.txt; exit 1; }
done`
