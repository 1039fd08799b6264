package oauth

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/bridgecheck/bridgecheck/internal/must"
)

// Claims are read by exact names and types, or not at all.
func TestSecurityDocumentsAreReadExactly(t *testing.T) {
	for name, c := range map[string]struct{ document, subject string }{ // subject "": refused
		"the positive control":           {`{"sub":"low","aud":["a","b"],"exp":1.5e9,"scope":null}`, "low"},
		"members that are not read":      {`{"sub":"low","x":{"a":[1,{"b":null}]}}`, "low"},
		"an escaped name is the name":    {`{"\u0073ub":"low"}`, "low"},
		"another case is another member": {`{"sub":"low","SUB":"admin","Sub":"admin","ſub":"admin"}`, "low"},
		"a name twice":                   {`{"sub":"low","sub":"admin"}`, ""},
		"a name twice, once escaped":     {`{"sub":"low","\u0073ub":"admin"}`, ""},
		"twice, where it is not read":    {`{"sub":"low","x":{"a":1,"a":2}}`, ""},
		"an unread name twice":           {`{"sub":"low","x":1,"x":2}`, ""},
		"sub is a number":                {`{"sub":1}`, ""},
		"sub is null":                    {`{"sub":null}`, ""},
		"exp is a text":                  {`{"sub":"low","exp":"9999999999"}`, ""},
		"exp is beyond all times":        {`{"sub":"low","exp":1e300}`, ""},
		"aud is an object":               {`{"sub":"low","aud":{"a":1}}`, ""},
		"aud holds a number":             {`{"sub":"low","aud":["a",1]}`, ""},
		"scope is a number":              {`{"sub":"low","scope":5}`, ""},
		"two objects":                    {`{"sub":"low"}{"sub":"admin"}`, ""},
		"bytes after it":                 {`{"sub":"low"}x`, ""},
		"cut":                            {`{"sub":"low"`, ""},
		"a list":                         {`[{"sub":"low"}]`, ""},
		"not UTF-8":                      {"{\"sub\":\"low\xff\"}", ""},
		"half a surrogate":               {`{"sub":"low\ud800"}`, ""},
		"nothing":                        {``, ""},
		"too deep":                       {`{"sub":"low","x":` + strings.Repeat("[", 100_000), ""},
	} {
		var got claims
		if err := got.fields().read([]byte(c.document)); (err != nil) != (c.subject == "") || err == nil && got.Subject != c.subject {
			t.Errorf("%s: subject %q, error %v, want %q", name, got.Subject, err, c.subject)
		}
	}
}

// Whatever is read has no name twice, and says the same when it is read again.
func FuzzReadDocument(f *testing.F) {
	for _, s := range []string{`{"sub":"a","aud":"b","exp":1}`, `{"aud":["a"],"scope":"a b","x":[{}]}`, `{"sub":"a","SUB":"b"}`, `{"sub":1}`,
		`{"aud":[{},1],"exp":3600,"sub":true,"x":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		before := slices.Clone(document)
		// The readers that claims do not have.
		var active, critical bool
		var lasts int64
		var published []jsontext.Value
		members := fields{"aud": list(&published, raw), "exp": optional(integer(&lasts)), "sub": boolean(&active), "x": present(&critical)}
		if err := members.read(document); err == nil && !jsontext.Value(document).IsValid() {
			t.Errorf("%q is read", document)
		}
		var one, two claims
		err, again := one.fields().read(document), two.fields().read(document)
		must.Expect(t, (err == nil) == (again == nil) && one.Subject == two.Subject && slices.Equal(one.Audience, two.Audience) && slices.Equal(before, document),
			"%q is read as %+v, %v and as %+v, %v", before, one, err, two, again)
	})
}

// fields.read is the only decoder: nothing here decodes by encoding/json, nor does the JWT library for it.
func TestOneDecoderReadsSecurityDocuments(t *testing.T) {
	files := must.Get(os.ReadDir("."))(t)
	read := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		parsed := must.Get(parser.ParseFile(token.NewFileSet(), file.Name(), nil, 0))(t)
		read++
		names := map[string]string{} // of the imports
		for _, spec := range parsed.Imports {
			path, _ := strconv.Unquote(spec.Path.Value)
			name := path[strings.LastIndexByte(path, '/')+1:]
			if strings.HasPrefix(path, "github.com/golang-jwt/jwt/") {
				name = "jwt"
			}
			if spec.Name != nil {
				name = spec.Name.Name
			}
			names[name] = path
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			selected, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			from, _ := selected.X.(*ast.Ident)
			if from == nil {
				return true
			}
			switch path, what := names[from.Name], selected.Sel.Name; {
			case path == "encoding/json" && what != "Marshal",
				strings.HasPrefix(path, "github.com/golang-jwt/") && (strings.HasPrefix(what, "Parse") || what == "NewParser"):
				t.Errorf("%s uses %s.%s: read documents of peers by fields.read", file.Name(), from.Name, what)
			}
			return true
		})
	}
	must.Expect(t, read >= 5, "only %d files were looked at", read)
}
