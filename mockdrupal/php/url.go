package php

import (
	"net/url"
	"strings"
)

// URLDecode is PHP's urldecode.
func URLDecode(s string) string { return RawURLDecode(strings.ReplaceAll(s, "+", " ")) }

// RawURLDecode is PHP's rawurldecode: a percent sign that starts no escape stands for itself.
func RawURLDecode(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if u, err := url.PathUnescape(s[i : i+3]); err == nil {
				b.WriteString(u)
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Query returns an argument of a raw query as PHP's $_GET has it: the last of several; isList when it was sent as name[].
func Query(raw, name string) (value string, isList, has bool) {
	for pair := range strings.SplitSeq(raw, "&") {
		key, rest, _ := strings.Cut(pair, "=")
		base, index, list := strings.Cut(strings.TrimLeft(URLDecode(key), " "), "[")
		if argumentName.Replace(base) == name && (!list || strings.Contains(index, "]")) {
			value, isList, has = URLDecode(rest), list, true
		}
	}
	return value, isList, has
}

// argumentName writes an argument's name as $_GET has it.
var argumentName = strings.NewReplacer(".", "_", " ", "_")
