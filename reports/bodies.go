package reports

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/bridgecheck/bridgecheck/internal/wholefile"
)

// MaxWhole is the longest body of a request that is kept whole beside a report, in bytes.
const MaxWhole = 4 << 20

// maxAllWhole bounds the sum of those that readBodies reads, in bytes: a small report can name a large file a thousand times.
const maxAllWhole = 64 << 20

// bodies is the folder beside a report that holds the bodies of requests that report.json has only in part.
const bodies = "bodies"

// bodyFile is the name of the file for the request of an exchange in the evidence on a clause.
func bodyFile(clause string, exchange int) string {
	return path.Join(bodies, fmt.Sprintf("%s-%d.bin", strings.ReplaceAll(clause, "/", "-"), exchange))
}

// WriteBodies writes the files that r's requests name into the report directory, in place of those of an earlier report.
func (r *Report) WriteBodies(dir string) error {
	old, err := filepath.Glob(filepath.Join(dir, bodies, "*.bin"))
	if err != nil {
		return fmt.Errorf("find earlier bodies: %w", err)
	}
	named := map[string]bool{}
	for m := range r.filed() {
		if m.Whole == nil {
			continue
		}
		file := filepath.Join(dir, filepath.FromSlash(m.File))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return fmt.Errorf("make the folder of bodies: %w", err)
		}
		if err := wholefile.Write(file, m.Whole, 0o644); err != nil {
			return fmt.Errorf("write the body of a request: %w", err)
		}
		named[file] = true
	}
	for _, file := range old {
		if !named[file] {
			if err := os.Remove(file); err != nil {
				return fmt.Errorf("remove an earlier body: %w", err)
			}
		}
	}
	return nil
}

// readBodies reads the files that r's requests name from the report directory. One that is not there stays away.
func (r *Report) readBodies(dir string) error {
	root, err := os.OpenRoot(dir) // nothing outside of its directory is read: others may have written the report
	if err != nil {
		return fmt.Errorf("open the directory of the report: %w", err)
	}
	defer root.Close()
	left := maxAllWhole
	for m := range r.filed() {
		file, err := root.Open(filepath.FromSlash(m.File))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("open the body of a request: %w", err)
		}
		m.Whole, err = io.ReadAll(io.LimitReader(file, MaxWhole+1))
		file.Close()
		if err == nil && len(m.Whole) > MaxWhole {
			err = fmt.Errorf("it is larger than %d MiB", MaxWhole>>20)
		} else if left -= len(m.Whole); err == nil && left < 0 {
			err = fmt.Errorf("the bodies of the report are larger than %d MiB together: no report that bridgecheck wrote", maxAllWhole>>20)
		}
		if err != nil {
			return fmt.Errorf("read %s: %w", m.File, err)
		}
	}
	return nil
}

// filed yields the requests whose whole bodies are in files.
func (r *Report) filed() iter.Seq[*Message] {
	return func(yield func(*Message) bool) {
		for i := range r.Results {
			for j := range r.Results[i].Evidence {
				if m := &r.Results[i].Evidence[j].Request; m.File != "" && !yield(m) {
					return
				}
			}
		}
	}
}
