package route

import (
	"crypto/md5" //nolint:gosec // the module's choice, for names and no secret
	"encoding/hex"
	"strings"
)

// MCPPlugin is the plugin of the Drupal module mcp that offers the site's methods as tools.
const MCPPlugin = "site"

// MCPToolName is the name under which the Drupal module mcp lists a tool of MCPPlugin: lower case, other characters replaced, and of
// 64 characters at most.
func MCPToolName(id string) string {
	const longest = 64
	allowed := func(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }
	lower, b := strings.ToLower(id), make([]byte, 0, len(id))
	for i := range len(lower) {
		if c := lower[i]; allowed(c) {
			b = append(b, c)
		} else if i == 0 || allowed(lower[i-1]) { // one for several in a row
			b = append(b, '_')
		}
	}
	name := strings.Trim(string(b), "_")
	if name != "" && name[0] >= '0' && name[0] <= '9' {
		name = "_" + name
	}
	full := MCPPlugin + "_" + name
	if len(full) <= longest {
		return full
	}
	sum := md5.Sum([]byte(id)) //nolint:gosec // as above
	return full[:longest-7] + "_" + hex.EncodeToString(sum[:])[:6]
}
