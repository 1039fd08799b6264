// Package curl writes a request as a curl command line for a POSIX shell. It sends nothing and reads nothing back.
//
// Its invariant: whatever bytes a request holds, a shell passes exactly those bytes to curl (without NUL, outside of the
// body), runs nothing else and expands only the variables that the request names. A line is printable UTF-8: control
// characters, which a terminal obeys when a line is pasted, are octal escapes of printf.
package curl

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Command is a request.
type Command struct {
	Method string
	User   Value // NAME:PASSWORD of HTTP Basic; the zero value is none
	Header []Field
	Body   string
	URL    string

	BodyFile string // which holds Body; "": it stands on the line
}

// Value is data, with the value of a shell variable after it.
type Value struct {
	Text     string
	Variable string // a Name, without $; "": none
}

// Field is a header of one value.
type Field struct {
	Name string
	Value
}

// Name turns text into the name of a shell variable: letters, digits and underscores, all in upper case.
func Name(text string) string {
	name := strings.Map(func(r rune) rune {
		if isLetterOrDigit(r) {
			return r
		}
		return '_'
	}, strings.ToUpper(text))
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "_" + name
	}
	return name
}

func isLetterOrDigit(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

// isPlain holds for what means itself in a shell, bare and in double quotes.
func isPlain(r rune) bool { return isLetterOrDigit(r) || strings.ContainsRune("_-./:,=@", r) }

// maxArgument is the longest body on the command line, in bytes; systems allow 128 KiB for one argument.
const maxArgument = 96 << 10

const (
	noContentType = "Content-Type:" // makes curl leave the header out
	fromStdin     = "@-"
)

// String is the command line.
func (c Command) String() string {
	words := []string{"curl", "-i"}
	switch {
	case c.Method == http.MethodGet && c.Body == "":
	case c.Method == http.MethodHead && c.Body == "":
		words = append(words, "-I")
	default: // with a body curl would send a POST
		words = append(words, "-X", Quote(c.Method))
	}
	if strings.ContainsAny(c.URL, "[]{}") { // of which curl would make several requests
		words = append(words, "-g")
	}
	if strings.Contains(c.URL, "/.") { // curl would resolve /../ itself
		words = append(words, "--path-as-is")
	}
	if c.User != (Value{}) {
		words = append(words, "-u", c.User.word())
	}
	typed := false
	for _, f := range slices.SortedStableFunc(slices.Values(c.Header), func(a, b Field) int { return strings.Compare(a.Name, b.Name) }) {
		typed = typed || strings.EqualFold(f.Name, "Content-Type")
		words = append(words, "-H", f.word())
	}
	if c.Body != "" && !typed { // else curl says that it is a form
		words = append(words, "-H", noContentType)
	}
	input := ""
	switch {
	case c.Body == "":
	case c.BodyFile != "":
		words = append(words, "--data-binary", Quote("@"+c.BodyFile))
	case len(c.Body) > maxArgument || !printable(c.Body):
		input = "printf " + format(c.Body, inPipe) + " | "
		words = append(words, "--data-binary", fromStdin)
	case strings.HasPrefix(c.Body, "@"): // else curl reads a file
		words = append(words, "--data-raw", Quote(c.Body))
	default:
		words = append(words, "--data-binary", Quote(c.Body))
	}
	return input + strings.Join(append(words, Quote(c.URL)), " ")
}

// word is the field as curl takes it.
func (f Field) word() string {
	if f.Value == (Value{}) { // after a colon curl would take the header away
		return Quote(f.Name + ";")
	}
	return Value{f.Name + ": " + f.Text, f.Variable}.word()
}

// word makes the value one word of a shell in which nothing but the variable is expanded.
func (v Value) word() string {
	switch {
	case v.Variable == "":
		return Quote(v.Text)
	case !strings.ContainsFunc(v.Text, func(r rune) bool { return r != ' ' && !isPlain(r) }):
		return `"` + v.Text + "$" + Name(v.Variable) + `"`
	}
	return Quote(v.Text) + `"$` + Name(v.Variable) + `"`
}

// Quote makes s one word of a shell in which nothing is expanded. It drops NUL, which no argument can hold.
func Quote(s string) string {
	s = strings.ReplaceAll(s, "\x00", "")
	switch {
	case s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !isPlain(r) }):
		return s
	case printable(s):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	text := strings.TrimRight(s, "\n") // a substitution drops the line ends after it
	word := ""
	if text != "" {
		word = `"$(printf ` + format(text, inSubstitution) + `)"`
	}
	if text != s {
		word += "'" + s[len(text):] + "'"
	}
	return word
}

// printable reports whether a terminal shows s as it is, and JSON keeps it.
func printable(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsGraphic(r) })
}

// What of printable ASCII stays as it is in a format of printf.
var (
	inPipe         = func(c byte) bool { return c >= ' ' && c <= '~' && c != '\'' && c != '\\' && c != '%' }
	inSubstitution = func(c byte) bool { return c == ' ' || isPlain(rune(c)) } // the quotes around it leave `!` to the history
)

// format is the quoted format with which printf prints s.
func format(s string, stays func(byte) bool) string {
	var b strings.Builder
	b.WriteByte('\'')
	for i := range len(s) {
		if stays(s[i]) && (i > 0 || s[i] != '-') { // a first - would begin an option
			b.WriteByte(s[i])
			continue
		}
		fmt.Fprintf(&b, `\%03o`, s[i])
	}
	b.WriteByte('\'')
	return b.String()
}
