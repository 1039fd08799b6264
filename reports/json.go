package reports

import (
	"bytes"
	"cmp"
	_ "embed" // report.schema.json
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/internal/wholefile"
)

//go:embed report.schema.json
var schema []byte

// Schema returns the JSON Schema (2020-12) of report.json.
func Schema() []byte { return bytes.Clone(schema) }

// WriteJSON writes r as report.json: bounded, indented, with its results counted again and the schema version filled in
// where it is missing.
func WriteJSON(w io.Writer, r *Report) error {
	b := bounded(r, reportLimits)
	b.Summarize()
	b.Causes = b.Groups()
	b.Schema = cmp.Or(b.Schema, SchemaVersion)
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// Canonical is r as one reads it back from its report.json.
func (r *Report) Canonical() (*Report, error) {
	var b bytes.Buffer
	if err := WriteJSON(&b, r); err != nil {
		return nil, err
	}
	written, err := parse(b.Bytes())
	if err != nil {
		return nil, fmt.Errorf("this run gives no valid report: %w", err)
	}
	return written, nil
}

// maxReport bounds what ReadFile reads, in bytes; reportLimits keep what we write far below it.
const maxReport = 32 << 20

// ReadFile reads a report.json, or the one in a report directory. It refuses what is not one: another version, unknown
// members, unknown verdicts, a clause that is there twice, a file that is cut short, whatever breaks the schema.
func ReadFile(path string) (*Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "report.json")
	}
	if info, err := os.Stat(path); err == nil && info.Size() > maxReport {
		return nil, tooLarge(path)
	}
	data, err := wholefile.Read(path, maxReport)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if len(data) > maxReport {
		return nil, tooLarge(path)
	}
	r, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, r.readBodies(filepath.Dir(path))
}

func tooLarge(path string) error {
	return fmt.Errorf("%s is larger than %d MiB: no report that bridgecheck wrote", path, maxReport>>20)
}

// Parse reads the bytes of a report.json as ReadFile does.
func Parse(data []byte) (*Report, error) {
	r, err := parse(data)
	if err != nil {
		return nil, err
	}
	if err := conforms(data); err != nil {
		return nil, err
	}
	return r, nil
}

// parse is Parse for what was just written.
func parse(data []byte) (*Report, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty: no report")
	}
	if err := Affordable(data); err != nil {
		return nil, err
	}
	var version struct {
		Schema string `json:"schema"`
	}
	if err := json.Unmarshal(data, &version); err != nil {
		return nil, located(data, err)
	}
	if version.Schema != SchemaVersion {
		return nil, fmt.Errorf("schema is %q, this bridgecheck reads %q", version.Schema, SchemaVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	decoder.UseNumber() // settings keep their numbers as written
	var r Report
	if err := decoder.Decode(&r); err != nil {
		return nil, located(data, err)
	}
	if err := r.check(); err != nil {
		return nil, err
	}
	r.Causes = nil
	return &r, nil
}

var compiledSchema = sync.OnceValues(func() (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource("schema:///report.schema.json", doc); err != nil {
		return nil, err
	}
	return compiler.Compile("schema:///report.schema.json")
})

// conforms validates data with the published schema and names the first place that breaks it.
func conforms(data []byte) error {
	compiled, err := compiledSchema()
	if err != nil {
		return fmt.Errorf("compile the schema of report.json: %w", err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return located(data, err)
	}
	var broken *jsonschema.ValidationError
	if err := compiled.Validate(doc); !errors.As(err, &broken) {
		return err
	}
	for len(broken.Causes) > 0 {
		broken = broken.Causes[0]
	}
	return fmt.Errorf("%s: %s; `bridgecheck report schema` prints what a report has to be", place(broken.InstanceLocation), terminal.Line(broken.ErrorKind.LocalizedString(message.NewPrinter(language.English)), 500))
}

// place writes a JSON Pointer's words as results[3].evidence.
func place(words []string) string {
	var b strings.Builder
	for _, word := range words {
		if _, err := strconv.Atoi(word); err == nil {
			fmt.Fprintf(&b, "[%s]", word)
			continue
		}
		if b.Len() > 0 {
			b.WriteString(".")
		}
		b.WriteString(terminal.Line(word, 100))
	}
	return cmp.Or(b.String(), "the report")
}

// clauseID is what a clause's id may look like; every format relies on it to need no escaping.
var clauseID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)

// check finds what no writer of a report writes.
func (r *Report) check() error {
	levels := []Level{MUST, SHOULD, MAY}
	seen := map[string]int{}
	for i, result := range r.Results {
		first, twice := seen[result.ID]
		switch {
		case !clauseID.MatchString(result.ID):
			return fmt.Errorf("results[%d] has the id %q: it should be a clause such as list/answers-json", i, terminal.Line(result.ID, 100))
		case twice:
			return fmt.Errorf("results[%d] is %s again (first at %d): each clause stands in a report once", i, result.ID, first)
		case !slices.Contains(Verdicts(), result.Verdict):
			return fmt.Errorf("results[%d] (%s) has the verdict %q: allowed are %s", i, result.ID, result.Verdict, list(Verdicts()))
		case !slices.Contains(levels, result.Level):
			return fmt.Errorf("results[%d] (%s) has the level %q: allowed are %s", i, result.ID, result.Level, list(levels))
		}
		for j, f := range result.Findings {
			if f.Request != nil && (*f.Request < 0 || *f.Request >= len(result.Evidence)) {
				return fmt.Errorf("results[%d].findings[%d] (%s) blames the exchange %d: the evidence has %d", i, j, result.ID, *f.Request, len(result.Evidence))
			}
		}
		seen[result.ID] = i
	}
	if r.Since == nil {
		return nil
	}
	for _, group := range r.Since.Groups() {
		for _, change := range group.Changes {
			known := func(v Verdict) bool { return v == "" || slices.Contains(Verdicts(), v) }
			if !clauseID.MatchString(change.ID) || !slices.Contains(levels, change.Level) || !known(change.Old) || !known(change.New) {
				return fmt.Errorf("since holds the change %q %q from %q to %q: it should be a clause, a level and two verdicts",
					terminal.Line(change.ID, 100), terminal.Line(string(change.Level), 100), terminal.Line(string(change.Old), 100), terminal.Line(string(change.New), 100))
			}
		}
	}
	return nil
}

// located says where in data a decoding error stands, by line and column.
func located(data []byte, err error) error {
	offset := int64(-1)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && syntax.Offset >= int64(len(data)):
		return fmt.Errorf("the JSON ends early, after %d bytes: the file was cut short", len(data))
	case syntax != nil:
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
		err = fmt.Errorf("%s is of the kind %s, which does not belong there", cmp.Or(kind.Field, "the report"), kind.Value)
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if offset < 0 {
		return errors.New(text)
	}
	before := data[:min(int(offset), len(data))]
	return fmt.Errorf("line %d, column %d: %s", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')-1, text)
}

func list[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}

// maxValues bounds the values of a report, which take many times their bytes: a run writes some ten thousand.
const maxValues = 500_000

// Affordable refuses what would take too much memory to read as a report, or as a part of one.
func Affordable(data []byte) error {
	if n := valuesOf(data); n > maxValues {
		return fmt.Errorf("it has %d values, of %d at most: no report that bridgecheck wrote", n, maxValues)
	}
	return nil
}

// valuesOf counts the values of a JSON text by what stands between them, outside of strings.
func valuesOf(data []byte) (n int) {
	quoted := false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '{' || c == '['):
			n++
		}
	}
	return n
}
