package scenario

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/harness"
)

// SendHuge invokes no tool with 64 MiB of arguments, on a connection of its own.
func SendHuge(ctx context.Context, c harness.Client) *harness.Response {
	head, tail := `{"name":"`+NoSuchTool+`","arguments":{"x":"`, `"}}`
	const size = 64 << 20
	body := io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, size), strings.NewReader(tail))
	return c.Send(ctx, harness.Request{Method: http.MethodPost, Path: harness.InvokePath, Body: body, Show: head, Unseen: size + len(tail), Fresh: true})
}

// letters reads as the letter x without end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
