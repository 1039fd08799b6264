// Package applicator is the table of the JSON Schema keywords that hold schemas, over the dialects from Draft 4 to 2020-12. It
// reads no schemas: whoever walks through one reads there what is a schema and what is data.
package applicator

// Holds says where in a keyword's value schemas stand.
type Holds int

// The places of schemas. The zero value is that of a keyword that holds none.
const (
	One          Holds = iota + 1 // the value is a schema
	List                          // a list of schemas
	OneOrList                     // either
	Named                         // an object whose members are schemas
	NamedOrNames                  // an object whose members are schemas or lists of names
)

// Keyword describes a keyword that holds schemas.
type Keyword struct {
	Holds   Holds
	InPlace bool // its schemas apply to the very value that the schema around them applies to
}

// Keywords are all that hold schemas.
var Keywords = map[string]Keyword{
	"properties":            {Named, false},
	"patternProperties":     {Named, false},
	"additionalProperties":  {One, false},
	"unevaluatedProperties": {One, false},
	"propertyNames":         {One, false},
	"items":                 {OneOrList, false},
	"prefixItems":           {List, false},
	"additionalItems":       {One, false},
	"unevaluatedItems":      {One, false},
	"contains":              {One, false},
	"contentSchema":         {One, false},
	"definitions":           {Named, false},
	"$defs":                 {Named, false},
	"allOf":                 {List, true},
	"anyOf":                 {List, true},
	"oneOf":                 {List, true},
	"not":                   {One, true},
	"if":                    {One, true},
	"then":                  {One, true},
	"else":                  {One, true},
	"dependencies":          {NamedOrNames, true},
	"dependentSchemas":      {Named, true},
}
