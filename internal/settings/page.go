package settings

import (
	"fmt"
	"regexp"
	"strings"
)

// Page is docs/settings.md.
func Page() string {
	var b strings.Builder
	b.WriteString(`# Settings of a run

<!-- Generated from internal/settings/table.go: go test ./internal/settings -update -->

A flag overrides the configuration file of ` + "`--config`" + `, and that overrides the default. The inputs of the GitHub Action have
the names of the flags. A Go suite has the settings with a variable, as flags of the same name; there the variable stands in
for the flag. ` + "`bridgecheck run --config-schema`" + ` prints the JSON Schema of the file.

The run has to wait longer for the bridge than the bridge waits for its site: if the upstream time-out is given alone, the
time limit of a request follows from it; if both are given and contradict each other, that is an error.

`)
	row := func(cells ...string) { b.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	code := func(text string) string {
		if text == "" {
			return ""
		}
		return "`" + text + "`"
	}
	help := func(s Setting) string { return strings.ReplaceAll(strings.ReplaceAll(s.Help, "`", ""), "|", `\|`) }
	b.WriteString("## Flags\n\n")
	row("flag", "key of the file", "variable (Go suite)", "default", "what it is", "field (library)")
	row("---", "---", "---", "---", "---", "---")
	for _, s := range Table() {
		if s.Flag == "" || s.Hidden {
			continue
		}
		variable := ""
		if s.Suite {
			variable = s.Variable()
		}
		row(code("--"+s.Flag), code(s.Key), code(variable), code(s.Default), help(s), code(s.Option))
	}
	b.WriteString("\n## Keys that only the file has\n\n`NAME` stands for a name of yours or of the contract, `[]` for each item of a list.\n\n")
	row("key", "default", "what it is")
	row("---", "---", "---")
	for _, s := range Table() {
		if s.Key != "" && s.Flag == "" {
			row(code(s.Key), code(s.Default), help(s))
		}
	}
	b.WriteString("\n## Secrets\n\nA secret stands on no command line and in no configuration. Each variable has one with `_FILE` behind its name, which names a\nfile that holds the secret.\n\n")
	row("variable", "what it is")
	row("---", "---")
	for _, s := range Table() {
		if s.Env != "" {
			row(code(s.Env)+", "+code(s.Env+"_FILE"), help(s))
		}
	}
	return b.String()
}

// Action is action.yml with the inputs that the table has: the declarations, the variables that pass them, and the loop that makes
// flags of them. Its other parts stay.
func Action(text string) (string, error) {
	var inputs, env, lines strings.Builder
	for _, s := range Table() {
		if s.Flag == "" || s.Local {
			continue
		}
		name := "INPUT_" + strings.ToUpper(strings.ReplaceAll(s.Flag, "-", "_"))
		description := strings.ReplaceAll(s.Help, "`", "")
		kind := "text"
		switch s.at(&Values{}).(type) {
		case *[]string:
			kind, description = "words", strings.TrimSuffix(description, "; repeatable")+" (several: separated by blanks or line ends)"
		case *bool:
			kind, description = "switch", "true: "+description
		}
		fmt.Fprintf(&inputs, "  %s:\n    description: %q\n", s.Flag, description)
		if s.Flag == "report-dir" {
			fmt.Fprintf(&inputs, "    default: %s\n", s.Default)
		}
		fmt.Fprintf(&env, "        %s: ${{ inputs.%s }}\n", name, s.Flag)
		fmt.Fprintf(&lines, "        %s --%s \"$%s\"\n", kind, s.Flag, name)
	}
	for _, part := range []struct{ name, text string }{{"inputs", inputs.String()}, {"variables", env.String()}, {"flags", lines.String()}} {
		between := regexp.MustCompile(`(?s)( *# settings: ` + part.name + `[^\n]*\n).*?( *# end of settings\n)`)
		at := between.FindStringSubmatchIndex(text)
		if at == nil {
			return "", fmt.Errorf("action.yml has no part between `# settings: %s` and `# end of settings`", part.name)
		}
		text = text[:at[3]] + part.text + text[at[4]:]
	}
	return text, nil
}
