package power

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/bridgecheck/bridgecheck/internal/selftest/mutants"
	"github.com/bridgecheck/bridgecheck/internal/testbed"
)

// like are the texts of a form.
func like(form, why string) domain {
	r := regexp.MustCompile(form)
	return domain{kinds: words.kinds, holds: func(v any) bool { return r.MatchString(v.(string)) }, why: why, opaque: true}
}

var (
	portable = like(`^[A-Za-z0-9_.-]{1,128}$`, "a tool's name is 1 to 128 characters of [A-Za-z0-9_.-]: mapping/name-portable")
	bearer   = domain{words.kinds, func(v any) bool {
		s := v.(string)
		return len(s) <= 4000 && tokenForm.MatchString(s)
	}, "a bearer token has these characters alone (RFC 6750, section 2.1), and not more than servers take in a header", true, nil}
	tokenForm = regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`)
	ofBasic   = domain{words.kinds, func(v any) bool {
		s := v.(string)
		return !strings.ContainsFunc(s, unicode.IsControl) && s == strings.Trim(s, " ") && len(s) <= 512
	}, "a password of Basic has no control characters (RFC 7617, section 2), and one of Drupal no blank at an end and at most 512 bytes", true, nil}
	ofDrupal = domain{words.kinds, func(v any) bool {
		s := v.(string)
		return s != "" && len([]rune(s)) <= 60 && s == strings.TrimSpace(s) && !strings.Contains(s, "  ") && !strings.Contains(s, ":") &&
			!strings.ContainsFunc(s, func(r rune) bool {
				return r < 0x80 && !strings.ContainsRune(" @+_.'-", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) || unicode.Is(noUserName, r)
			})
	}, "Drupal refuses such a user name, Basic one with a colon, and databases ignore letter case, and white space at its ends", true, sameAccount}
	integral = domain{[]kind{text, number}, func(v any) bool { _, text := v.(string); return text || integer.MatchString(written(v)) },
		"an id is a text or an integer that no double rounds: what of MCP is written in TypeScript reads it as a number", true, nil}
	integer = regexp.MustCompile(`^(0|-?[1-9]\d{0,14}|-?[1-8]\d{15})$`)
	offset  = domain{kinds: words.kinds, holds: func(v any) bool {
		decoded, err := base64.StdEncoding.DecodeString(v.(string))
		_, no := strconv.Atoi(string(decoded))
		return err == nil && no == nil
	}, why: "a bridge writes its cursors itself: here offsets in base64"}
	tag = domain{kinds: words.kinds, opaque: true, alike: strings.EqualFold, holds: func(v any) bool { return languageTag.MatchString(v.(string)) },
		why: "a language is a tag (RFC 5646, section 2.1), in which letter case means nothing: here the lower one"}
	languageTag = regexp.MustCompile(`^[a-z]{2}(-[a-z]{2})?$`)
	session     = like(`^[A-Z2-7]{26}$`, "a bridge writes the ids of its sessions itself: here 26 letters and digits")
	version     = inHeader(`^"[0-9a-f]{26,40}"$`, "a bridge writes the versions of its lists itself: here digits in base 16")
)

// inHeader are texts of a form in a header: blanks around it, and the letter case of schemes and parameters, mean nothing.
func inHeader(form, why string) domain {
	d := like(form, why)
	d.alike = func(a, b string) bool {
		return strings.TrimSpace(strings.Replace(a, "Basic realm", "basic realm", 1)) == strings.TrimSpace(inAnyCase.ReplaceAllString(b, "basic realm"))
	}
	return d
}

var inAnyCase = regexp.MustCompile(`(?i)^basic realm`)

// sameAccount reports whether names are the same but for letter case, also in Turkish.
func sameAccount(a, b string) bool {
	plain := strings.NewReplacer("i\u0307", "i", "İ", "i", "ı", "i")
	return strings.EqualFold(plain.Replace(a), plain.Replace(b))
}

// noUserName are the characters beyond ASCII that no user name of Drupal has.
var noUserName = &unicode.RangeTable{R16: []unicode.Range16{{0x80, 0xa0, 1}, {0xad, 0xad, 1}, {0x2000, 0x200f, 1}, {0x2028, 0x202f, 1},
	{0x205f, 0x206f, 1}, {0xfeff, 0xfeff, 1}, {0xff01, 0xff60, 1}, {0xfff9, 0xfffd, 1}}}

// query changes a parameter of a query.
func query(path, parameter string, change func(any) any) mutants.Mutant {
	return front(edit{to: at(path), request: func(r *http.Request) {
		values, err := url.ParseQuery(r.URL.RawQuery)
		if given, there := values[parameter]; err == nil && there {
			values[parameter] = []string{textual(change)(given[0]).(string)}
			if values[parameter][0] != given[0] {
				r.URL.RawQuery = values.Encode()
			}
		}
	}})
}

// basic changes one part of Basic credentials on their way to the site.
func basic(change func(user, password string) (string, string)) mutants.Mutant {
	return site(edit{to: func(*http.Request) bool { return true }, request: func(r *http.Request) {
		if user, password, ok := r.BasicAuth(); ok {
			user, password = change(user, password)
			r.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
		}
	}})
}

// header changes a header of a request.
func header(name, before string, change func(any) any) func(*http.Request) {
	return func(r *http.Request) {
		if value, ok := strings.CutPrefix(r.Header.Get(name), before); ok && value != "" {
			r.Header.Set(name, before+textual(change)(value).(string))
		}
	}
}

// requested are the positions of what a request names: a tool, a caller, a page, itself.
func requested() []position {
	all := func(*http.Request) bool { return true }
	everyID := func(to func(*http.Request) bool, change func(any) any) edit {
		return edit{to: to, after: func(_, got document) {
			if got["id"] != nil {
				edited(got, "id", change)
			}
		}}
	}
	return []position{
		{name: "a tool's name in the query of describe", can: portable, mutant: func(change func(any) any) mutants.Mutant {
			return query("/mcp/tools/describe", "name", change)
		}, clauses: []string{"describe/answers-tool", "mapping/long-names"}},
		{name: "a tool's name in the body of invoke", can: portable, mutant: func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/invoke"), before: func(sent document) { edited(sent, "name", textual(change)) }})
		}, clauses: []string{"invoke/answers-result", "mapping/long-names"}},
		{name: "a tool's name in tools/call", can: portable, mutant: func(change func(any) any) mutants.Mutant {
			return onToolCall(func(params document) { edited(params, "name", textual(change)) })
		}, clauses: []string{"mapping/long-names", "mcp/parity"}},
		{name: "a tool's name in the path", can: portable, mutant: func(change func(any) any) mutants.Mutant {
			return perTool(edit{to: func(r *http.Request) bool {
				return !slices.Contains([]string{"list", "describe", "invoke"}, r.URL.Path[max(0, len("/mcp/tools/")):])
			}, request: func(r *http.Request) {
				if name, ok := strings.CutPrefix(r.URL.Path, "/mcp/tools/"); ok {
					r.URL.Path, r.URL.RawPath = "/mcp/tools/"+textual(change)(name).(string), ""
				}
			}})
		}, clauses: []string{"per-tool/answers", "per-tool/scopes"}},
		{name: "a tool's name in the list", can: portable, mutant: func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/list"), after: func(_, got document) {
				eachTool(got, func(tool document) { edited(tool, "name", textual(change)) })
			}})
		}, clauses: []string{"mapping/name-is-id", "mapping/long-names"}},
		{name: "a method on its way to the site", can: portable, mutant: func(change func(any) any) mutants.Mutant {
			return site(edit{to: toCall, before: func(sent document) { edited(sent, "method", textual(change)) }})
		}, clauses: []string{"upstream/valid-jsonrpc", "mapping/long-names"}},
		{name: "a user name", can: ofDrupal, mutant: func(change func(any) any) mutants.Mutant {
			return basic(func(user, password string) (string, string) { return textual(change)(user).(string), password })
		}, clauses: []string{"access/credentials-forwarded"}},
		{name: "a password", can: ofBasic, mutant: func(change func(any) any) mutants.Mutant {
			return basic(func(user, password string) (string, string) { return user, textual(change)(password).(string) })
		}, clauses: []string{"access/credentials-forwarded"}},
		{name: "a token", can: bearer, mutant: func(change func(any) any) mutants.Mutant {
			return site(edit{to: all, request: header("Authorization", "Bearer ", change)})
		}, clauses: []string{"access/credentials-forwarded"}},
		{name: "the id of a message of MCP", can: integral, mutant: func(change func(any) any) mutants.Mutant {
			return overMCP(front(everyID(at("/mcp"), change)))
		}, clauses: []string{"mcp/initialize"}},
		{name: "the id of a call at a tool's own endpoint", can: integral, mutant: func(change func(any) any) mutants.Mutant {
			return perTool(everyID(all, change))
		}, clauses: []string{"per-tool/answers"}},
		{name: "a cursor", can: offset, mutant: func(change func(any) any) mutants.Mutant { return query("/mcp/tools/list", "cursor", change) },
			clauses: []string{"list/pages-cover-all-once", "list/cursor-opaque-roundtrip"}},
		{name: "a cursor of MCP", can: offset, mutant: func(change func(any) any) mutants.Mutant {
			return overMCP(front(edit{to: at("/mcp"), before: func(sent document) { edited(objectIn(sent, "params"), "cursor", textual(change)) }}))
		}, clauses: []string{"mcp/tools-list"}},
		{name: "a caller's language", can: tag, mutant: func(change func(any) any) mutants.Mutant {
			return site(edit{to: all, request: header("Accept-Language", "", change)})
		}, clauses: []string{"mapping/language"}},
		{name: "the id of a session of MCP", can: session, mutant: func(change func(any) any) mutants.Mutant {
			return overMCP(front(edit{to: at("/mcp"), request: header("Mcp-Session-Id", "", change)}))
		}, clauses: []string{"mcp/tools-list"}},
		{name: "the version of a list", can: version, mutant: func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/list"), request: header("If-None-Match", "", change)})
		}, clauses: []string{"fresh/version"}},
		{name: "the site's challenge", can: inHeader(`^Basic realm="[A-Za-z ]{1,12}"$`, "the site writes its challenge itself: here its title"), mutant: func(change func(any) any) mutants.Mutant {
			return front(edit{to: at("/mcp/tools/invoke"), responseHeader: func(h http.Header) {
				for i, v := range h.Values("WWW-Authenticate") {
					h["Www-Authenticate"][i] = textual(change)(v).(string)
				}
			}})
		}, clauses: []string{"upstream/auth-error"}},
	}
}

// perTool is the correct variant with an endpoint for each tool, with an edit in front of it.
func perTool(e edit) mutants.Mutant {
	all := mutants.Variants()
	m := all[slices.IndexFunc(all, func(m mutants.Mutant) bool { return m.Name == "one-endpoint-a-tool" })]
	m.Name, m.AuthMiddleware = "power", func(testbed.Backends) func(http.Handler) http.Handler { return inFront(e) }
	return m
}
