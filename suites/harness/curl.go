package harness

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/redact"
)

// Curl is a request as the command line in a report has it. Where a credential belongs, its values and its URL hold a
// shell variable.
type Curl struct {
	Method string
	User   string // NAME:PASSWORD of HTTP Basic; "": none
	Header http.Header
	Body   string
	URL    string
	Target string // of the request line, where it is not that of URL
}

// curl is a command line that sends the answer's request again, with shell variables where a secret was.
func (t *T) curl(a *Response) string {
	c := Curl{Method: a.Method, Header: http.Header{}, Body: t.Redact.Text(a.Shown), URL: t.Redact.Text(t.target(a)), Target: t.Redact.Text(a.Target)}
	prefix := strings.ToUpper(shellName(a.Who.String())) + "_"
	for name, values := range a.Sent {
		for _, value := range values {
			scheme, rest, _ := strings.Cut(value, " ")
			secret := t.Redact.Text(value) != value
			switch name = http.CanonicalHeaderKey(name); {
			case secret && name == "Authorization" && scheme == "Basic" && basicUser(rest) != "":
				c.User = t.Redact.Text(basicUser(rest)) + ":$" + prefix + "PASSWORD"
			case secret && name == "Authorization":
				c.Header.Add(name, t.Redact.Text(scheme)+" $"+prefix+"TOKEN")
			case secret:
				c.Header.Add(name, "$"+prefix+strings.ToUpper(shellName(name)))
			default:
				c.Header.Add(name, value)
			}
		}
	}
	return c.String()
}

// basicUser is the account's name in the base64 of Basic credentials; "" when there is none.
func basicUser(encoded string) string {
	plain, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return ""
	}
	name, _, _ := strings.Cut(string(plain), ":")
	return name
}

// noContentType makes curl leave the header out.
const noContentType = "Content-Type:"

// String is the command line for a POSIX shell.
func (c Curl) String() string {
	words := []string{"curl", "-i"}
	switch {
	case c.Method == http.MethodGet && c.Body == "":
	case c.Method == http.MethodHead && c.Body == "":
		words = append(words, "-I")
	default: // with a body curl would send a POST
		words = append(words, "-X", quote(c.Method))
	}
	if strings.ContainsAny(c.URL, "[]{}") { // of which curl would make several requests
		words = append(words, "-g")
	}
	if c.Target != "" {
		words = append(words, "--request-target", quote(c.Target))
	}
	if c.User != "" {
		words = append(words, "-u", withVariable(c.User))
	}
	names := make([]string, 0, len(c.Header))
	for name := range c.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range c.Header[name] {
			words = append(words, "-H", withVariable(name+": "+value))
		}
	}
	if c.Body != "" && c.Header.Get("Content-Type") == "" { // else curl says that it is a form
		words = append(words, "-H", noContentType)
	}
	switch {
	case strings.HasPrefix(c.Body, "@"): // else curl reads a file
		words = append(words, "--data-raw", quote(c.Body))
	case c.Body != "":
		words = append(words, "--data-binary", quote(c.Body))
	}
	return strings.Join(append(words, quote(c.URL)), " ")
}

// withVariable makes s one word of a POSIX shell in which a variable at the end stays one.
func withVariable(s string) string {
	before, name, ok := strings.Cut(s, "$")
	if !ok || name == "" || shellName(name) != name || name[0] < 'A' || name[0] > 'Z' {
		return quote(s)
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "`", "\\`").Replace(before) + `$` + name + `"`
}

// quote makes s one word of a POSIX shell.
func quote(s string) string {
	if s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !isShellSafe(r) }) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func isShellSafe(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./:,=@", r)
}

// shellName turns s into what may be a variable's name in a shell.
func shellName(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '-' && r != '.' && isShellSafe(r) && !strings.ContainsRune("/:,=@", r) {
			return r
		}
		return '_'
	}, s)
}

// ParseCurl reads a command line that String wrote, with getenv for the variables in it. The error says which variable
// is not set, or what about the line nobody can send again.
func ParseCurl(line string, getenv func(string) string) (Curl, error) {
	words, err := shellWords(line, getenv)
	if err != nil {
		return Curl{}, err
	}
	if len(words) < 3 || words[0] != "curl" || words[1] != "-i" {
		return Curl{}, fmt.Errorf("the report has no curl line that could be sent again")
	}
	c := Curl{Method: http.MethodGet, Header: http.Header{}}
	for words = words[2:]; len(words) > 1; words = words[2:] {
		value := words[1]
		switch words[0] {
		case "-I":
			c.Method, words = http.MethodHead, append([]string{""}, words...)
		case "-g":
			words = append([]string{""}, words...)
		case "-X":
			c.Method = value
		case "-u":
			c.User = value
		case "--request-target":
			c.Target = value
		case "-H":
			if name, text, _ := strings.Cut(value, ": "); name != noContentType {
				c.Header.Add(name, text)
			}
		case "--data-binary", "--data-raw":
			c.Body = value
		default:
			return Curl{}, fmt.Errorf("the curl line has a word that this bridgecheck does not write: %s", words[0])
		}
	}
	if len(words) == 1 {
		c.URL = words[0]
	}
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" {
		return Curl{}, fmt.Errorf("the curl line names no URL")
	}
	if strings.Contains(line, redact.Mark) {
		return Curl{}, fmt.Errorf("the request held a secret in its URL or body, which the report does not have: it cannot be sent again")
	}
	return c, nil
}

// shellWords splits a line as a POSIX shell does that knows quotes and simple variables, and nothing else.
func shellWords(line string, getenv func(string) string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
			continue
		case '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return nil, fmt.Errorf("the curl line has a quote without an end")
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
		case '\\':
			if i++; i == len(line) {
				return nil, fmt.Errorf("the curl line ends in a backslash")
			}
			word.WriteByte(line[i])
		case '"':
			length, err := doubleQuoted(line[i+1:], &word, getenv)
			if err != nil {
				return nil, err
			}
			i += length
		default:
			word.WriteByte(c)
		}
		begun = true
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// doubleQuoted reads up to the closing quote and returns how many bytes that was, the quote included.
func doubleQuoted(line string, word *strings.Builder, getenv func(string) string) (length int, err error) {
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case '"':
			return i + 1, nil
		case '\\':
			if i++; i < len(line) {
				word.WriteByte(line[i])
			}
		case '$':
			end := i + 1
			for end < len(line) && shellName(line[end:end+1]) == line[end:end+1] {
				end++
			}
			name := line[i+1 : end]
			value := getenv(name)
			if value == "" {
				return 0, fmt.Errorf("the environment variable %s is not set: the request needs it", name)
			}
			word.WriteString(value)
			i = end - 1
		default:
			word.WriteByte(c)
		}
	}
	return 0, fmt.Errorf("the curl line has a quote without an end")
}
