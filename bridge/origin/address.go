package origin

import (
	"errors"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// hosts are names, IPv4 and IPv6 addresses: a list of addresses or a bad paste is no host. Letters of all alphabets are allowed.
var hosts = regexp.MustCompile(`^[\pL\pN][\pL\pN_.-]*$|^[0-9A-Fa-f:.]+$`)

// outside are characters that an address must escape (RFC 3986): a program that reads it may stop at one, or go on.
const outside = " \"<>\\^`{|}"

// ParseAddress reads the address of a server: http or https, a host, and perhaps a port and a path.
func ParseAddress(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("it cannot be read")
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f || c == 0xfffd || strings.ContainsRune(outside, c) }):
		return nil, errors.New("it holds a blank or a character that must be escaped")
	case u.Scheme != "http" && u.Scheme != "https", u.Opaque != "":
		return nil, errors.New("it must begin with https:// or http://")
	case u.User != nil, u.RawQuery != "", u.ForceQuery, strings.Contains(text, "#"):
		return nil, errors.New("it must have no user, query or fragment")
	case !hosts.MatchString(u.Hostname()), strings.Contains(u.Hostname(), ".."):
		return nil, errors.New("its host is not one host name")
	}
	if port := u.Port(); port != "" || strings.HasSuffix(u.Host, ":") {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, errors.New("its port is not one of 1 to 65535")
		}
	}
	return u, nil
}
