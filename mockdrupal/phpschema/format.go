package phpschema

import (
	"net/netip"
	"regexp"
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

// formats are those that the library knows for texts; a number passes all of them.
var formats = map[string]format{
	"email":         {name: "emailFormat", message: "Invalid email", valid: validEmail},
	"date":          {name: "dateFormat", message: "Invalid date %s, expected format YYYY-MM-DD", param: "date", valid: validDate},
	"time":          {name: "timeFormat", message: "Invalid time %s, expected format hh:mm:ss", param: "time", quoted: true, valid: clock.MatchString},
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
	dateTime = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})[ Tt]([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]\d{2}:?\d{2})$`)
	hostname = regexp.MustCompile(`^(([a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9\-]*[a-zA-Z0-9])\.)*([A-Za-z0-9]|[A-Za-z0-9][A-Za-z0-9\-]*[A-Za-z0-9])$`)
	color    = regexp.MustCompile(`(?i)^(aqua|black|blue|fuchsia|gray|green|lime|maroon|navy|olive|orange|purple|red|silver|teal|white|yellow|#([a-f0-9]{3}|[a-f0-9]{6}))$`)
	phone    = regexp.MustCompile(`^\+?(\(\d{3}\)|\d{3}) \d{3} \d{4}$`)
)

func validDate(s string) bool {
	_, err := time.Parse(time.DateOnly, s)
	return err == nil
}

func validDateTime(s string) bool {
	m := dateTime.FindStringSubmatch(s)
	return m != nil && validDate(m[1])
}

func validIPv4(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is4()
}

func validIPv6(s string) bool {
	a, err := netip.ParseAddr(s)
	return err == nil && a.Is6() && a.Zone() == ""
}

func validRegex(s string) bool {
	_, err := regexp.Compile(s)
	return err == nil
}

func (c *check) format(v php.Value, s *php.Array, at place) {
	name, _ := s.Member("format").(string)
	f, known := formats[name]
	text, isText := v.(string)
	if !known || !isText || f.valid(text) {
		return
	}
	params := []php.Pair{{Name: "format", Value: name}}
	if f.param != "" {
		if f.quoted {
			text = printedText(text)
		}
		params = append([]php.Pair{{Name: f.param, Value: text}}, params...)
	}
	c.fail(at, f.message, f.name, params...)
}

func printedText(s string) string { return plain(php.AppendString(nil, s)) }
