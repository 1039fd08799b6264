package reports

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// Form is one form of a report: the file it is written to and how.
type Form struct {
	Name  string // as `report convert --to` names it
	File  string // its name in a report directory
	Write func(io.Writer, *Report) error
}

// Forms lists every form of a report, report.json first.
func Forms() []Form {
	return []Form{
		{"json", "report.json", WriteJSON},
		{"html", "report.html", WriteHTML},
		{"junit", "junit.xml", WriteJUnit},
		{"sarif", "report.sarif", WriteSARIF},
		{"markdown", "summary.md", WriteMarkdown},
		{"badge-svg", "badge.svg", WriteBadgeSVG},
		{"badge-json", "badge.json", WriteBadgeJSON},
	}
}

// FormNamed finds a form by its name.
func FormNamed(name string) (Form, error) {
	forms := Forms()
	i := slices.IndexFunc(forms, func(f Form) bool { return f.Name == name })
	if i < 0 {
		names := make([]string, len(forms))
		for i, f := range forms {
			names[i] = f.Name
		}
		return Form{}, fmt.Errorf("no report form %q: there are %s", name, list(names))
	}
	return forms[i], nil
}

// WriteAll writes every form of r into dir, which it makes where it is missing. All forms come from report.json as it
// was written, so that they agree to the byte; each file appears whole or not at all.
func WriteAll(r *Report, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make report directory: %w", err)
	}
	written, err := canonical(r)
	if err != nil {
		return err
	}
	for _, form := range Forms() {
		var b bytes.Buffer
		if err := form.Write(&b, written); err != nil {
			return fmt.Errorf("write %s: %w", form.File, err)
		}
		if err := replaceFile(filepath.Join(dir, form.File), b.Bytes()); err != nil {
			return fmt.Errorf("write %s: %w", form.File, err)
		}
	}
	return nil
}

// canonical is r as one reads it back from its report.json.
func canonical(r *Report) (*Report, error) {
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

// replaceFile writes data beside path and moves it there.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".bridgecheck-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // a no-op once it is moved
	if _, err := f.Write(data); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
