package suites

import (
	"net/http"
	"testing"

	"github.com/onsi/gomega/types"

	"github.com/bridgecheck/bridgecheck/suites/contract"
)

// answered is an answer as a bridge might give it.
func answered(t *testing.T, status int, body string, header ...string) *Response {
	t.Helper()
	contract, err := contract.Load()
	if err != nil {
		t.Fatal(err)
	}
	a := &Response{Status: status, Body: []byte(body), Header: http.Header{"Content-Type": {"application/json"}}, Sent: http.Header{"Authorization": {"Basic x"}},
		t: &T{Environment: &Environment{contract: contract}}}
	for i := 0; i+1 < len(header); i += 2 {
		a.Header[header[i]] = []string{header[i+1]}
	}
	return a
}

func TestMatchersOfRefusalsAndHeaders(t *testing.T) {
	const refused = `{"error":{"code":"tool_not_found","message":"There is no tool named x."}}`
	for name, c := range map[string]struct {
		matcher types.GomegaMatcher
		answer  *Response
		matches bool
	}{
		"the envelope":                        {KeepEnvelope(), answered(t, 404, refused), true},
		"the envelope with data":              {KeepEnvelope(), answered(t, 400, `{"error":{"code":"invalid_params","message":"no","data":{}},"request":"7"}`), true},
		"the envelope as problem+json":        {KeepEnvelope(), answered(t, 404, refused, "Content-Type", "application/problem+json"), true},
		"the envelope as HTML":                {KeepEnvelope(), answered(t, 404, refused, "Content-Type", "text/html"), false},
		"an HTML page":                        {KeepEnvelope(), answered(t, 500, `<html></html>`, "Content-Type", "text/html"), false},
		"no body":                             {KeepEnvelope(), answered(t, 405, ``), false},
		"a page before routing":               {KeepEnvelope(), answered(t, 431, `too large`, "Content-Type", "text/plain"), true},
		"a text as error":                     {KeepEnvelope(), answered(t, 404, `{"error":"not found"}`), false},
		"no code":                             {KeepEnvelope(), answered(t, 404, `{"error":{"message":"no"}}`), false},
		"a number as code":                    {KeepEnvelope(), answered(t, 404, `{"error":{"code":404,"message":"no"}}`), false},
		"an empty message":                    {KeepEnvelope(), answered(t, 404, `{"error":{"code":"not_found","message":""}}`), false},
		"a result beside the error":           {KeepEnvelope(), answered(t, 500, `{"error":{"code":"execution_error","message":"no"},"result":null}`), false},
		"a word as code":                      {HaveWordAsCode(), answered(t, 404, refused), true},
		"capitals in the code":                {HaveWordAsCode(), answered(t, 404, `{"error":{"code":"ToolNotFound","message":"no"}}`), false},
		"a dash in the code":                  {HaveWordAsCode(), answered(t, 404, `{"error":{"code":"tool-not-found","message":"no"}}`), false},
		"an undocumented code":                {HaveDocumentedCode(), answered(t, 404, `{"error":{"code":"oops","message":"no"}}`), false},
		"an error under 200":                  {AgreeWithStatus(), answered(t, 200, refused), false},
		"a result under 500":                  {AgreeWithStatus(), answered(t, 500, `{"result":1}`), false},
		"a code of another class":             {AgreeWithStatus(), answered(t, 500, refused), false},
		"a code of the same class":            {AgreeWithStatus(), answered(t, 403, refused), true},
		"a result that holds an error":        {AgreeWithStatus(), answered(t, 200, `{"result":{"error":{}}}`), true},
		"a result and a null error":           {AgreeWithStatus(), answered(t, 200, `{"result":1,"error":null}`), true},
		"no-store":                            {ForbidStoring(), answered(t, 200, `{}`, "Cache-Control", "max-age=0, No-Store"), true},
		"private with a field":                {ForbidStoring(), answered(t, 200, `{}`, "Cache-Control", `private="set-cookie"`), true},
		"public":                              {ForbidStoring(), answered(t, 200, `{}`, "Cache-Control", "public, max-age=60"), false},
		"no Cache-Control":                    {ForbidStoring(), answered(t, 200, `{}`), false},
		"Vary: Authorization":                 {KeepFromOthers(), answered(t, 200, `{}`, "Vary", "Accept-Encoding, authorization"), true},
		"Vary: Cookie for Basic":              {KeepFromOthers(), answered(t, 200, `{}`, "Vary", "Cookie"), false},
		"Allow with GET":                      {AllowGET(), answered(t, 405, refused, "Allow", "HEAD, GET"), true},
		"Allow without GET":                   {AllowGET(), answered(t, 405, refused, "Allow", "POST"), false},
		"a 401 with a challenge":              {ChallengeIf401(), answered(t, 401, refused, "Www-Authenticate", `Basic realm="x"`), true},
		"a 401 without":                       {ChallengeIf401(), answered(t, 401, refused), false},
		"a 403 without":                       {ChallengeIf401(), answered(t, 403, refused), true},
		"a canary behind JSON's escapes":      {HoldAny([]string{`A\B`}), answered(t, 500, `{"error":{"message":"A\\B"}}`), true},
		"a canary in a header":                {HoldAny([]string{"CANARY"}), answered(t, 500, refused, "X-Debug", "CANARY"), true},
		"no canary":                           {HoldAny([]string{"CANARY"}), answered(t, 500, refused), false},
		"a parameter named":                   {NameParameter("n"), answered(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer","received":null}}}`), true},
		"a parameter named in a list":         {NameParameter("n"), answered(t, 400, `{"error":{"data":[{"parameter":"/n","expected":"integer","received":"x"}]}}`), true},
		"what was received missing":           {NameParameter("n"), answered(t, 400, `{"error":{"data":{"parameter":"n","expected":"integer"}}}`), false},
		"all names somewhere":                 {NameAll([]string{"a", "b"}), answered(t, 400, `{"error":{"data":{"parameter":"a","others":[{"parameter":"b"}]}}}`), true},
		"one name missing":                    {NameAll([]string{"alpha", "beta"}), answered(t, 400, `{"error":{"data":{"parameter":"alpha"}}}`), false},
		"another caller's tool in a refusal":  {SpeakOfNoOther("no.such.1.tool"), answered(t, 404, `{"error":{"message":"no.such.11.tool"}}`), false},
		"the caller's own tool in a refusal":  {SpeakOfNoOther("no.such.1.tool"), answered(t, 404, `{"error":{"message":"no.such.1.tool"}}`), true},
		"another caller's name":               {SpeakOfCaller("check1", []Identity{"check1", "check12"}), answered(t, 200, `{"result":{"name":"check12"}}`), false},
		"the caller's own name":               {SpeakOfCaller("check1", []Identity{"check1", "check12"}), answered(t, 200, `{"result":{"name":"check1"}}`), true},
		"an answer of another shape":          {HaveTheHeadOf(answered(t, 200, `{}`), answered(t, 200, `{}`)), answered(t, 200, ``, "Content-Type", "text/plain"), false},
		"a head without what may be left out": {HaveTheHeadOf(answered(t, 200, `{}`, "Content-Length", "2"), answered(t, 200, `{}`, "Content-Length", "2")), answered(t, 200, ``), true},
		"a head of another length":            {HaveTheHeadOf(answered(t, 200, `{}`, "Content-Length", "2"), answered(t, 200, `{}`, "Content-Length", "2")), answered(t, 200, ``, "Content-Length", "0"), false},
	} {
		t.Run(name, func(t *testing.T) {
			matches, err := c.matcher.Match(c.answer)
			if err != nil || matches != c.matches {
				t.Errorf("matches: %v, %v; want %v: %s", matches, err, c.matches, c.matcher.FailureMessage(c.answer))
			}
		})
	}
}
