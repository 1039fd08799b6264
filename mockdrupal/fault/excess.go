package fault

import (
	"fmt"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// Stray is the result in the response that Excess adds.
const Stray = "stray"

// excess sends the response and, on the same connection, one to the call that would come next, were the ids counted.
func excess(v *action) {
	id := []byte("2")
	for _, m := range php.Members(v.Response.Body) {
		if m.Name == "id" {
			id = wrongID(m.Raw)
		}
	}
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":"%s"}`, id, Stray)
	v.SendWith(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
}
