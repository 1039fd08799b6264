package phpschema

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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
	for _, entry := range strings.Split(strings.TrimRight(s, ";"), ";") {
		if !style.MatchString(entry) {
			return false
		}
	}
	return true
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

// What PHP's FILTER_VALIDATE_EMAIL takes, with FILTER_FLAG_EMAIL_UNICODE.
var (
	atom    = "[!#-'*+\\-/-9=?A-Z^-~\\pL\\pN]+"
	quoted  = `"(?:[\x01-\x08\x0B\x0C\x0E-\x1F!#-\[\]-\x7F\pL\pN]|\\[\x00-\x7F])*"`
	word    = "(?:" + atom + "|" + quoted + ")"
	label   = `[a-z0-9]+(?:-+[a-z0-9]+)*`
	address = regexp.MustCompile(`(?i)^(` + word + `(?:\.` + word + `)*)@(?:(?:` + label + `\.)+(` + label + `)|\[(.*)\])$`)
)

// Longest parts of an address, in characters.
const (
	maxAddress, maxLocal, maxLabel = 254, 64, 63
)

func validEmail(s string) bool {
	m := address.FindStringSubmatch(s)
	if m == nil || utf8.RuneCountInString(s) > maxAddress || utf8.RuneCountInString(m[1]) > maxLocal {
		return false
	}
	if m[2] == "" {
		ip, isV6 := strings.CutPrefix(strings.ToLower(m[3]), "ipv6:")
		return isV6 && validIPv6(ip) || !isV6 && validIPv4(ip)
	}
	for _, l := range strings.Split(s[len(m[1])+1:], ".") {
		if utf8.RuneCountInString(l) > maxLabel {
			return false
		}
	}
	return m[2][0] < '0' || m[2][0] > '9' || strings.HasPrefix(m[2], "xn--")
}

// The library's UriValidator and RelativeReferenceValidator.
var (
	hierarchical = regexp.MustCompile(`(?i)^([a-z][a-z0-9+\-.]*)://` + // scheme
		`(?:[^:@/?#]+(?::[^@/?#]*)?@)?` + // user and password
		`([a-z0-9._~-]+|\[[a-f0-9:.]+\])` + // host
		`(?::(\d{1,5}))?` + // port
		`(?:/[a-zA-Z0-9._~!$&'()*+,;=:@/%-]*)*` + // path
		`(?:\?[^#]*)?(?:#.*)?$`)
	opaque    = regexp.MustCompile(`(?i)^(mailto|data|urn|news|tel|file):(.+)$`)
	mailto    = regexp.MustCompile(`^[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}$`)
	absolute  = regexp.MustCompile(`^(http|https)://`)
	reference = regexp.MustCompile(`^(([^/?#]+):)?(//([^/?#]*))?([^?#]*)(\?([^#]*))?(#(.*))?$`)
	odd       = regexp.MustCompile(`\\|^:/|^//$|^///[^/]|\s`)
	news      = regexp.MustCompile(`(?i)^[a-z0-9]+(\.[a-z0-9]+)*$`)
	tel       = regexp.MustCompile(`^\+?[0-9.\-() ]+$`)
)

func validURI(s string) bool {
	if m := hierarchical.FindStringSubmatch(s); m != nil {
		port, _ := strconv.Atoi(m[3])
		return !strings.Contains(m[2], "..") && (m[3] == "" || m[3] == "0" || port >= 1 && port <= 65535)
	}
	m := opaque.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	further := map[string]*regexp.Regexp{"mailto": mailto, "news": news, "tel": tel}[strings.ToLower(m[1])]
	return further == nil || further.MatchString(m[2])
}

func validReference(s string) bool {
	return validURI(s) || reference.MatchString(s) && !absolute.MatchString(s) && !odd.MatchString(s)
}
