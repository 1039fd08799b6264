package phpschema

import (
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"
)

// pattern is a JSON Schema pattern as PHP reads it: PCRE, with UTF-8 and Unicode classes (the flag u).
type pattern struct{ re *regexp2.Regexp }

// matchTime ends a match that backtracks without end; PCRE counts its steps and gives up, too.
const matchTime = time.Second

// patterns keeps what was compiled: a site validates many values by few patterns.
var patterns struct {
	sync.Mutex
	compiled map[string]*pattern // nil: invalid
}

const maxPatterns = 1000

// compilePattern returns nil for a pattern that PCRE refuses.
func compilePattern(source string) *pattern {
	patterns.Lock()
	defer patterns.Unlock()
	if p, known := patterns.compiled[source]; known {
		return p
	}
	if patterns.compiled == nil || len(patterns.compiled) >= maxPatterns {
		patterns.compiled = map[string]*pattern{}
	}
	var p *pattern
	if translated, ok := translatePattern(source); ok {
		if re, err := regexp2.Compile(translated, regexp2.None); err == nil {
			re.MatchTimeout = matchTime
			p = &pattern{re}
		}
	}
	patterns.compiled[source] = p
	return p
}

// match reports whether the pattern matches; one that is invalid, or takes too long, does not.
func (p *pattern) match(s string) bool {
	if p == nil {
		return false
	}
	ok, err := p.re.MatchString(s)
	return err == nil && ok
}

// What PCRE's Unicode classes hold. The engine's own add marks and connectors.
const (
	wordClass  = `\p{L}\p{N}_`
	digitClass = `\p{Nd}`
	spaceClass = `\p{Z}\t-\r\x85`
	noWord     = `\p{M}\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}\u203F\u2040\u2054\uFE33\uFE34\uFE4D-\uFE4F\uFF3F\p{S}\p{Z}\p{C}`
	noSpace    = `\p{L}\p{M}\p{N}\p{P}\p{S}\x00-\x08\x0E-\x1F\x7F-\x84\x86-\x9F\p{Cf}\p{Co}\p{Cn}`
	boundary   = `(?:(?<=[` + wordClass + `])(?![` + wordClass + `])|(?<![` + wordClass + `])(?=[` + wordClass + `]))`
	noBoundary = `(?:(?<=[` + wordClass + `])(?=[` + wordClass + `])|(?<![` + wordClass + `])(?![` + wordClass + `]))`
)

// Escapes of PCRE that the engine does not have, or reads differently: outside of a class, and within one ("" where PCRE has none).
var escapes = map[byte][2]string{
	'w': {`[` + wordClass + `]`, wordClass}, 'W': {`[^` + wordClass + `]`, noWord},
	'd': {`[` + digitClass + `]`, digitClass}, 'D': {`[^` + digitClass + `]`, `\P{Nd}`},
	's': {`[` + spaceClass + `]`, spaceClass}, 'S': {`[^` + spaceClass + `]`, noSpace},
	'h': {`[\t\p{Zs}]`, `\t\p{Zs}`}, 'H': {`[^\t\p{Zs}]`, ""},
	'v': {`[\n-\r\x85\u2028\u2029]`, `\n-\r\x85\u2028\u2029`}, 'V': {`[^\n-\r\x85\u2028\u2029]`, ""},
	'R': {`(?>\r\n|[\n-\r\x85\u2028\u2029])`, ""}, 'N': {`[^\n]`, ""},
	'b': {boundary, `\x08`}, 'B': {noBoundary, ""}, 'z': {`\z`, ""}, 'Z': {`\Z`, ""}, 'A': {`\A`, ""},
}

// posixClasses are those of [[:NAME:]] under Unicode classes.
var posixClasses = map[string]string{
	"alpha": `\p{L}`, "alnum": `\p{L}\p{N}`, "digit": `\p{Nd}`, "lower": `\p{Ll}`, "upper": `\p{Lu}`, "word": wordClass,
	"space": spaceClass, "blank": `\t\p{Zs}`, "punct": `\p{P}$+<=>^` + "`" + `|~`, "xdigit": `0-9A-Fa-f`, "cntrl": `\p{Cc}`, "ascii": `\x00-\x7F`,
}

var (
	// The library escapes each ~, its delimiter, so that one that is escaped already ends the pattern.
	endsEarly  = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\\~`)
	refused    = regexp.MustCompile(`^\\[uULlNkgG]`) // escapes that PCRE refuses, or that need what follows
	codePoint  = regexp.MustCompile(`^\\x\{([0-9A-Fa-f]{1,4})\}`)
	property   = regexp.MustCompile(`^\\([pP])(\{\^?[A-Za-z_&]+\}|[A-Z])`)
	backwards  = regexp.MustCompile(`^\\(?:k(?:<(\w+)>|'(\w+)'|\{(\w+)\})|g(?:\{?(\d+)\}?|\{(\w+)\}))`)
	quantifier = regexp.MustCompile(`^(?:[*+?]|\{\d+(?:,\d*)?\})`)
	posix      = regexp.MustCompile(`^\[:(\^?)([a-z]+):\]`)
)

// translatePattern writes a PCRE for the engine; ok is false where PCRE refuses it, or PHP takes it for another one with flags.
func translatePattern(source string) (string, bool) {
	if endsEarly.MatchString(source) {
		return "", false
	}
	t := translator{in: source}
	return t.sequence()
}

type translator struct {
	in   string
	out  strings.Builder
	atom []int // where the last atom began, of each open group
}

func (t *translator) sequence() (string, bool) {
	t.atom = []int{-1}
	for t.in != "" {
		last := len(t.atom) - 1
		switch c := t.in[0]; {
		case strings.HasPrefix(t.in, `\Q`):
			text, rest, _ := strings.Cut(t.in[2:], `\E`)
			for _, r := range text {
				t.atom[last] = t.out.Len()
				t.out.WriteString(regexp2.Escape(string(r)))
			}
			t.in = rest
		case strings.HasPrefix(t.in, `\E`):
			t.in = t.in[2:]
		case c == '\\':
			t.atom[last] = t.out.Len()
			if !t.escape(false) {
				return "", false
			}
		case c == '[':
			t.atom[last] = t.out.Len()
			if !t.class() {
				return "", false
			}
		case c == '(':
			t.atom[last] = t.out.Len()
			t.atom = append(t.atom, -1)
			t.open()
		case c == ')':
			if last == 0 {
				return "", false
			}
			t.atom = t.atom[:last]
			t.take(1)
		case quantifier.MatchString(t.in):
			if t.atom[last] < 0 {
				return "", false // quantifier does not follow a repeatable item
			}
			t.quantify(t.atom[last])
			t.atom[last] = -1
		case c == '|' || c == '^':
			t.atom[last] = -1
			t.take(1)
		default:
			size := len(string([]rune(t.in)[:1]))
			t.atom[last] = t.out.Len()
			if c == '{' || c == '}' || c == ' ' || c == '#' {
				t.out.WriteByte('\\')
			}
			t.take(size)
		}
	}
	return t.out.String(), len(t.atom) == 1
}

func (t *translator) take(n int) {
	t.out.WriteString(t.in[:n])
	t.in = t.in[n:]
}

// quantify writes a quantifier; a possessive one makes an atomic group of its atom.
func (t *translator) quantify(atom int) {
	q := quantifier.FindString(t.in)
	t.in = t.in[len(q):]
	switch {
	case strings.HasPrefix(t.in, "+"):
		t.in = t.in[1:]
		text := t.out.String()
		t.out.Reset()
		t.out.WriteString(text[:atom] + "(?>" + text[atom:] + q + ")")
	case strings.HasPrefix(t.in, "?"):
		t.in = t.in[1:]
		t.out.WriteString(q + "?")
	default:
		t.out.WriteString(q)
	}
}

// open writes the beginning of a group; names are written as the engine has them.
func (t *translator) open() {
	switch {
	case strings.HasPrefix(t.in, "(?P<"):
		t.in = t.in[len("(?P<"):]
		t.out.WriteString("(?<")
	case strings.HasPrefix(t.in, "(?P="), strings.HasPrefix(t.in, "(?P>"):
		name, _, _ := strings.Cut(t.in[len("(?P="):], ")")
		t.in = t.in[min(len(t.in), len("(?P=")+len(name)):]
		t.out.WriteString(`(?:\k<` + name + `>`)
	case strings.HasPrefix(t.in, "(?"):
		n := 2
		for n < len(t.in) && strings.IndexByte("<=!:>#imsxn-", t.in[n]) >= 0 {
			n++
		}
		t.take(n)
	default:
		t.take(1)
	}
}

func (t *translator) escape(inClass bool) bool {
	in := 0
	if inClass {
		in = 1
	}
	if m := codePoint.FindStringSubmatch(t.in); m != nil {
		t.in = t.in[len(m[0]):]
		t.out.WriteString(`\u` + strings.Repeat("0", 4-len(m[1])) + m[1])
		return true
	}
	if m := property.FindStringSubmatch(t.in); m != nil {
		name, letter := strings.Trim(m[2], "{}"), m[1]
		if name = strings.TrimPrefix(name, "^"); "{^"+name+"}" == m[2] {
			letter = map[string]string{"p": "P", "P": "p"}[letter]
		}
		if name == "L&" || name == "Any" {
			return false // not translated: the library is asked for neither
		}
		t.in = t.in[len(m[0]):]
		t.out.WriteString(`\` + letter + "{" + name + "}")
		return true
	}
	if m := backwards.FindStringSubmatch(t.in); m != nil && !inClass {
		t.in = t.in[len(m[0]):]
		t.out.WriteString(`(?:\k<` + strings.Join(m[1:], "") + ">)")
		return true
	}
	if len(t.in) < 2 {
		return false // \ at the end of the pattern
	}
	c := t.in[1]
	if as, ok := escapes[c]; ok {
		if inClass && as[1] == "" {
			return false
		}
		t.in = t.in[2:]
		t.out.WriteString(as[in])
		return true
	}
	letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
	if refused.MatchString(t.in) || letter && strings.IndexByte("aefnrtxcKGX0", c) < 0 {
		return false
	}
	t.out.WriteByte('\\')
	t.in = t.in[1:]
	t.take(len(string([]rune(t.in)[:1])))
	return true
}

// class writes a class in brackets. A ] that comes first is one of its characters.
func (t *translator) class() bool {
	t.take(1)
	if strings.HasPrefix(t.in, "^") {
		t.take(1)
	}
	if strings.HasPrefix(t.in, "]") {
		t.out.WriteString(`\]`)
		t.in = t.in[1:]
	}
	for t.in != "" {
		switch c := t.in[0]; {
		case c == ']':
			t.take(1)
			return true
		case c == '\\':
			if !t.escape(true) {
				return false
			}
		case c == '[':
			if m := posix.FindStringSubmatch(t.in); m != nil {
				as, known := posixClasses[m[2]]
				if !known || m[1] != "" {
					return false
				}
				t.in = t.in[len(m[0]):]
				t.out.WriteString(as)
				continue
			}
			t.out.WriteString(`\[`)
			t.in = t.in[1:]
		default:
			t.take(1)
		}
	}
	return false
}
