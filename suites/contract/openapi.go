package contract

import (
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// openAPI is the description of the three endpoints. The responses with an error are inserted from the table of codes.
//
//go:embed openapi.yaml
var openAPI string

// OpenAPI returns the three endpoints as an OpenAPI 3.1 document in YAML.
func (c *Contract) OpenAPI() string {
	var errors, responses strings.Builder
	for _, status := range slices.Sorted(maps.Keys(c.Codes)) {
		fmt.Fprintf(&errors, "        %q: {$ref: \"#/components/responses/%d\"}\n", fmt.Sprint(status), status)
		var codes, when []string
		for _, code := range c.Codes[status] {
			codes = append(codes, code)
			when = append(when, "`"+code+"`: "+c.Meanings[code]+".")
		}
		fmt.Fprintf(&responses, "    %q:\n      description: %q\n", fmt.Sprint(status), strings.Join(when, " "))
		responses.WriteString("      content:\n        application/json:\n          schema:\n            allOf:\n              - {$ref: \"#/components/schemas/Error\"}\n")
		fmt.Fprintf(&responses, "              - {properties: {error: {properties: {code: {enum: [%s]}}}}}\n", strings.Join(codes, ", "))
	}
	return strings.NewReplacer(
		"{{version}}", c.Version,
		"{{errors}}\n", errors.String(),
		"{{responses}}\n", responses.String(),
	).Replace(openAPI)
}
