package contract

import (
	_ "embed"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// guide is the prose of the document. A line `{{name}}` of its own stands for a table of the contract.
//
//go:embed guide.md
var guide string

// Guide returns the prose of the contract as Markdown: what a bridge does, with examples, codes, capabilities and terms,
// but without the clauses.
func (c *Contract) Guide() string {
	return strings.NewReplacer(
		"{{version}}", c.Version,
		"{{codes}}", c.codeTable(),
		"{{capabilities}}", c.capabilityTable(),
		"{{glossary}}", c.terms(),
	).Replace(guide)
}

// Markdown returns the whole contract as one Markdown document: the guide, then every clause by area.
func (c *Contract) Markdown() string {
	var b strings.Builder
	b.WriteString(c.Guide())
	b.WriteString("\n## Clauses\n\n`bridgecheck run --only ID` tests one of them.\n")
	for _, area := range c.Areas() {
		fmt.Fprintf(&b, "\n### Area: %s\n", area)
		for _, clause := range c.Clauses {
			if clause.Area == area {
				c.document(&b, "####", clause)
			}
		}
	}
	return b.String()
}

// Pages returns the contract as the files below docs: the guide, contract.md, leads to a page of the clauses of each area.
func (c *Contract) Pages() map[string]string {
	pages := map[string]string{}
	var index strings.Builder
	for _, area := range c.Areas() {
		var b strings.Builder
		var all, musts int
		for _, clause := range c.Clauses {
			if clause.Area == area {
				c.document(&b, "##", clause)
				all++
				if clause.Level == MUST {
					musts++
				}
			}
		}
		fmt.Fprintf(&index, "| [%s](contract/%s.md) | %d | %d |\n", area, area, all, musts)
		pages["contract/"+area+".md"] = fmt.Sprintf("# Clauses of the area %s\n\nThe prose is in [contract.md](../contract.md). `bridgecheck run --only '%s/*'` tests these clauses.\n%s",
			area, area, b.String())
	}
	pages["contract.md"] = areaLink.ReplaceAllString(c.Guide(), "](contract/$1.md)") +
		"\n## Clauses\n\nEach clause has its level, its reason, how to fix a bridge that breaks it, its source, and a right and a wrong example.\n\n" +
		"| area | clauses | MUST |\n|---|---|---|\n" + index.String()
	return pages
}

// areaLink is a link of the guide to the clauses of an area in the same document.
var areaLink = regexp.MustCompile(`\]\(#area-([\w-]+)\)`)

// document writes one clause below a heading.
func (c *Contract) document(b *strings.Builder, heading string, clause Clause) {
	fmt.Fprintf(b, "\n%s %s\n\n**%s**%s. %s\n\n", heading, clause.ID, clause.Level, needed(clause), clause.Text)
	fmt.Fprintf(b, "- Why: %s\n", clause.Why)
	if fix := clause.Fix.String(); strings.Contains(fix, "\n") {
		fmt.Fprintf(b, "- Fix:\n  - %s\n", strings.ReplaceAll(fix, "\n", "\n  - "))
	} else if fix != "" {
		fmt.Fprintf(b, "- Fix: %s\n", fix)
	}
	var from []string
	for _, cite := range c.Cites(clause) {
		text := cite.Text
		if cite.URL != "" {
			text = "[" + text + "](" + cite.URL + ")"
		}
		from = append(from, text)
	}
	fmt.Fprintf(b, "- Source: %s\n", strings.Join(from, "; "))
	fmt.Fprintf(b, "\n```\nright  %s\nwrong  %s\n```\n", indented(clause.Right), indented(clause.Wrong))
}

// needed says to which bridges a clause applies, and since which version.
func needed(clause Clause) string {
	text := ""
	if clause.Needs != "" {
		text = ", for bridges that claim `" + clause.Needs + "`"
	}
	if clause.Clients != "" {
		text += ", for the sake of " + strings.ReplaceAll(clause.Clients, " ", " and ")
	}
	if clause.Since != "" {
		text += ", since version " + clause.Since
	}
	return text
}

func indented(lines string) string { return strings.ReplaceAll(lines, "\n", "\n       ") }

func (c *Contract) codeTable() string {
	var b strings.Builder
	b.WriteString("| status | code | when |\n|---|---|---|\n")
	for _, status := range slices.Sorted(maps.Keys(c.Codes)) {
		for _, code := range c.Codes[status] {
			fmt.Fprintf(&b, "| %d | `%s` | %s |\n", status, code, c.Meanings[code])
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (c *Contract) capabilityTable() string {
	var b strings.Builder
	b.WriteString("| capability | means | a bridge claims it |\n|---|---|---|\n")
	for _, capability := range c.Capabilities {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", capability.Name, capability.Text, capability.Claim)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (c *Contract) terms() string {
	var b strings.Builder
	for _, term := range c.Glossary {
		fmt.Fprintf(&b, "- *%s*: %s\n", term.Name, term.Text)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
