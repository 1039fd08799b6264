package reports

import "io"

// ConvertOptions say what Convert turns into what.
type ConvertOptions struct {
	Report   string // a report.json or a directory with one
	Form     string // a name of Forms, or "annotations" for GitHub's workflow commands
	Previous string // an earlier report, whose differences the written one is to tell; empty: those that Report tells
}

// Convert writes a report that stands in a file in another form.
func Convert(w io.Writer, o ConvertOptions) error {
	r, err := ReadFile(o.Report)
	if err != nil {
		return err
	}
	if o.Previous != "" {
		previous, err := ReadFile(o.Previous)
		if err != nil {
			return err
		}
		r.Since = Compare(previous, r)
	}
	if o.Form == "annotations" {
		return WriteAnnotations(w, r)
	}
	form, err := FormNamed(o.Form)
	if err != nil {
		return err
	}
	return form.Write(w, r)
}
