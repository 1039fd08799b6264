package phpschema

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// format is one value of the format keyword. Where param is set, the error carries the value beside the format.
type format struct {
	name    string // the constraint's name
	message string
	param   string
	quoted  bool // the value is shown as JSON
	valid   func(string) bool
}

// formats are those that the library knows for texts; a number passes most of them.
var formats = map[string]format{
	"email":         {name: "emailFormat", message: "Invalid email", valid: validEmail},
	"date":          {name: "dateFormat", message: "Invalid date %s, expected format YYYY-MM-DD", param: "date", valid: validDate},
	"time":          {name: "timeFormat", message: "Invalid time %s, expected format hh:mm:ss", param: "time", quoted: true, valid: clock.MatchString},
	"utc-millisec":  {name: "dateUtcFormat", message: "Invalid time %s, expected integer of milliseconds since Epoch", param: "value", valid: seconds.MatchString},
	"style":         {name: "styleFormat", message: "Invalid style", valid: validStyle},
	"date-time":     {name: "dateTimeFormat", message: "Invalid date-time %s, expected format YYYY-MM-DDThh:mm:ssZ or YYYY-MM-DDThh:mm:ss+hh:mm", param: "dateTime", quoted: true, valid: validDateTime},
	"uri":           {name: "urlFormat", message: "Invalid URL format", valid: validURI},
	"uri-reference": {name: "urlFormat", message: "Invalid URL format", valid: validReference},
	"uriref":        {name: "urlFormat", message: "Invalid URL format", valid: validReference},
	"ipv4":          {name: "ipFormat", message: "Invalid IP address", valid: validIPv4},
	"ip-address":    {name: "ipFormat", message: "Invalid IP address", valid: validIPv4},
	"ipv6":          {name: "ipFormat", message: "Invalid IP address", valid: validIPv6},
	"hostname":      {name: "styleHostName", message: "Invalid hostname", valid: hostname.MatchString},
	"host-name":     {name: "styleHostName", message: "Invalid hostname", valid: hostname.MatchString},
	"color":         {name: "colorFormat", message: "Invalid color", valid: color.MatchString},
	"regex":         {name: "regexFormat", message: "Invalid regex format %s", param: "value", valid: validRegex},
	"phone":         {name: "phoneFormat", message: "Invalid phone number", valid: phone.MatchString},
}

var (
	clock    = regexp.MustCompile(`^([01]\d|2[0-3]):[0-5]\d:[0-5]\d$`)
	seconds  = regexp.MustCompile(`^(0|-?[1-9]\d{0,17})$`)
	style    = regexp.MustCompile(`(?i)^\s*[-a-z]+\s*:\s*.+\n?$`)
	dateTime = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[ T]((?:[01]\d|2[0-3]):[0-5]\d):([0-5]\d|60)(?:\.\d{1,6})?(?:Z|([+-](?:[01]\d|2[0-3])):?([0-5]\d))\n?$`)
	hostname = regexp.MustCompile(`^(?:[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9](?:[A-Za-z0-9\-]{0,61}[A-Za-z0-9])?$`)
	color    = regexp.MustCompile(`(?i)^(aqua|black|blue|fuchsia|gray|green|lime|maroon|navy|olive|orange|purple|red|silver|teal|white|yellow|#([a-f0-9]{3}|[a-f0-9]{6}))$`)
	phone    = regexp.MustCompile(`^\+?(\(\d{3}\)|\d{3}) \d{3} \d{4}\n?$`)
)

func validDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func validDateTime(s string) bool {
	m := dateTime.FindStringSubmatch(strings.ToUpper(s))
	if m == nil || !validDate(m[1]) || strings.HasSuffix(s, "\n") {
		return false
	}
	if m[3] != "60" {
		return true
	}
	zone := "Z"
	if m[4] != "" {
		zone = m[4] + ":" + m[5]
	}
	last, err := time.Parse(time.RFC3339, m[1]+"T"+m[2]+":59"+zone) // a leap second ends a day
	return err == nil && last.UTC().Format(time.TimeOnly) == "23:59:59"
}

func validStyle(s string) bool {
	entries := strings.Split(strings.TrimRight(s, ";"), ";")
	return !slices.ContainsFunc(entries, func(entry string) bool { return !style.MatchString(entry) })
}

func validIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func validIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func validRegex(s string) bool { return compilePattern(s) != nil }

func (c *check) format(v php.Value, s *php.Array, at place) {
	name, _ := s.Member("format").(string)
	f, known := formats[name]
	text, isText := v.(string)
	switch {
	case !known, isText && f.valid(text):
		return
	case !isText && name == "phone":
		throw("TypeError", "preg_match(): Argument #2 ($subject) must be of type string, "+php.DebugType(v)+" given")
	case !isText && name == "style":
		throw("TypeError", "rtrim(): Argument #1 ($string) must be of type string, "+php.DebugType(v)+" given")
	case !isText && name != "utc-millisec":
		return
	}
	params := []php.Pair{{Name: "format", Value: name}}
	if f.param != "" {
		if f.quoted {
			v = printedText(text)
		}
		params = append([]php.Pair{{Name: f.param, Value: v}}, params...)
	}
	c.fail(at, f.message, f.name, params...)
}

func printedText(s string) string { return plain(php.AppendString(nil, s)) }
