package filter

import "strings"

// readVerbs end the ids of methods that only read, as in content.list or user.get.
var readVerbs = map[string]bool{
	"list": true, "get": true, "read": true, "search": true, "find": true, "view": true, "count": true, "show": true,
	"load": true, "describe": true, "info": true, "status": true, "isEnabled": true, "export": true, "preview": true,
}

// ReadsByName reports whether a method's id says that it only reads.
func ReadsByName(id string) bool { return readVerbs[id[strings.LastIndexByte(id, '.')+1:]] }
