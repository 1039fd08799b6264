package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

var at = time.Date(2026, 1, 2, 3, 4, 6, 0, time.UTC)

// The bytes depend on the names, the contents, the modes and the time alone.
func TestArchivesAreReproducible(t *testing.T) {
	for _, zipped := range []bool{false, true} {
		files := []file{{"docs/a.md", []byte("a"), 0o644}, {"bridgecheck", []byte("program"), 0o755}, {"LICENSE", []byte("terms"), 0o644}}
		packed := func(change func(files []file)) []byte {
			copied := slices.Clone(files)
			change(copied)
			return must.Get(pack("top", copied, zipped, at))(t)
		}
		first := packed(func([]file) {})
		again := packed(func(files []file) { slices.Reverse(files) })
		must.Expect(t, bytes.Equal(first, again), "zip %t: the order of the files changes the bytes", zipped)
		other := packed(func(files []file) { files[0].data = []byte("b") })
		must.Expect(t, !bytes.Equal(first, other), "zip %t: another content gives the same bytes: this proves nothing", zipped)
		got, want := entries(t, first, zipped), map[string]string{
			"top/LICENSE": "-rw-r--r-- 2026-01-02T03:04:06Z terms", "top/bridgecheck": "-rwxr-xr-x 2026-01-02T03:04:06Z program",
			"top/docs/a.md": "-rw-r--r-- 2026-01-02T03:04:06Z a",
		}
		must.Expect(t, maps.Equal(got, want), "zip %t: the archive holds %q, expected %q", zipped, got, want)
	}
}

// entries reads an archive: mode, time and content of each file.
func entries(t *testing.T, data []byte, zipped bool) map[string]string {
	t.Helper()
	all := map[string]string{}
	add := func(name string, mode fs.FileMode, at time.Time, r io.Reader) {
		content := must.Get(io.ReadAll(r))(t)
		all[name] = mode.String() + " " + at.UTC().Format(time.RFC3339) + " " + string(content)
	}
	if zipped {
		r := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
		for _, f := range r.File {
			content := must.Get(f.Open())(t)
			add(f.Name, f.Mode(), f.Modified, content)
		}
		return all
	}
	compressed := must.Get(gzip.NewReader(bytes.NewReader(data)))(t)
	for r := tar.NewReader(compressed); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		must.Do(t, err)
		must.Expect(t, header.Uid == 0 && header.Gid == 0 && header.Uname == "" && header.Gname == "", "%s names its owner", header.Name)
		add(header.Name, header.FileInfo().Mode(), header.ModTime, r)
	}
}

// The schema is schemas/spdx-schema.json of https://github.com/spdx/spdx-spec, tag v2.3 (CC-BY-3.0).
func TestSBOMIsSPDX(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/spdx-2.3.schema.json"))(t)
	text := must.Get(jsonschema.UnmarshalJSON(bytes.NewReader(data)))(t)
	compiler := jsonschema.NewCompiler()
	must.Do(t, compiler.AddResource("spdx.json", text))
	schema := must.Get(compiler.Compile("spdx.json"))(t)
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Settings: []debug.BuildSetting{{Key: "GOOS", Value: "windows"}, {Key: "GOARCH", Value: "arm64"}},
		Deps: []*debug.Module{
			{Path: "github.com/Masterminds/semver/v3", Version: "v3.2.0", Sum: "h1:x="},
			{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/new", Version: "v1.1.0"}},
		},
	}
	document := (&release{version: "1.2.3", time: at}).sbom(info, []byte("program"))
	valid := func(change func(members map[string]any)) error {
		encoded := must.Get(encode(document))(t)
		var members map[string]any
		must.Do(t, json.Unmarshal(encoded, &members))
		change(members)
		return schema.Validate(members)
	}
	err := valid(func(map[string]any) {})
	must.Expect(t, err == nil, "the SBOM is not valid: %v", err)
	// What the text of SPDX 2.3 requires. Its schema leaves the document's namespace and what it describes out.
	for _, member := range []string{"spdxVersion", "dataLicense", "SPDXID", "name", "creationInfo"} {
		must.Say(t, valid(func(members map[string]any) { delete(members, member) }), "", member)
	}
	namespace, packages := document["documentNamespace"].(string), document["packages"].([]object)
	must.Expect(t, strings.HasPrefix(namespace, "https://") && !strings.Contains(namespace, "#"),
		"documentNamespace is %q, expected an absolute URI without a fragment", namespace)
	ids, versions := map[any]bool{document["SPDXID"]: true}, map[any]any{}
	for _, p := range packages {
		must.Expect(t, !ids[p["SPDXID"]], "two elements are %s", p["SPDXID"])
		ids[p["SPDXID"]], versions[p["name"]] = true, p["versionInfo"]
	}
	want := map[any]any{"bridgecheck": "1.2.3", "stdlib": "1.26.8", "github.com/Masterminds/semver/v3": "v3.2.0", "example.org/new": "v1.1.0"}
	must.Expect(t, maps.Equal(versions, want), "the packages are %v, expected %v", versions, want)
	related := map[any]bool{}
	for _, r := range document["relationships"].([]object) {
		must.Expect(t, ids[r["spdxElementId"]] && ids[r["relatedSpdxElement"]], "%v names an element that is not there", r)
		related[r["relatedSpdxElement"]] = true
	}
	for _, p := range packages {
		must.Expect(t, related[p["SPDXID"]], "no relationship leads to %s", p["SPDXID"])
	}
	must.Equal(t, packages[2]["downloadLocation"], "https://proxy.golang.org/github.com/!masterminds/semver/v3/@v/v3.2.0.zip", "downloadLocation")
}

func TestVersionsArePublishable(t *testing.T) {
	for version, want := range map[string]bool{
		"1.2.3": true, "1.2.3-rc.1": true, "1.2.3-4-gabc1234": true, "0.0.0-g0123456-dirty": true,
		"": false, "1.2": false, "01.2.3": false, "1.2.3-01": false, "1.2.3-": false, "abc1234": false, "1.2.3 ": false,
	} {
		must.Equal(t, semver.MatchString(version), want, "whether %q is taken", version)
	}
}

func TestVersionsForComposer(t *testing.T) {
	for version, want := range map[string]string{"1.2.3": "1.2.3", "1.2.3-rc.1": "1.2.3-rc.1", "1.2.3-4-gabc1234": "dev-1.2.3-4-gabc1234"} {
		must.Equal(t, composerVersion(version), want, "the version %s for Composer", version)
	}
}

func TestBadArgumentsAreNamed(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "say what to build"},
		{[]string{"archives", "-version", "abc", "-platforms", "linux/amd64"}, `-version is "abc"`},
		{[]string{"archives", "-version", "v1.2.3"}, "-platforms is empty"},
		{[]string{"archives", "-version", "v1.2.3", "-platforms", "linux"}, `-platforms has "linux"`},
		{[]string{"rpm", "-version", "v1.2.3", "-platforms", "linux/amd64"}, `"rpm" cannot be built`},
	} {
		must.Say(t, run(c.args), c.want, c.args)
	}
}

func TestProgressCountsPackages(t *testing.T) {
	p := &progress{platform: platform{"linux", "amd64"}, began: time.Now(), every: time.Hour}
	for _, text := range []string{"example.org/a\nexample.org/b\n", "# example.org/c\nc.go:1: wrong\n"} {
		must.Get(p.Write([]byte(text)))(t)
	}
	must.Expect(t, p.packages == 4 && strings.Contains(p.output.String(), "c.go:1: wrong"),
		"%d lines are counted and the output is %q, expected 4 and all of it", p.packages, p.output.String())
}
