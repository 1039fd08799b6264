package invoke

import (
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/suites/input/traps"
)

// namedValue is a JSON document, named after what is special about it.
type namedValue struct{ name, value string }

// exactValues are values that some JSON layers change, as an argument on the way to the site or as a result on the way
// back. Numbers are compared by value, and the order of members does not count.
var exactValues = []namedValue{
	{"a document of texts, numbers and names that programs change", traps.Document},
	{"a text", `"plain"`},
	{"an empty text", `""`},
	{"a text of digits", `"007"`},
	{"a long text of characters of one to four bytes", `"` + strings.Repeat("aé橋🌉", 13<<10) + `"`}, // of which some lie across the ends of any blocks
	{"true", `true`},
	{"false", `false`},
	{"zero", `0`},
	{"an integer beyond 2^53", `9007199254740993`},
	{"a negative integer beyond 2^53", `-9007199254740993`},
	{"2^63-1", `9223372036854775807`},
	{"an empty object", `{}`},
	{"an empty list", `[]`},
	{"empty values in others", `{"object":{},"list":[],"objects":[{}],"lists":[[]]}`},
	{"member names with a meaning elsewhere", `{"":1,"0":2,"1":3,"a.b":4,"__proto__":{"x":5},"name":"6","arguments":{},"jsonrpc":"1.0","id":7,"$ref":"#"}`},
	{"texts that look like dates, as members", `{"created":"2024-01-31T10:00:00Z","changed":"2024-01-31","at":{"date":"2024-01-31 10:00:00","time":"10:00:00"}}`},
	{"escapes", `["\/","\u002f","\u003c\u003e\u0026\u0027\u0022","\\n","\\\\","\b\f\u000b\u001f\u007f","\ud83d\ude80"]`},
	{"Unicode that is normalised, without escapes", "[\"e\u0301\",\"o\u0308\",\"\u212b\",\"\u1100\u1161\"]"},
	{"minus zero", `-0`},
	{"decimals that are whole", `[1.0,100.00,-0.0,1e2,1E+2]`},
	{"a decimal that is whole beside an integer beyond 2^53", `[3.0,9007199254740993]`},
	{"a list of 1,500 integers, one beyond 2^53", "[" + strings.Repeat("7,", 1499) + "9007199254740993]"},
	{"member names that differ little", `{"a":1,"A":2,"a ":3," a":4,"\u00e9":5,"e\u0301":6,"a\u0000":7,"id":8,"ID":9,"Id":10}`},
	{"member names of objects in JavaScript", `{"constructor":1,"prototype":2,"__proto__":3,"toString":4,"hasOwnProperty":5,"length":6,"toJSON":7}`},
	{"member names of other formats", `{"@type":"x","$id":"y","#text":"z","_id":1,"class":2,"type":"string","properties":{}}`},
}

// plainUTF8 is a result as other sites than Drupal write it, which escapes all that is not ASCII: who reads bytes in another
// encoding, block by block, or changes the text of the JSON, changes nothing that is escaped.
var plainUTF8 = sync.OnceValue(func() string {
	return "{\"long\":\"" + strings.Repeat("aé橋🌉", 32<<10) + "\",\"na\u00efve\":\"\u00dcber \u00e9 e\u0301 \u65e5\u672c\u8a9e \U0001f680 \u2013 \u201c\u201d \u00a0 \u00ad \u200b \ufeff \u2028\"}"
})

// resultValues are results that a bridge could take for something else than the method's result.
var resultValues = []namedValue{
	{"a JSON-RPC response", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
	{"a JSON-RPC error", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`},
	{"an error of the bridge", `{"error":{"code":"tool_not_found","message":"no"}}`},
	{"an MCP result", `{"content":[{"type":"text","text":"x"}],"isError":true}`},
	{"a result in a result", `{"result":null}`},
	{"fifty lists in each other", strings.Repeat("[", 50) + "1" + strings.Repeat("]", 50)},
	{"an integer beyond 2^53 in 64 KiB", `{"pad":"` + strings.Repeat("x", 64<<10) + `","n":9007199254740993,"a":0.30000000000000004}`},
	{"a page of tools", `{"tools":[],"nextCursor":"MTA="}`},
	{"an empty member name", `{"":""}`},
}

// wholeResults are the results that something changes as a whole which leaves them alone within others.
func wholeResults() []namedValue {
	all := make([]namedValue, len(traps.Alone))
	for i, v := range traps.Alone {
		all[i] = namedValue{exact.Cut(v, 40), v}
	}
	return all
}
