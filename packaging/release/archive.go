package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// file is a file of an archive.
type file struct {
	name string // with slashes
	data []byte
	mode fs.FileMode
}

// shipped are the files of the repository that an archive holds; of a directory all files below it.
var shipped = []string{"LICENSE", "THIRD_PARTY_NOTICES", "README.md", "CHANGELOG.md", "docs"}

// name is the name of the archive without its ending, and of the one directory in it.
func (r *release) name(p platform) string {
	return fmt.Sprintf("bridgecheck_%s_%s_%s", r.version, p.os, p.arch)
}

// archive is the name of the archive.
func (r *release) archive(p platform) string {
	if p.os == "windows" {
		return r.name(p) + ".zip"
	}
	return r.name(p) + ".tar.gz"
}

// archives writes an archive and an SBOM for each platform, and checksums.txt. What an earlier call wrote is removed.
func (r *release) archives() error {
	for _, dir := range []string{r.out, r.binaries} {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	texts, err := os.MkdirTemp("", "bridgecheck-texts")
	if err != nil {
		return err
	}
	defer os.RemoveAll(texts)
	if err := r.texts(texts); err != nil {
		return err
	}
	common, err := filesBelow(texts, ".")
	if err != nil {
		return err
	}
	for _, name := range shipped {
		files, err := filesBelow(".", name)
		if err != nil {
			return err
		}
		common = append(common, files...)
	}
	sums := make([]string, len(r.platforms))
	var group errgroup.Group
	group.SetLimit(runtime.NumCPU()) // linking and packing use one processor
	for i, p := range r.platforms {
		group.Go(func() error {
			var err error
			sums[i], err = r.archiveOf(p, common)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "checksums.txt"), []byte(strings.Join(sums, "")), 0o644)
}

// archiveOf writes the archive and the SBOM of a platform, and returns their checksums.
func (r *release) archiveOf(p platform, common []file) (sums string, err error) {
	binary, err := r.build(p)
	if err != nil {
		return "", err
	}
	sbom := filepath.Join(r.out, r.name(p)+".spdx.json")
	if err := r.writeSBOM(binary, sbom); err != nil {
		return "", err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	packed, err := pack(r.name(p), append(slices.Clone(common), file{p.binary(), data, 0o755}), p.os == "windows", r.time)
	if err != nil {
		return "", err
	}
	archive := filepath.Join(r.out, r.archive(p))
	if err := os.WriteFile(archive, packed, 0o644); err != nil {
		return "", err
	}
	for _, name := range []string{archive, sbom} {
		data, err := os.ReadFile(name)
		if err != nil {
			return "", err
		}
		sums += fmt.Sprintf("%x  %s\n", sha256.Sum256(data), filepath.Base(name))
	}
	fmt.Printf("%s: %.1f MiB\n", archive, float64(len(packed))/(1<<20))
	return sums, nil
}

// filesBelow reads the file or the files below the directory that name is, with names from root.
func filesBelow(root, name string) (files []file, err error) {
	err = fs.WalkDir(os.DirFS(root), name, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		files = append(files, file{name, data, 0o644})
		return err
	})
	return files, err
}

// pack makes a .zip or a .tar.gz of files in one directory, all with one time. The order of the files does not matter.
func pack(dir string, files []file, zipped bool, at time.Time) ([]byte, error) {
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	if zipped {
		return packZip(dir, files, at)
	}
	return packTar(dir, files, at)
}

func packTar(dir string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	w := tar.NewWriter(compressed)
	for _, f := range files {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: path.Join(dir, f.name), Size: int64(len(f.data)), Mode: int64(f.mode), ModTime: at,
			Format: tar.FormatUSTAR}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	err = compressed.Close()
	return b.Bytes(), err
}

func packZip(dir string, files []file, at time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		header := &zip.FileHeader{Name: path.Join(dir, f.name), Method: zip.Deflate, Modified: at}
		header.SetMode(f.mode)
		part, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := part.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
