package reports

import (
	"bytes"
	_ "embed" // report.schema.json
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

//go:embed report.schema.json
var schema []byte

// Schema gives the JSON Schema (2020-12) of report.json.
func Schema() []byte { return bytes.Clone(schema) }

// WriteJSON writes r as report.json: bounded, indented, with its results counted anew and the schema version filled in
// where it is missing.
func WriteJSON(w io.Writer, r *Report) error {
	b := bounded(r, reportLimits)
	b.Summarize()
	if b.Schema == "" {
		b.Schema = SchemaVersion
	}
	data, err := json.MarshalIndent(b, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, err = w.Write(append(data, '\n'))
	return err
}

// maxReport bounds what ReadFile reads, in bytes; reportLimits keep what we write far below it.
const maxReport = 256 << 20

// ReadFile reads a report.json, or the one in a report directory. It refuses what is not one: another version, unknown members, unknown verdicts, a
// clause that is there twice, a file that is cut short.
func ReadFile(path string) (*Report, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "report.json")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil {
		return nil, fmt.Errorf("read report: %w", err)
	}
	if len(data) > maxReport {
		return nil, fmt.Errorf("%s is larger than %d MiB: no report", path, maxReport>>20)
	}
	r, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Parse reads the bytes of a report.json as ReadFile does.
func Parse(data []byte) (*Report, error) {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("the file is empty: no report")
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
	return &r, nil
}

// clauseID is what a clause's id may look like; every form relies on it to need no escaping.
var clauseID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]{0,127}$`)

// check holds what was read against what every writer of a report keeps.
func (r *Report) check() error {
	levels := []Level{MUST, SHOULD, MAY}
	seen := map[string]int{}
	for i, result := range r.Results {
		first, twice := seen[result.ID]
		switch {
		case !clauseID.MatchString(result.ID):
			return fmt.Errorf("results[%d] has the id %q: it should be a clause such as list/answers-json", i, line(result.ID, 100))
		case twice:
			return fmt.Errorf("results[%d] is %s again (first at %d): each clause stands in a report once", i, result.ID, first)
		case !slices.Contains(Verdicts(), result.Verdict):
			return fmt.Errorf("results[%d] (%s) has the verdict %q: allowed are %s", i, result.ID, result.Verdict, list(Verdicts()))
		case !slices.Contains(levels, result.Level):
			return fmt.Errorf("results[%d] (%s) has the level %q: allowed are %s", i, result.ID, result.Level, list(levels))
		}
		seen[result.ID] = i
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
		err = fmt.Errorf("%s is a %s, which does not belong there", kind.Field, kind.Value)
	}
	message := strings.TrimPrefix(err.Error(), "json: ")
	if offset < 0 {
		return errors.New(message)
	}
	before := data[:min(int(offset), len(data))]
	return fmt.Errorf("line %d, column %d: %s", 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')-1, message)
}

func list[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = string(v)
	}
	return strings.Join(names, ", ")
}
