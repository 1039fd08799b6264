package phpschema

import (
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"bridgecheck/mockdrupal/php"
)

// format is one value of the format keyword. Where param is set, the error carries the value beside the format.
type format struct {
	name    string // the constraint's name
	message string // shown stands for the value
	param   string
	quoted  bool // the value is shown as JSON
	valid   func(string) bool
}

const shown = "%s"

var formats = map[string]format{
	"email":         {name: "emailFormat", message: "Invalid email", valid: validEmail},
	"date":          {name: "dateFormat", message: "Invalid date " + shown + ", expected format YYYY-MM-DD", param: "date", valid: layout("2006-01-02")},
	"time":          {name: "timeFormat", message: "Invalid time " + shown + ", expected format hh:mm:ss", param: "time", quoted: true, valid: layout("15:04:05")},
	"date-time":     {name: "dateTimeFormat", message: "Invalid date-time " + shown + ", expected format YYYY-MM-DDThh:mm:ssZ or YYYY-MM-DDThh:mm:ss+hh:mm", param: "dateTime", quoted: true, valid: dateTime.MatchString},
	"uri":           {name: "urlFormat", message: "Invalid URL format", valid: validURL},
	"uri-reference": {name: "urlRefFormat", message: "Invalid URL reference format", valid: validReference},
	"uriref":        {name: "urlRefFormat", message: "Invalid URL reference format", valid: validReference},
	"ipv4":          {name: "ipFormat", message: "Invalid IP address", valid: func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() }},
	"ip-address":    {name: "ipFormat", message: "Invalid IP address", valid: func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is4() }},
	"ipv6":          {name: "ipFormat", message: "Invalid IP address", valid: func(s string) bool { a, err := netip.ParseAddr(s); return err == nil && a.Is6() }},
	"hostname":      {name: "styleHostName", message: "Invalid hostname", valid: hostname.MatchString},
	"host-name":     {name: "styleHostName", message: "Invalid hostname", valid: hostname.MatchString},
	"color":         {name: "colorFormat", message: "Invalid color", valid: color.MatchString},
	"regex":         {name: "regexFormat", message: "Invalid regex format " + shown, param: "value", valid: validRegex},
	"phone":         {name: "phoneFormat", message: "Invalid phone number", valid: phone.MatchString},
}

var (
	dateTime = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}[ Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d{2}:?\d{2})$`)
	hostname = regexp.MustCompile(`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$`)
	color    = regexp.MustCompile(`(?i)^(aqua|black|blue|fuchsia|gray|green|lime|maroon|navy|olive|orange|purple|red|silver|teal|white|yellow|#([a-f0-9]{3}|[a-f0-9]{6}))$`)
	phone    = regexp.MustCompile(`^\+?(\(\d{3}\)|\d{3}) \d{3} \d{4}$`)
)

func layout(l string) func(string) bool {
	return func(s string) bool { _, err := time.Parse(l, s); return err == nil }
}

// validEmail stands for FILTER_VALIDATE_EMAIL: one address without a name, with a dot in its domain.
func validEmail(s string) bool {
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || a.Name != "" {
		return false
	}
	_, domain, _ := strings.Cut(s, "@")
	return strings.Contains(strings.Trim(domain, "."), ".") && !strings.HasPrefix(domain, ".")
}

// validURL stands for FILTER_VALIDATE_URL: a scheme and a host (or a mail address, news group or file), in ASCII.
func validURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return false
	}
	switch u.Scheme {
	case "mailto", "news", "file":
		return true
	}
	return u.Host != ""
}

func validReference(s string) bool {
	switch head, _, _ := strings.Cut(s, "/"); {
	case validURL(s):
		return true
	case s == "":
		return false
	case strings.HasPrefix(s, "//"):
		return validURL("scheme:" + s)
	case strings.HasPrefix(s, "/"):
		return validURL("scheme://host" + s)
	default:
		return !strings.Contains(head, ":") && validURL("scheme://host/"+s)
	}
}

func validRegex(s string) bool {
	_, err := regexp.Compile(s)
	return err == nil
}

// format checks strings and, as the library does, numbers, which it casts to strings.
func (c *check) format(v php.Value, s *php.Array, path []string) {
	name, _ := s.Member("format").(string)
	f, known := formats[name]
	if !known || f.valid(php.ToString(v)) {
		return
	}
	params := []php.Pair{{Name: "format", Value: name}}
	message := f.message
	if f.param != "" {
		text := php.ToString(v)
		if f.quoted {
			doc, _ := php.Encode(v)
			text = plain(doc)
		}
		params = append([]php.Pair{{Name: f.param, Value: text}}, params...)
		message = strings.Replace(message, shown, text, 1)
	}
	c.fail(path, message, f.name, params...)
}
