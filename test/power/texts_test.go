package power

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/language"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/text/width"
)

// kind is what a transformation is made for.
type kind string

const (
	text    kind = "text"
	number  kind = "number"
	boolean kind = "boolean"
	null    kind = "null"
	list    kind = "list"
	object  kind = "object"
	name    kind = "name" // the names of an object's members: a transformation of texts, applied to each
)

// transformation is what a language, a framework or a programmer who means well does to a value.
type transformation struct {
	name string
	kind kind
	do   func(any) any // a value of another kind stays as it is

	coerces bool // a text to something else
	ofData  bool // for data and for what people read, not for a name or a credential
}

func of(kind kind, name string, do func(string) any) transformation {
	return transformation{name: name, kind: kind, do: func(v any) any {
		if s, ok := v.(string); ok {
			return do(s)
		}
		return v
	}}
}

// texts are the transformations of texts.
func texts() []transformation {
	var all []transformation
	add := func(name string, do func(string) string) {
		all = append(all, of(text, name, func(s string) any { return do(s) }))
	}
	to := func(name string, do func(string) any) {
		all = append(all, of(text, name, do))
		all[len(all)-1].coerces = true
	}
	replace := func(name string, pairs ...string) { add(name, strings.NewReplacer(pairs...).Replace) }
	regex := func(name, pattern, by string) {
		r := regexp.MustCompile(pattern)
		add(name, func(s string) string { return r.ReplaceAllString(s, by) })
	}
	runes := func(name string, keep func(rune) bool) {
		add(name, func(s string) string {
			return strings.Map(func(r rune) rune {
				if keep(r) {
					return r
				}
				return -1
			}, s)
		})
	}

	ofData := func(before int) {
		for i := range all[before:] {
			all[before+i].ofData = true
		}
	}

	// Normal forms.
	for form, f := range map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD} {
		add("normalise to "+form, f.String)
	}
	add("drop accents", func(s string) string { return strings.Map(dropMarks, norm.NFD.String(s)) })
	add("full width to half width", width.Narrow.String)

	// Ends.
	add("trim", strings.TrimSpace)
	add("trim at the beginning", func(s string) string { return strings.TrimLeft(s, " \t\r\n") })
	add("trim at the end", func(s string) string { return strings.TrimRight(s, " \t\r\n") })
	add("trim line ends at the end", func(s string) string { return strings.TrimRight(s, "\r\n") })
	add("trim one line end", func(s string) string { return strings.TrimSuffix(s, "\n") })
	add("end with a line end", func(s string) string { return strings.TrimSuffix(s, "\n") + "\n" })
	add("trim blanks of Unicode", func(s string) string { return strings.Trim(s, "\u00a0\u3000\u2003\u200b\ufeff") })
	add("trim a byte order mark", func(s string) string { return strings.TrimPrefix(s, "\ufeff") })
	add("trim quotes", func(s string) string { return strings.Trim(s, `"`) })
	add("trim single quotes", func(s string) string { return strings.Trim(s, `'`) })
	add("trim slashes", func(s string) string { return strings.Trim(s, "/") })
	add("trim full stops", func(s string) string { return strings.TrimRight(s, ".") })

	// White space.
	regex("collapse white space", `\s+`, " ")
	regex("collapse blanks", ` {2,}`, " ")
	regex("collapse empty lines", `\n{2,}`, "\n")
	regex("trim each line at its end", `[ \t]+\n`, "\n")
	regex("dedent", `(?m)^[ \t]+`, "")
	regex("drop white space", `\s+`, "")
	replace("CRLF to LF", "\r\n", "\n")
	add("LF to CRLF", func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
	})
	add("CR to LF", func(s string) string {
		return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	})
	replace("drop CR", "\r", "")
	replace("lines to one line", "\n", " ")
	replace("lines to <br>", "\n", "<br>\n")
	replace("next line to LF", "\u0085", "\n")
	replace("line separator to LF", "\u2028", "\n", "\u2029", "\n")
	replace("tabs to blanks", "\t", "    ")
	replace("tabs to a blank", "\t", " ")
	replace("four blanks to a tab", "    ", "\t")
	replace("vertical tab and form feed dropped", "\v", "", "\f", "")
	replace("no-break space to space", "\u00a0", " ")
	replace("narrow no-break space to space", "\u202f", " ")
	replace("ideographic space to space", "\u3000", " ")

	// Case.
	add("lower case", strings.ToLower)
	add("upper case", strings.ToUpper)
	add("lower case in Turkish", func(s string) string { return strings.ToLowerSpecial(unicode.TurkishCase, s) })
	add("upper case in Turkish", func(s string) string { return strings.ToUpperSpecial(unicode.TurkishCase, s) })
	add("case folding", cases.Fold().String)
	add("title case", cases.Title(language.English).String)
	add("first letter in upper case", func(s string) string { return first(s, unicode.ToUpper) })
	add("first letter in lower case", func(s string) string { return first(s, unicode.ToLower) })
	replace("long s to s", "ſ", "s")
	replace("Kelvin sign to K", "\u212a", "K")
	replace("sharp s to ss", "ß", "ss")

	// Typography.
	replace("typographic double quotes to straight", "“", `"`, "”", `"`, "„", `"`)
	replace("typographic single quotes to straight", "‘", "'", "’", "'", "‚", "'")
	replace("guillemets to quotes", "«", `"`, "»", `"`)
	replace("straight double quotes to typographic", `"`, "”")
	replace("apostrophe to typographic", "'", "’")
	replace("backtick to apostrophe", "`", "'")
	replace("en dash to hyphen", "–", "-")
	replace("em dash to two hyphens", "—", "--")
	replace("two hyphens to dash", "--", "–")
	replace("minus sign to hyphen", "−", "-")
	replace("no-break hyphen to hyphen", "\u2011", "-")
	replace("soft hyphens dropped", "\u00ad", "")
	replace("three full stops to ellipsis", "...", "…")
	replace("ellipsis to three full stops", "…", "...")
	replace("(c) to sign", "(c)", "©")
	replace("arrow to sign", "->", "→")
	replace("smiley to emoji", ":-)", "🙂")
	replace("shortcode to emoji", ":rocket:", "🚀")
	replace("emoji to shortcode", "🚀", ":rocket:")
	replace("fractions written out", "½", "1/2")
	replace("ligatures taken apart", "ﬁ", "fi")
	replace("prime to quote", "′", "'", "″", `"`)

	// Length, in characters and in bytes.
	for _, n := range []int{8, 16, 20, 30, 32, 40, 50, 60, 63, 64, 70, 72, 80, 100, 120, 128, 140, 150, 160, 200, 240, 250, 255, 256, 280, 300, 320, 400, 500, 512, 1000, 1024, 2000, 2048, 4000, 4096, 5000, 8000, 8191, 8192} {
		add(fmt.Sprintf("cut at %d characters", n), func(s string) string { return cut(s, n) })
	}
	add("cut at 255 bytes", func(s string) string { return strings.ToValidUTF8(s[:min(len(s), 255)], "") })
	before := func(what, mark string) {
		add("cut at "+what, func(s string) string { b, _, _ := strings.Cut(s, mark); return b })
	}
	before("the first NUL", "\x00")
	before("the first line end", "\n")
	before("the first empty line", "\n\n")
	before("the first full stop", ". ")
	before("the first #", "#")
	before("the first ;", ";")
	before("the first comma", ",")
	before("the first colon", ":")
	before("the first <", "<")
	before("the first ?", "?")
	before("the first &", "&")
	before("the first quote", `"`)
	regex("cut between words", ` \S*$`, "")

	// Encodings.
	add("UTF-8 read as Latin-1", func(s string) string { return misread(s, charmap.ISO8859_1) })
	add("UTF-8 read as Windows-1252", func(s string) string { return misread(s, charmap.Windows1252) })
	add("mojibake of Latin-1 repaired", func(s string) string { return repaired(s, charmap.ISO8859_1) })
	add("mojibake of Windows-1252 repaired", func(s string) string { return repaired(s, charmap.Windows1252) })
	add("to Latin-1 with ?", func(s string) string {
		return strings.Map(func(r rune) rune { return otherwise(r, r < 0x100, '?') }, s)
	})
	add("to ASCII with ?", func(s string) string {
		return strings.Map(func(r rune) rune { return otherwise(r, r < 0x80, '?') }, s)
	})
	runes("not ASCII dropped", func(r rune) bool { return r < 0x80 })
	runes("astral characters dropped", func(r rune) bool { return r < 0x10000 })
	add("astral characters to the replacement character", func(s string) string {
		return strings.Map(func(r rune) rune { return otherwise(r, r < 0x10000, utf8.RuneError) }, s)
	})
	runes("byte order marks dropped", func(r rune) bool { return r != 0xfeff })
	runes("zero width characters dropped", func(r rune) bool { return r != 0x200b && r != 0x200c && r != 0x200d && r != 0x2060 })
	runes("joiners dropped", func(r rune) bool { return r != 0x200d })
	runes("variation selectors dropped", func(r rune) bool { return r < 0xfe00 || r > 0xfe0f })
	runes("direction marks dropped", func(r rune) bool { return !unicode.Is(unicode.Bidi_Control, r) })
	runes("control characters dropped", func(r rune) bool { return !unicode.IsControl(r) || r == '\n' || r == '\t' || r == '\r' })
	add("control characters to blanks", func(s string) string {
		return strings.Map(func(r rune) rune { return otherwise(r, !unicode.IsControl(r), ' ') }, s)
	})
	runes("NUL dropped", func(r rune) bool { return r != 0 })
	runes("DEL dropped", func(r rune) bool { return r != 0x7f })
	runes("C1 dropped", func(r rune) bool { return r < 0x80 || r > 0x9f })
	runes("noncharacters dropped", func(r rune) bool { return r&0xfffe != 0xfffe && (r < 0xfdd0 || r > 0xfdef) })
	runes("private characters dropped", func(r rune) bool { return !unicode.Is(unicode.Co, r) })
	runes("combining marks dropped", func(r rune) bool { return !unicode.Is(unicode.Mn, r) })
	runes("emoji dropped", func(r rune) bool { return r < 0x1f300 || r > 0x1faff })
	runes("replacement characters dropped", func(r rune) bool { return r != utf8.RuneError })
	add("as a slug", func(s string) string {
		return strings.Trim(regexp.MustCompile(`[^a-z0-9]+`).ReplaceAllString(strings.ToLower(s), "-"), "-")
	})

	// Escapes, decoded or encoded once too often.
	add("entities decoded", html.UnescapeString)
	add("entities decoded twice", func(s string) string { return html.UnescapeString(html.UnescapeString(s)) })
	replace("&amp; decoded", "&amp;", "&")
	replace("&nbsp; decoded", "&nbsp;", "\u00a0")
	replace("numeric entities decoded", "&#39;", "'", "&#x27;", "'")
	add("HTML escaped", html.EscapeString)
	replace("& escaped", "&", "&amp;")
	replace("< escaped", "<", "&lt;", ">", "&gt;")
	replace("double quotes escaped", `"`, "&quot;")
	replace("apostrophes escaped", "'", "&#039;")
	regex("tags stripped", `<[^>]*>`, "")
	regex("scripts stripped", `(?i)</?script[^>]*>`, "")
	regex("comments of HTML stripped", `<!--|-->`, "")
	replace("CDATA opened", "<![CDATA[", "", "]]>", "")
	add("percent decoded", func(s string) string {
		return percent.ReplaceAllStringFunc(s, func(e string) string { d, _ := url.PathUnescape(e); return d })
	})
	replace("%20 decoded", "%20", " ")
	replace("%25 decoded", "%25", "%")
	add("percent encoded", url.QueryEscape)
	replace("blank to %20", " ", "%20")
	replace("+ to blank", "+", " ")
	replace("blank to +", " ", "+")
	replace(`\n to a line end`, `\n`, "\n")
	replace(`\t to a tab`, `\t`, "\t")
	replace("backslashes stripped", `\`, "")
	replace("backslashes halved", `\\`, `\`)
	replace("backslashes doubled", `\`, `\\`)
	replace("quotes get a backslash", `"`, `\"`, "'", `\'`)
	replace(`\" to "`, `\"`, `"`)
	replace(`\/ to /`, `\/`, "/")
	replace("/ escaped", "/", `\/`)
	add(`escapes with \u decoded`, func(s string) string {
		return escapedRune.ReplaceAllStringFunc(s, func(e string) string {
			n, _ := strconv.ParseUint(e[2:], 16, 32)
			return string(rune(n))
		})
	})
	replace("quotes of SQL doubled", "'", "''")
	replace("quotes of SQL halved", "''", "'")
	regex("comments of SQL cut", `--.*`, "")
	regex("comments of C dropped", `/\*.*?\*/`, "")
	replace("quoted-printable decoded", "=3D", "=")
	regex("ANSI colours dropped", "\x1b\\[[0-9;]*m", "")

	// Directives of templates and formats.
	replace("%% formatted", "%%", "%")
	regex("%s formatted", `%s`, "")
	regex("%d formatted", `%d`, "0")
	replace("%n formatted", "%n", "\n")
	replace("{{ formatted", "{{", "{", "}}", "}")
	regex("{{ x }} filled", `\{\{.*?\}\}`, "")
	regex("{name} filled", `\{[a-z]+\}`, "")
	regex("{0} filled", `\{\d\}`, "")
	regex("${x} filled", `\$\{[^}]*\}`, "")
	regex("$x filled", `\$[A-Za-z_]\w*`, "")
	regex("$1 filled", `\$[0-9&]`, "")
	regex(`\1 filled`, `\\[0-9]`, "")
	replace("$$ to $", "$$", "$")
	regex("@name filled", `@[a-z]+`, "")
	regex("!name filled", `![a-z]+`, "")
	regex("%name filled", `%[a-z]{2,}`, "")
	regex(":name filled", `:[a-z]+\b`, "")
	regex("[token:x] filled", `\[[a-z]+:[a-z]+\]`, "")
	regex("#{x} filled", `#\{[^}]*\}`, "")
	regex("<%= x %> filled", `<%=.*?%>`, "")
	regex("`x` run", "`[^`]*`", "")
	regex("$(x) run", `\$\([^)]*\)`, "")
	regex("emphasis of Markdown dropped", `\*\*([^*]+)\*\*`, "$1")
	regex("links of Markdown dropped", `\[([^\]]+)\]\([^)]*\)`, "$1")
	regex("headings of Markdown dropped", `(?m)^#+ `, "")
	regex("bullets of Markdown dropped", `(?m)^[*-] `, "")
	data := len(all)
	add("end with a full stop", func(s string) string { return strings.TrimRight(s, ".") + "." })
	regex("~ to the home", `(^|\s)~/`, "$1/home/")
	add("base64 decoded", func(s string) string {
		if d, err := base64.StdEncoding.DecodeString(s); err == nil && utf8.Valid(d) && len(s) > 3 {
			return string(d)
		}
		return s
	})
	regex("JSON in a text decoded", `^"(.*)"$`, "$1")
	regex("addresses linked", `(https?://[^\s<]+)`, `<a href="$1">$1</a>`)
	regex("mail addresses hidden", `\b[\w.]+@[\w.]+\b`, "[mail]")
	regex("paths hidden", `(/var|/home)/\S+`, "[path]")
	regex("internal addresses hidden", `\b10\.\d+\.\d+\.\d+\b`, "[address]")
	regex("secrets hidden", `(?i)(password|token|secret)=\S+`, "$1=***")
	regex("numbers of cards hidden", `\b\d{16}\b`, "****")
	regex("class names hidden", `\b[A-Z]\w+\\[A-Z]\w+`, "[class]")

	// Texts that look like something else.
	add("addresses normalised", func(s string) string {
		if u, err := url.Parse(s); err == nil && u.Host != "" {
			u.Host = strings.TrimSuffix(strings.ToLower(u.Host), ":443")
			u.Path = cmp.Or(u.Path, "/")
			return u.String()
		}
		return s
	})
	add("paths cleaned", func(s string) string {
		if strings.HasPrefix(s, "/") {
			return path.Clean(s)
		}
		return s
	})
	regex("UUIDs in lower case", `^[0-9A-F]{8}-[0-9A-F-]+$`, "a uuid")
	regex("times in UTC", `^\d{4}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d$`, "in UTC")
	regex("milliseconds dropped", `^(\d{4}-\d\d-\d\dT[\d:]+)\.\d+`, "$1")
	regex("milliseconds added", `^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)Z$`, "$1.000Z")
	regex("days to times", `^(\d{4}-\d\d-\d\d)$`, "${1}T00:00:00Z")
	regex("blank in a time to T", `^(\d{4}-\d\d-\d\d) (\d)`, "${1}T$2")
	to("integers to numbers", coerce(`^-?[1-9]\d{0,14}$`))
	to("decimals to numbers", coerce(`^-?\d+\.\d+$`))
	to("exponents to numbers", coerce(`^\d+e\d+$`))
	to("digits to numbers, zeros lost", func(s string) any {
		if regexp.MustCompile(`^0\d+$`).MatchString(s) {
			return json.Number(strings.TrimLeft(s[:len(s)-1], "0") + s[len(s)-1:])
		}
		return s
	})
	to("long digits to numbers", coerce(`^\d{16,19}$`))
	to("hexadecimal to numbers", func(s string) any {
		if n, err := strconv.ParseInt(s, 0, 64); err == nil && strings.HasPrefix(s, "0x") {
			return json.Number(strconv.FormatInt(n, 10))
		}
		return s
	})
	word := func(what string, value any, words ...string) {
		to(what, func(s string) any {
			if slices.Contains(words, s) {
				return value
			}
			return s
		})
	}
	word("true and false to booleans", true, "true", "false")
	word("yes and no to booleans", true, "yes", "no")
	word("on and off to booleans", true, "on", "off")
	word("Y and N to booleans", true, "Y", "N", "y", "n")
	word("null to null", nil, "null")
	word("~ to null", nil, "~")
	word("undefined to null", nil, "undefined", "None", "nil")
	word("empty to null", nil, "")
	word("NaN and Infinity to null", nil, "NaN", "Infinity", "-Infinity")
	word("N/A to null", nil, "N/A", "NA")
	to("JSON in a text parsed", func(s string) any {
		var v any
		if (strings.HasPrefix(s, "{") || strings.HasPrefix(s, "[")) && json.Unmarshal([]byte(s), &v) == nil {
			return v
		}
		return s
	})
	to("lists with commas taken apart", func(s string) any {
		if regexp.MustCompile(`^\w+(,\w+)+$`).MatchString(s) {
			return []any{s}
		}
		return s
	})
	to("texts in a list", func(s string) any { return []any{s} })
	to("one letter to a number", func(s string) any {
		if len(s) == 1 {
			return json.Number(strconv.Itoa(int(s[0])))
		}
		return s
	})
	regex("commas in numbers dropped", `^(\d{1,3}),(\d{3})$`, "$1$2")
	regex("decimal comma to point", `^(\d+),(\d+)$`, "$1.$2")
	regex("+ before digits dropped", `^\+(\d+)$`, "$1")
	regex("underscores in digits dropped", `^(\d+)_(\d+)$`, "$1$2")
	regex("digits of other scripts", `[٠-٩]`, "1")
	regex("percent sign dropped", `^(\d+)%$`, "$1")
	regex("trailing zeros dropped", `^(\d+\.\d*?)0+$`, "$1")
	regex("formulas disarmed", `^([=+@-])`, "'$1")
	ofData(data)
	return all
}

var (
	escapedRune = regexp.MustCompile(`\\u[0-9a-fA-F]{4}`)
	percent     = regexp.MustCompile(`%[2-7][0-9A-Fa-f]`)
)

func coerce(pattern string) func(string) any {
	r := regexp.MustCompile(pattern)
	return func(s string) any {
		if r.MatchString(s) {
			return json.Number(s)
		}
		return s
	}
}

func dropMarks(r rune) rune {
	if unicode.Is(unicode.Mn, r) {
		return -1
	}
	return r
}

func otherwise(r rune, keep bool, other rune) rune {
	if keep {
		return r
	}
	return other
}

func first(s string, change func(rune) rune) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(change(r)) + s[n:]
}

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	r := []rune(s)
	return string(r[:min(n, len(r))])
}

func misread(s string, as *charmap.Charmap) string {
	if d, err := as.NewDecoder().String(s); err == nil {
		return d
	}
	return s
}

// repaired reads each run of characters that could be bytes of UTF-8 in the wrong encoding, as libraries do that fix texts.
func repaired(s string, from *charmap.Charmap) string {
	return foreign.ReplaceAllStringFunc(s, func(run string) string {
		if b, err := from.NewEncoder().String(run); err == nil && utf8.ValidString(b) {
			return b
		}
		return run
	})
}

var foreign = regexp.MustCompile(`[^\x00-\x7f]{2,}`)
