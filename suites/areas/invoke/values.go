package invoke

import "strings"

// namedValue is a JSON document, named after what is special about it.
type namedValue struct{ name, value string }

// exactValues are values that some JSON layers change, as an argument on the way to the site or as a result on the way
// back. Numbers are compared by value, and the order of members does not count.
var exactValues = []namedValue{
	{"a text", `"plain"`},
	{"an empty text", `""`},
	{"a text of digits", `"007"`},
	{"Unicode", `"é ß 日本語 עברית 🚀👩‍🚀 \u2028 \u0007 e\u0301"`},
	{"markup", `"<b>&amp; \"it's\" </script> \\ / {{ x }} %20 + ${y}"`},
	{"lines", `"a\r\n\tb\n"`},
	{"a long text", `"` + strings.Repeat("0123456789abcdef", 8<<10) + `"`},
	{"true", `true`},
	{"false", `false`},
	{"zero", `0`},
	{"an integer beyond 2^53", `9007199254740993`},
	{"a negative integer beyond 2^53", `-9007199254740993`},
	{"2^63-1", `9223372036854775807`},
	{"a decimal", `0.1`},
	{"a small decimal", `-1.5e-10`},
	{"a decimal of many digits", `3.141592653589793`},
	{"an empty object", `{}`},
	{"an empty list", `[]`},
	{"empty values in others", `{"object":{},"list":[],"objects":[{}],"lists":[[]]}`},
	{"null in an object", `{"a":null,"b":[null]}`},
	{"nested values", `{"a":{"b":{"c":[1,{"d":[true,"x",{"e":0.5}]}]}}}`},
	{"an integer beyond 2^53 in a list", `[{"id":9007199254740993},9007199254740995]`},
	{"member names with a meaning elsewhere", `{"":1,"0":2,"1":3,"a.b":4,"__proto__":{"x":5},"name":"6","arguments":{},"jsonrpc":"1.0","id":7,"$ref":"#"}`},
	{"a list of lists", `[[1,2],[3],[]]`},
	{"an object with the keys of a list", `{"0":"a","1":"b"}`},
	{"a list of one, and one in no order", `[["x"],[3,1,2]]`},
	{"a text with a NUL", `"a\u0000b"`},
	{"texts with a meaning elsewhere", `["true","null","1e3","[1]","{\"a\":1}","\ufeffx","2024-01-31T10:00:00+02:00","%2E"]`},
	{"texts that look like dates", `["2024-01-31","2024-01-31T10:00:00Z","2024-01-31T10:00:00+02:00","2024-01-31T10:00:00.000Z","2024-01-31 10:00:00","10:00","20240131","1706695200","P1D","Wed, 31 Jan 2024 10:00:00 GMT","/Date(1706695200000)/"]`},
	{"texts that look like dates, as members", `{"created":"2024-01-31T10:00:00Z","changed":"2024-01-31","at":{"date":"2024-01-31 10:00:00","time":"10:00:00"}}`},
	{"texts that look like numbers", `["1","1.0","-0","01","0x1F","1e3","1_000","1,5","9007199254740993","NaN","Infinity","-Infinity","٣"," 1","+1"]`},
	{"texts that look like other values", `["true","True","yes","no","on","off","null","None","nil","undefined","~","{}","[]","\"\"","{\"$date\":1}"]`},
	{"line ends", `["a\r\nb","a\nb","a\rb","a\u0085b","a\u2028b\u2029c","\n","\r\n","a\n"]`},
	{"white space", `[" a ","a\t","\u00a0a","\u3000a","","   ","\ufeff"]`},
	{"markup and entities", `["</script><!--","<![CDATA[x]]>","&lt;b&gt;","&#39;","&amp;amp;","a+b %41 %25","\\u003c","<a href='x'>\"y\"</a>"]`},
	{"escapes", `["\/","\u002f","\u003c\u003e\u0026\u0027\u0022","\\n","\\\\","\b\f\u000b\u001f\u007f","\ud83d\ude80"]`},
	{"Unicode that is normalised", `["e\u0301","\u00e9","\u212b","\u00c5","ﬁ","ß","İ","ı","\u200d","\u200e","\uffff","\ufdd0"]`},
	{"Unicode that is normalised, without escapes", "[\"e\u0301\",\"o\u0308\",\"\u212b\",\"\u1100\u1161\"]"},
	{"minus zero", `-0`},
	{"decimals that are whole", `[1.0,100.00,-0.0,1e2,1E+2]`},
	{"decimals of 17 digits", `[0.30000000000000004,1.7976931348623157e308,5e-324,2.2250738585072014e-308]`},
	{"integers around 2^31 and 2^53", `[2147483647,2147483648,-2147483649,4294967296,9007199254740991,9007199254740992,-9223372036854775807]`},
	{"member names that differ little", `{"a":1,"A":2,"a ":3," a":4,"\u00e9":5,"e\u0301":6,"a\u0000":7,"id":8,"ID":9,"Id":10}`},
	{"member names that are numbers", `{"10":"a","9":"b","-1":"c","01":"d","1.5":"e","0":"f"}`},
	{"member names of objects in JavaScript", `{"constructor":1,"prototype":2,"__proto__":3,"toString":4,"hasOwnProperty":5,"length":6,"toJSON":7}`},
	{"member names of other formats", `{"@type":"x","$id":"y","#text":"z","_id":1,"class":2,"type":"string","properties":{}}`},
	{"an empty object beside an empty list", `[{},[],{"a":{}},{"a":[]},[[]],[{}],{"":{}}]`},
	{"equal items", `[1,1,"a","a",null,null,{},{}]`},
}

// resultValues are results that a bridge could take for something else than the method's result.
var resultValues = []namedValue{
	{"a JSON-RPC response", `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`},
	{"a JSON-RPC error", `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid Request"}}`},
	{"an error of the bridge", `{"error":{"code":"tool_not_found","message":"no"}}`},
	{"an MCP result", `{"content":[{"type":"text","text":"x"}],"isError":true}`},
	{"a result in a result", `{"result":null}`},
	{"a page of tools", `{"tools":[],"nextCursor":"MTA="}`},
	{"an empty member name", `{"":""}`},
}
