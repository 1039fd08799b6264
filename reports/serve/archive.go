package serve

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bridgecheck/bridgecheck/reports"
	"github.com/bridgecheck/bridgecheck/reports/format"
)

// archive is a folder of reports, read again where a file changed. It is safe for use by several goroutines.
type archive struct {
	dir   string
	mu    sync.Mutex
	files map[string]archived // by path
}

// archived is one report of an archive, without evidence, which archive.load gives.
type archived struct {
	format.Run
	size     int64
	modified time.Time
}

// archiveFiles bounds how many reports an archive has.
const archiveFiles = 1000

// scan returns the archive's reports, newest first, and the JSON files that are none.
func (a *archive) scan() (read, unreadable []format.Run, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := map[string]archived{}
	err = filepath.WalkDir(a.dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case !entry.Type().IsRegular(), !strings.HasSuffix(path, ".json"), entry.Name() == "badge.json":
			return nil
		case len(found) == archiveFiles:
			return fs.SkipAll
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if known, ok := a.files[path]; ok && known.size == info.Size() && known.modified.Equal(info.ModTime()) {
			found[path] = known
			return nil
		}
		found[path] = a.read(path, info)
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	a.files = found
	for _, f := range found {
		if f.Err == nil {
			read = append(read, f.Run)
		} else {
			unreadable = append(unreadable, f.Run)
		}
	}
	slices.SortFunc(read, func(x, y format.Run) int {
		return cmp.Or(y.Report.Started.Compare(x.Report.Started), cmp.Compare(x.Path, y.Path))
	})
	slices.SortFunc(unreadable, func(x, y format.Run) int { return cmp.Compare(x.Path, y.Path) })
	return read, unreadable, nil
}

func (a *archive) read(path string, info os.FileInfo) archived {
	f := archived{Run: format.Run{Path: path}, size: info.Size(), modified: info.ModTime()}
	if below, err := filepath.Rel(a.dir, path); err == nil {
		f.Path = filepath.ToSlash(below)
	}
	sum := sha256.Sum256([]byte(f.Path))
	f.ID = hex.EncodeToString(sum[:8])
	f.Report, f.Err = reports.ReadFile(path)
	if f.Err != nil {
		f.Err = errors.New(strings.TrimPrefix(f.Err.Error(), path+": "))
		return f
	}
	for i := range f.Report.Results {
		f.Report.Results[i].Evidence = nil
	}
	return f
}

// load reads f's report with its evidence.
func (a *archive) load(f format.Run) (*reports.Report, error) {
	return reports.ReadFile(filepath.Join(a.dir, filepath.FromSlash(f.Path)))
}
