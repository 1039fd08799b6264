package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"fmt"
	"os"
	"path"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// The parts of SPDX 2.3 that an SBOM of a Go binary has: https://spdx.github.io/spdx-spec/v2.3/.
type (
	spdxDocument struct {
		Version       string             `json:"spdxVersion"`
		License       string             `json:"dataLicense"`
		ID            string             `json:"SPDXID"`
		Name          string             `json:"name"`
		Namespace     string             `json:"documentNamespace"`
		Creation      spdxCreation       `json:"creationInfo"`
		Packages      []spdxPackage      `json:"packages"`
		Relationships []spdxRelationship `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID               string         `json:"SPDXID"`
		Name             string         `json:"name"`
		Version          string         `json:"versionInfo"`
		File             string         `json:"packageFileName,omitempty"`
		Purpose          string         `json:"primaryPackagePurpose"`
		Download         string         `json:"downloadLocation"`
		FilesAnalyzed    bool           `json:"filesAnalyzed"`
		Checksums        []spdxChecksum `json:"checksums,omitempty"`
		Source           string         `json:"sourceInfo,omitempty"`
		LicenseConcluded string         `json:"licenseConcluded"`
		LicenseDeclared  string         `json:"licenseDeclared"`
		Copyright        string         `json:"copyrightText"`
		References       []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const noAssertion = "NOASSERTION"

// writeSBOM writes the SBOM of a binary: the modules that Go says are linked into it.
func (r *release) writeSBOM(binary, to string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return fmt.Errorf("read the modules of %s: %w", binary, err)
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	document, err := encode(r.sbom(info, data))
	if err != nil {
		return err
	}
	return os.WriteFile(to, document, 0o644)
}

// sbom describes a binary. The licences of all modules are in THIRD_PARTY_NOTICES, as texts: what SPDX calls them is not
// asserted.
func (r *release) sbom(info *debug.BuildInfo, binary []byte) spdxDocument {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(binary))
	file := platform{settings["GOOS"], settings["GOARCH"]}.binary()
	d := spdxDocument{Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: fmt.Sprintf("bridgecheck-%s-%s-%s", r.version, settings["GOOS"], settings["GOARCH"])}
	d.Namespace = "https://spdx.org/spdxdocs/" + d.Name + "-" + sum // unique by the binary's hash; nothing is served there
	d.Creation = spdxCreation{Created: r.time.Format(time.RFC3339), Creators: []string{"Tool: bridgecheck-release-" + r.version}}
	d.Packages = []spdxPackage{{ID: "SPDXRef-bridgecheck", Name: "bridgecheck", Version: r.version, File: file, Purpose: "APPLICATION", Download: noAssertion,
		Checksums: []spdxChecksum{{"SHA256", sum}}, LicenseConcluded: noAssertion, LicenseDeclared: "MIT", Copyright: noAssertion}}
	d.Relationships = []spdxRelationship{{d.ID, "DESCRIBES", d.Packages[0].ID}}
	link := func(name, version, download, source, purl string) {
		p := spdxPackage{ID: "SPDXRef-" + identifier.ReplaceAllString(name, "-"), Name: name, Version: version, Purpose: "LIBRARY",
			Download: download, Source: source,
			LicenseConcluded: noAssertion, LicenseDeclared: noAssertion, Copyright: noAssertion, References: []spdxRef{{"PACKAGE-MANAGER", "purl", purl}}}
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, spdxRelationship{d.Packages[0].ID, "DEPENDS_ON", p.ID})
	}
	link("stdlib", strings.TrimPrefix(info.GoVersion, "go"), noAssertion, "", "pkg:golang/stdlib@"+strings.TrimPrefix(info.GoVersion, "go"))
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		// The address is the Go module proxy's; a capital letter is written as ! and the small one.
		escaped := capital.ReplaceAllStringFunc(m.Path, func(c string) string { return "!" + strings.ToLower(c) })
		download := "https://proxy.golang.org/" + path.Join(escaped, "@v",
			capital.ReplaceAllStringFunc(m.Version, func(c string) string { return "!" + strings.ToLower(c) })) + ".zip"
		link(m.Path, m.Version, download, "go.sum "+m.Sum, "pkg:golang/"+m.Path+"@"+m.Version)
	}
	return d
}

var (
	identifier = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
	capital    = regexp.MustCompile(`[A-Z]`)
)
