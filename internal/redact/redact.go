// Package redact takes secrets out of text by their value: as they stand, and in the encodings in which a bridge, a log
// or a page may show them again: percent escapes, JSON and Go escapes, HTML entities, base64 and hexadecimal, one on top
// of another. Its invariant: what Text returns holds no secret in any of these forms, nor one that was cut off where
// Cut stands. It knows values only; that a header carries a credential is for others to know.
package redact

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"sync"
)

// Mark stands where a secret was.
const Mark = "[redacted]"

// Shortest is how many bytes a secret must have to be taken out: shorter ones turn up by chance everywhere.
const Shortest = 4

// layers is how many encodings on top of each other are seen through.
const layers = 3

// Redactor knows secrets. The zero value knows none. It is safe for use by many goroutines.
type Redactor struct {
	mu     sync.RWMutex
	known  map[string]bool
	shapes map[[Shortest]byte][]string // the secrets' forms by their first bytes, with blanks for plus signs
	starts [1 << 16]bool               // whether a form begins with these two bytes: most places of a text are ruled out by it
}

// Add makes secrets known. Those shorter than Shortest are passed over.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known, r.shapes = map[string]bool{}, map[[Shortest]byte][]string{}
	}
	for _, secret := range secrets {
		if r.known[secret] {
			continue
		}
		r.known[secret] = true
		for _, form := range forms(secret) {
			if form = strings.ReplaceAll(form, "+", " "); len(form) >= Shortest {
				key := [Shortest]byte([]byte(form))
				r.shapes[key] = append(r.shapes[key], form)
				r.starts[start(form[0], form[1])] = true
			}
		}
	}
}

// forms are the texts by which a secret is known once escapes are undone: itself, itself without what looks like
// escapes in it, base64 at each of the three places where it may begin in a group, and hexadecimal.
func forms(secret string) []string {
	all := []string{secret}
	for t := plainText(secret); t.unescape(); {
		all = append(all, string(t.bytes))
	}
	for before := range 3 {
		// Only the characters that the secret alone decides: those that it shares with its neighbours are left out.
		padded := append(make([]byte, before), secret...)
		first, end := (before*8+5)/6, len(padded)*8/6
		if first >= end {
			continue
		}
		all = append(all, base64.StdEncoding.EncodeToString(padded)[first:end])
		all = append(all, base64.URLEncoding.EncodeToString(padded)[first:end])
	}
	all = append(all, hex.EncodeToString([]byte(secret)), strings.ToUpper(hex.EncodeToString([]byte(secret))))
	slices.Sort(all)
	return slices.Compact(all)
}

// Text is s with Mark in place of every secret.
func (r *Redactor) Text(s string) string { return blacken(s, r.spans(s)) }

// after is the first place from at on that is in no secret of s.
func (r *Redactor) after(s string, at int) int {
	for _, found := range r.spans(s) { // in their order
		if found.from < at {
			at = max(at, found.to)
		}
	}
	return at
}

// spans lists where s holds a secret, in the order of their beginnings. They may overlap.
func (r *Redactor) spans(s string) []span {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.shapes) == 0 {
		return nil
	}
	var found []span
	for t, depth := plainText(s), 0; ; depth++ {
		found = append(found, r.find(t)...)
		if depth == layers || !t.unescape() {
			break
		}
	}
	slices.SortFunc(found, func(a, b span) int { return a.from - b.from })
	return found
}

func start(a, b byte) int { return int(a)<<8 | int(b) }

// span is a stretch of the original text.
type span struct{ from, to int }

// find lists where the text holds a form of a secret, in places of the original.
func (r *Redactor) find(t *text) []span {
	var found []span
	for i := 0; i+Shortest <= len(t.bytes); i++ {
		if !r.starts[start(t.bytes[i], t.bytes[i+1])] {
			continue
		}
		longest := 0
		for _, form := range r.shapes[[Shortest]byte(t.bytes[i:])] {
			longest = max(longest, held(t.bytes[i:], form))
		}
		if longest > 0 {
			found = append(found, span{t.from[i], t.end(i + longest - 1)})
			i += longest - 1
		}
	}
	return found
}

// Cut stands where a text was shortened: what is left of a secret before it is taken out, too.
const Cut = "…"

// held is how many bytes of the form the text begins with: all of it, or what is left of it where the text was cut.
func held(b []byte, form string) int {
	n := 0
	for n < len(b) && n < len(form) && b[n] == form[n] {
		n++
	}
	if n == len(form) || strings.HasPrefix(string(b[n:min(len(b), n+len(Cut))]), Cut) {
		return n
	}
	return 0
}

// blacken puts Mark in place of the spans.
func blacken(s string, found []span) string {
	if len(found) == 0 {
		return s
	}
	var b strings.Builder
	at := 0
	for i := 0; i < len(found); {
		from, to := found[i].from, found[i].to
		for i++; i < len(found) && found[i].from <= to; i++ {
			to = max(to, found[i].to)
		}
		b.WriteString(s[at:from])
		b.WriteString(Mark)
		at = to
	}
	b.WriteString(s[at:])
	return b.String()
}
