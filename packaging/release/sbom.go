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

// object is an object of SPDX 2.3: https://spdx.github.io/spdx-spec/v2.3/.
type object = map[string]any

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
func (r *release) sbom(info *debug.BuildInfo, binary []byte) object {
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(binary))
	file := platform{settings["GOOS"], settings["GOARCH"]}.binary()
	const document, program = "SPDXRef-DOCUMENT", "SPDXRef-bridgecheck"
	part := func(id, name, version, purpose, download, license string) object {
		return object{"SPDXID": id, "name": name, "versionInfo": version, "primaryPackagePurpose": purpose, "downloadLocation": download, "filesAnalyzed": false,
			"licenseConcluded": noAssertion, "licenseDeclared": license, "copyrightText": noAssertion}
	}
	main := part(program, "bridgecheck", r.version, "APPLICATION", noAssertion, "MIT")
	main["packageFileName"], main["checksums"] = file, []object{{"algorithm": "SHA256", "checksumValue": sum}}
	packages := []object{main}
	relationships := []object{{"spdxElementId": document, "relationshipType": "DESCRIBES", "relatedSpdxElement": program}}
	link := func(name, version, download, source, purl string) {
		p := part("SPDXRef-"+identifier.ReplaceAllString(name, "-"), name, version, "LIBRARY", download, noAssertion)
		p["externalRefs"] = []object{{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}}
		if source != "" {
			p["sourceInfo"] = source
		}
		packages = append(packages, p)
		relationships = append(relationships, object{"spdxElementId": program, "relationshipType": "DEPENDS_ON", "relatedSpdxElement": p["SPDXID"]})
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
	name := fmt.Sprintf("bridgecheck-%s-%s-%s", r.version, settings["GOOS"], settings["GOARCH"])
	return object{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": document, "name": name, "packages": packages, "relationships": relationships,
		"documentNamespace": "https://spdx.org/spdxdocs/" + name + "-" + sum, // unique by the binary's hash; nothing is served there
		"creationInfo":      object{"created": r.time.Format(time.RFC3339), "creators": []string{"Tool: bridgecheck-release-" + r.version}},
	}
}

var (
	identifier = regexp.MustCompile(`[^A-Za-z0-9.-]+`)
	capital    = regexp.MustCompile(`[A-Z]`)
)
