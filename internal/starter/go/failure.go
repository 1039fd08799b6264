package main

import (
	"fmt"
	"net/http"
)

// Failure is an error response of the bridge. The codes and their statuses are the table of the contract (errors/code-stable).
type Failure struct {
	Status  int         `json:"-"`
	Header  http.Header `json:"-"`
	Code    string      `json:"code"`
	Message string      `json:"message"`
	Data    any         `json:"data,omitempty"`
}

func (f *Failure) Error() string { return f.Message }

func failure(status int, code, format string, args ...any) *Failure {
	return &Failure{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// notFound is for every name that the caller does not see, so that nobody learns why (access/no-oracle).
func notFound(name string) *Failure {
	return failure(404, "tool_not_found", `There is no tool named "%s".`, name)
}
