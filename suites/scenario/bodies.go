package scenario

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/bridgecheck/bridgecheck/suites/check"
)

// SendHuge invokes no tool with 64 MiB of arguments, on a connection of its own: with the length announced, or in chunks.
func SendHuge(ctx context.Context, c check.Client, announced bool) *check.Response {
	return sendLetters(ctx, c, 64<<20, announced)
}

// SendLarge is SendHuge with 1.5 MiB, which bridges take: a picture of 1 MB in base64.
func SendLarge(ctx context.Context, c check.Client) *check.Response {
	return sendLetters(ctx, c, 3<<19, true)
}

func sendLetters(ctx context.Context, c check.Client, size int, announced bool) *check.Response {
	head, tail := `{"name":"`+NoSuchTool+`","arguments":{"x":"`, `"}}`
	body := io.MultiReader(strings.NewReader(head), io.LimitReader(letters{}, int64(size)), strings.NewReader(tail))
	r := check.Request{Method: http.MethodPost, Path: check.InvokePath, Body: body, Show: head, Unseen: size + len(tail), Fresh: true}
	if announced {
		r.Length = int64(len(head) + size + len(tail))
	}
	return c.Send(ctx, r)
}

// letters reads as the letter x without end.
type letters struct{}

func (letters) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}
