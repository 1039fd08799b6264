# What the rows of statements/*.bash call. bridgecheck is on the PATH, each page has a directory of its own.
set -o pipefail
export LANG=C.UTF-8 NO_PROXY=127.0.0.1 COLUMNS=1000

# serve NAME ARGUMENT…: bridgecheck serves until the row ends, or the page; $NAME is its URL, NAME.log what it prints, NAME.pid its id.
serve() {
	local name=$1
	shift
	case " $* " in *" --listen "*) ;; *) set -- "$@" --listen 127.0.0.1:0 ;; esac
	bridgecheck "$@" >"$name.log" 2>&1 &
	echo $! >"$name.pid"
	for _ in $(seq 1000); do
		printf -v "$name" %s "$(sed -n 's/^listening on //p' "$name.log" | head -n 1)"
		test -z "${!name}" || return 0
		kill -0 $! 2>/dev/null || break
		sleep 0.03
	done
	echo "bridgecheck $* does not serve:"
	cat "$name.log"
	return 1
}

# exits CODE COMMAND…: the command ends with the code; what it prints is in said.
exits() {
	local want=$1 code=0
	shift
	"$@" >said 2>&1 </dev/null || code=$?
	test "$code" = "$want" || { echo "exit code $code, not $want: $*"; head -c 2000 said; return 1; }
}

# any COMMAND…: however it ends, what it prints is in said.
any() { "$@" >said 2>&1 </dev/null || true; }

# gets STATUS ARGUMENT…: curl receives the status; head and body are in said.
gets() {
	local want=$1 code
	shift
	code=$(curl --silent --include --output said --max-time 20 --write-out '%{http_code}' "$@") || true
	sed -i 's/\r$//' said
	test "$code" = "$want" || { echo "status $code, not $want: curl $*"; head -c 2000 said; return 1; }
}

# says PATTERN…: a line of said matches each; silent PATTERN…: none does.
says() { for p; do grep -qE -e "$p" said || { echo "no line matches $p:"; head -c 2000 said; return 1; }; done; }
silent() { for p; do ! grep -E -e "$p" said || { echo "a line matches $p"; return 1; }; done; }

# constant FILE PATTERN: the file of the tree has it, for what takes too long or too much to see.
constant() { grep -qE -e "$2" "$ROOT/$1" || { echo "$1 has no $2"; return 1; }; }

# not COMMAND…: it fails; "! COMMAND" ends no row.
not() { ! "$@"; }

# soon COMMAND…: it succeeds within 30 s.
soon() { for _ in $(seq 300); do "$@" >soon.log 2>&1 && return; sleep 0.1; done; cat soon.log; "$@"; }

# call STATUS URL TOOL [ARGUMENTS [CURL-ARGUMENT…]]: agent calls the tool of the bridge.
call() { gets "$1" -u agent:agent-pass --json "{\"name\":\"$3\",\"arguments\":${4:-{\}}}" "${@:5}" "$2/mcp/tools/invoke"; }

# lists STATUS URL [CURL-ARGUMENT…]: the list of the bridge, as agent.
lists() { gets "$1" -u agent:agent-pass "${@:3}" "$2/mcp/tools/list"; }

# control NAME: the URL of the control plane of what serves under the name.
control() { sed -n 's|^the control plane is at \(.*\)/$|\1|p' "$1.log"; }

# fault JSON: the control plane $M arms it, in place of all others.
fault() { curl -s -X DELETE "$M/faults"; curl -s --fail-with-body --json "$1" "$M/faults"; }

# store: a Redis serves at $PORT until the row ends; false where none is installed.
store() {
	command -v redis-server >/dev/null || { echo "NOT TESTED: redis-server is not installed"; return 1; }
	for _ in 1 2 3 4 5; do
		PORT=$((20000 + RANDOM % 20000))
		redis-server --port $PORT --bind 127.0.0.1 --save '' --daemonize no >redis.log 2>&1 &
		soon grep -q 'Ready to accept' redis.log && return
	done
	exit 1 # of the row
}

# joined URL…: the bridges have reached their store.
joined() {
	local u
	up() { gets 200 "$u/metrics"; says '^bridge_shared_up 1$'; }
	for u; do
		lists 200 "$u"
		soon up
	done
}
