package scenario

import (
	"maps"
	"slices"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
)

// OddNames are names of no tool that a careless look-up takes for something else: for nothing, or for what every object
// of the language has; and those that a careless message does not hold whole.
var OddNames = []string{"0", "null", "constructor", "__proto__", "toString", "<b>no</b>&such %s {0} $& \u00fc\u6a4b", "no.such.tool." + strings.Repeat("x", 87)}

// EveryName is a method whose parameters have the names that programs change, each an integer. Those who administer the site may run it.
const EveryName = "content.worded.names"

// Lists is a method with lists as its parameters, on a site that the run has made.
const Lists = "shape.array"

// OddID is how an id begins whose letter case, hyphens and full stops matter. Of a bridge that selects ids by patterns the case does not.
func OddID(t *check.T) string {
	if t.Claims("exposure-patterns") {
		return "content.odd--..."
	}
	return "Content.odd--..."
}

// OtherSpellings are names close to a known one that must not find it, each with what it tries.
func OtherSpellings(name string) map[string]string {
	spellings := map[string]string{
		"upper case":     strings.ToUpper(name),
		"lower case":     strings.ToLower(name),
		"a blank before": " " + name,
		"a blank after":  name + " ",
		"a prefix":       name[:len(name)-1],
		"a longer one":   name + "x",
		"a path":         "./" + name,
		"a slash before": "/" + name,
		"a glob":         name[:1] + "*",
		"everything":     "*",
		"SQL's wildcard": name[:1] + "%",
		"a pattern":      ".*",

		"SQL's wildcard for one character": name[:1] + "_" + name[min(2, len(name)):],
		"a pattern of one character":       name[:1] + "." + name[min(2, len(name)):],
		"a suffix":                         name[1:],
		"underscores in place of dots":     strings.ReplaceAll(name, ".", "_"),
		"dots in place of underscores":     strings.ReplaceAll(name, "_", "."),
		"a longer one by a dot":            name + ".",
		"a longer one by a word":           name + ".x",
		"a format behind":                  name + ".json",
		"a server before":                  "mcp__drupal__" + name,
		"the first of a list":              name + "," + NoSuchTool,
		"a fragment behind":                name + "#x",
		"percent-encoded twice":            client.PercentEncoded(name),
		"a full-width letter":              string('\uff21'+rune(name[0]-'A')) + name[1:],
		"an accent":                        name[:1] + "\u0301" + name[1:],
		"a blank of no width behind":       name + "\u200b",
		"letters that fold to its own":     strings.NewReplacer("s", "ſ", "k", "\u212a").Replace(name),
	}
	maps.DeleteFunc(spellings, func(_, other string) bool { return other == "" || other == name })
	return spellings
}

// Hyphenated is a name that must find nothing: the first listed one that has an underscore, with hyphens in place of its underscores.
// It is "" where no name has one, and where that name is listed, too.
func Hyphenated(listed []string) string {
	i := slices.IndexFunc(listed, func(name string) bool { return strings.Contains(name, "_") })
	if i < 0 {
		return ""
	}
	name := strings.ReplaceAll(listed[i], "_", "-")
	if slices.Contains(listed, name) {
		return ""
	}
	return name
}

// UncleanSpellings must not find the name either, and may be refused for their control characters before it is looked up.
func UncleanSpellings(name string) map[string]string {
	return map[string]string{"a NUL behind": name + "\x00", "a NUL and more behind": name + "\x00x", "a line break behind": name + "\n", "a tab before": "\t" + name}
}
