// Package traps holds values that something changes which handles values on their way: texts, numbers and documents that
// languages, frameworks and programmers who mean well trim, fold, escape, cut, round or drop. They are combined, so that one
// value shows many changes. test/power proves what they show; a value that is the only one to show a change fails it by the
// name of the change when it is taken away. It is data, and sends nothing.
package traps

import (
	"slices"
	"strings"
	"unicode"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Text is Short, and longer than any usual limit.
var Text = Short + strings.Repeat(" 0123456789abcdef", 500) + " the end"

// Said is Text as long as an error's message may be.
var Said = Short + strings.Repeat(" 0123456789abcdef", 120) + " the end"

// Short changes when anything is done to a part of it.
var Short = strings.Join([]string{
	"“double” „low“ ‘single’ ‚low‘ «guillemets» \"straight\" it's `tick` 5′ 6″.  two blanks,    four",
	"en–dash em—dash two--hyphens minus −1 no\u2011break soft\u00adhyphen dots... ellipsis… (c) © -> → :-) :rocket: 🚀 ½ ﬁne ² Ａ ｶ",
	"Ã¼ber CafÃ© â€œquotedâ€\u009d Â© ÃŸ",
	"e\u0301 \u00e9 o\u0308 \u212b \u1100\u1161 Straße ẞ ſ \u212a İ ı ǅ Ærø",
	"no\u00a0break\u202fnarrow\u3000wide\u2003em\u200bzero\u200c\u200djoin\u2060word \ufeffmark \u200eltr \u202eoverride\u202c ❤\ufe0f 👩\u200d🚀 𝒳 \ue000 \ufdd0 \ufffd",
	"lines\r\n\tof\nevery\rkind\u0085next\u2028line\u2029end   \n\n\n    indented\n- item\n# heading\n",
	"<b>bold</b> <script>x</script> <!-- note --> <![CDATA[d]]> <br> &amp; &amp;amp; &lt; &nbsp; &#39; &#x27; &copy;",
	"100%% %s %d %n %20 %25 %41 1+1 {{ x }} {{y}} {name} {0} ${z} $x $1 $& $$ #{r} <%= e %> @user !now %name :id [site:name] `ls` $(id) ~/f",
	`\n \t \\ \" \/ \u0041 \1 C:\dir`,
	"a''b -- c /* d */ =3D ? & ; # **strong** [link](http://x.example) https://Example.com:443/a mail@example.com 4111111111111111 ٣",
}, " ")

// Line is Short without its control characters, for what has none: a name, a password.
var Line = strings.Map(func(r rune) rune {
	if unicode.IsControl(r) {
		return -1
	}
	return r
}, Short)

// Sensitive changes where something hides what it takes for a secret, a path or an address: from errors a bridge has to.
const Sensitive = `see /var/www/html/index.php, Drupal\Core\Url, 10.0.0.1, password=opensesame`

// Controls are the characters that no text for people has.
const Controls = "a\x00b\x07\b\v\f\x1b[31mred\x1b[0m\x1f\x7f\u0080\u009f\uffff"

// Texts change as a whole: they look like something else, or what matters is at an end.
var Texts = []string{
	"", " a ", "a\n", "\r\na", "\ta", "a \t\n\n", "\u00a0a", "a\u3000", "\ufeffa", `"a"`, "'a'", "/a/", "a.", "a", "A", "ß", "0",
	"007", "42", "-7", "9007199254740993", "3.14", "1.10", "1e3", "0x1F", "1,234", "1,5", "+49", "1_000", "12%", "٣", "=1+1", "@a", "-a",
	"true", "false", "yes", "no", "on", "off", "Y", "n", "null", "~", "undefined", "None", "NaN", "Infinity", "-Infinity", "N/A",
	"{}", "[]", `{"a":1}`, "[1,2]", "a,b,c", "aGVsbG8gd29ybGQ=", "%2E", "\\u0041",
	"2024-01-31", "2024-01-31 10:00:00", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00+02:00", "2024-01-31T10:00:00.000+02:00", "20240131", "10:00", "P1D", "1706695200",
	"HTTPS://Example.com:443", "/a/../b//c/", "4F9619FF-8B86-D011-B42D-00CF4FC964FF", "ſ", "\u212a", "Straße",
}

// Names are the names of members that are taken for something else, beside Texts.
var Names = []string{
	"10", "9", "01", "-1", "1.5", "a.b", "a-b", "a b", "snake_case", "camelCase", "PascalCase", "ID", "Id", "id", "_a", "$a", "@a", "#a", ".a", "$ref",
	"__proto__", "constructor", "prototype", "toString", "length", "type", "class", "name", "properties", "arguments", "jsonrpc", "\u00e9", "e\u0301", "a\x00",
}

// numbers are the numbers that differ from each other and from what is near them.
const numbers = `[0,1,-1,-7,0.5,-0.1,7.25,70000,2147483647,2147483648,-2147483649,4294967296,1700000000,1700000000000,9007199254740991,9007199254740993,
	-9007199254740993,9223372036854775807,-9223372036854775808,0.1,0.30000000000000004,3.141592653589793,1234567.891,1e-10,-1.5e-10,1.5e300,1.7976931348623157e308,5e-324,2.2250738585072014e-308]`

// structures are lists and objects that are changed by what they hold.
const structures = `{"lists":[[],[1],["x"],[null],[3,1,2],["b","a"],[1,1,"a","a",null,null],[1,"1",true],[[1,2],[3],[]],[0.1,16777217],[0,false,"",null,[],{}],[1,2.5]],
	"objects":[{},{"a":null},{"a":""},{"a":false},{"a":0},{"a":[]},{"a":{}},{"":1},{"0":"a","1":"b"},{"1":"x","3":"y"},{"a":1},
	{"result":{"a":1}},{"data":[1]},{"value":2},{"error":{"code":"x"}},{"jsonrpc":"2.0","id":1,"result":{"a":1}},{"a":{"b":{"c":1}}},{"a":1,"A":2,"a ":3," a":4}],
	"flags":[true,false],"nothing":null}`

// Document is a JSON document with all texts, numbers, names and structures within it; ErrorData is without Sensitive.
var Document, ErrorData = document(Text + Sensitive), document(Text)

func document(text string) string {
	return written(map[string]any{
		"text": text, "controls": Controls, "texts": list(Texts), "numbers": exact.MustParse(numbers), "structures": exact.MustParse(structures),
		"names": Object(), "long": Long(), "deep": deep(24),
	})
}

// InSchema is Document as it can stand in a schema that PHP writes, which has no empty object, and that providers take, which
// is not deep.
var InSchema = func() string {
	document := filled(exact.MustParse(Document)).(map[string]any)
	document["deep"] = deep(5)
	return written(document)
}()

// filled has lists in place of the objects that PHP takes for lists.
func filled(v any) any {
	return exact.Mapped(v, func(v any) any {
		object, is := v.(map[string]any)
		if _, zero := object["0"]; is && (len(object) == 0 || zero && len(object) == 2) {
			return []any{}
		}
		return v
	})
}

// Whole are the values that change as a whole, and not within another alone.
func Whole() []string {
	all := []string{written(Text + Sensitive), written(Controls), written(Object()), written(Long()), written(deep(24))}
	for _, t := range Texts {
		all = append(all, written(t))
	}
	for _, n := range exact.MustParse(numbers).([]any) {
		all = append(all, written(n))
	}
	structures := exact.MustParse(structures).(map[string]any)
	for _, kind := range []string{"lists", "objects", "flags"} {
		for _, v := range structures[kind].([]any) {
			all = append(all, written(v))
		}
	}
	return all
}

// Alone are those of Whole that show all of their changes, each in a request of its own.
var Alone = slices.Concat([]string{
	written(Text + Sensitive), written(Controls), written(Object()), "false", "1", "-1", "1700000000", "1700000000000", "9007199254740993", "-1.5e-10", "1.7976931348623157e308", "5e-324",
	"[]", "[true]", "[false]", "{}", `{"0":"a","1":"b"}`, `[0,false,"",null,[],{}]`, `{"a":0}`, `{"data":[1]}`, `{"value":2}`, `{"jsonrpc":"2.0","id":1,"result":{"a":1}}`,
}, writtenEach("", "0", " a ", "\ufeffa", `"a"`, "'a'", "/a/", "a.", "007", "-7", "1.10", "9007199254740993", "1e3", "0x1F", "1,234", "+49", "1_000", "12%", "true", "yes", "on", "Y", "null", "~",
	"undefined", "NaN", "N/A", "aGVsbG8gd29ybGQ=", "2024-01-31", "2024-01-31 10:00:00", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00.000+02:00", "HTTPS://Example.com:443",
	"4F9619FF-8B86-D011-B42D-00CF4FC964FF"))

func writtenEach(texts ...string) []string {
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = written(text)
	}
	return all
}

// Listed is a list of all kinds of values, no two alike.
func Listed() []any {
	structures := exact.MustParse(structures).(map[string]any)
	all := append(list(Texts), nil, true, false, Text+Sensitive, Controls)
	all = filled(slices.Concat(all, exact.MustParse(numbers).([]any), structures["lists"].([]any), structures["objects"].([]any))).([]any)
	var distinct []any // an enum must not name a value twice, and without empty objects some are equal
	for _, v := range all {
		if !slices.ContainsFunc(distinct, func(other any) bool { return exact.Equal(v, other) }) {
			distinct = append(distinct, v)
		}
	}
	return distinct
}

// Object has a member of each name.
func Object() map[string]any {
	object := map[string]any{Text + Sensitive: "x", Controls: "x"}
	for _, names := range [][]string{Texts, Names} {
		for _, n := range names {
			object[n] = "x"
		}
	}
	return object
}

// Patterns are regular expressions that change as a whole.
var Patterns = []string{" a\n", "\ufeffa\u3000", `"a"`, "'a'", "/a/../b//", "a.", "a", "a...", "1,234", "1,5", "1_000", "12%", "1.10", "=1+1", "2024-01-31", "2024-01-31 10:00:00", "2024-01-31T10:00:00Z",
	"2024-01-31T10:00:00.100+02:00", "4F9619FF-8B86-D011-B42D-00CF4FC964FF", "aGVsbG8gd29ybGQ=", "HTTPS://Example.com:443", ":-[)] 10.0.0.1 Drupal\\\\Core", strings.Repeat("[0-9a-f]", 150)}

// Words are texts that people read, for a title or a description: the long one, and those that change as a whole.
var Words = []string{
	Text + Sensitive, " a\n", "\r\n\ta \t", "\ufeffa\u3000", "\u00a0a", `"a"`, "'a'", "/a/../b//", "a.", "a\n\n", "4F9619FF-8B86-D011-B42D-00CF4FC964FF",
	"2024-01-31", "2024-01-31 10:00:00", "2024-01-31T10:00:00Z", "2024-01-31T10:00:00.100+02:00", "1,234", "1,5", "+49", "1_000", "12%", "1.10",
	"=1+1", "aGVsbG8gd29ybGQ=", "HTTPS://Example.com:443",
}

// Passwords hold together what Line holds, and differ in their ends. Drupal takes 512 bytes at most, and no blank at an end.
var Passwords = func() []string {
	half := strings.Index(Line, " <b>")
	return []string{":a:b:" + Line[:half] + "::", "E" + Line[half:] + ".", `"p%20+"\' &=` + strings.Repeat("x", 496) + "/", "\ufeffпароль-é-密\u3000", "'p&=+%'"}
}()

// Users stand around the name of an account: together they are 44 characters at most, the signs those that Drupal takes.
var Users = [][2]string{
	{"'Straße “q” „l“ ‘s’ «g» ", " x--y...z. …–—−\u2011''"},
	{"Ã¼ â€œ ﬁ½ſ\u212ae\u0301′🚀 ٣ ", " 👩\u3000❤\ufe0f𝒳\ue000\ufdd0"},
	{"", "+O'é@b.c d."},
}

// Tokens stand around the name of an account: one is as long as a token that a server signs.
var Tokens = [][2]string{{"Token.--~_+/", "..." + strings.Repeat("8", 3000) + "=="}, {"/", "."}}

// IDs are ids of requests: texts that look like something else, or whose ends matter, and integers that no double rounds. What counts
// as false in some language stands where mcp/initialize expects an error, which programs write in another place than results.
var IDs = slices.Concat([]any{Controls + Text}, exact.MustParse(`[1700000000123,-1,0,-7,"",9007199254740991,"0",1700000000]`).([]any), list([]string{
	"9007199254740993", "42", "007", "null", "true",
	"1.10", "1e3", "0x1F", "{}", "undefined", "NaN", "yes", "on", "~", "N/A", "a,b,c", " \ta\n", "\ufeffa.", `"a'`, "/a\u3000", "Y"}))

// Long is a list of more items than a page has.
func Long() []any {
	items := make([]any, 600)
	for i := range items {
		items[i] = i
	}
	return exact.MustParse(written(items)).([]any)
}

func deep(levels int) any {
	if levels == 0 {
		return "the end"
	}
	return map[string]any{"a": deep(levels - 1)}
}

func list(texts []string) []any {
	items := make([]any, len(texts))
	for i, t := range texts {
		items[i] = t
	}
	return items
}

func written(v any) string {
	b, err := exact.Write(v)
	if err != nil {
		panic("traps: " + err.Error())
	}
	return string(b)
}
