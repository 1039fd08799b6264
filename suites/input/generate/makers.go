package generate

import "github.com/bridgecheck/bridgecheck/internal/exact"

// Makers are the makers of the schemas that were met before: runs one after the other meet the same. They have no dice
// until With gives them some. The zero value has met none. It is for one goroutine.
type Makers struct{ known map[makerKey]*Maker }

type makerKey struct {
	schema    string
	arguments bool
}

// maxKnown bounds how many are remembered. A site has some hundred tools.
const maxKnown = 1000

// ForArguments is a maker of arguments for an inputSchema, the same one each time; nil where none can be generated.
func (m *Makers) ForArguments(schema map[string]any) *Maker { return m.maker(schema, true) }

// ForResult is a maker of results for an outputSchema, the same one each time; nil where none can be generated.
func (m *Makers) ForResult(schema map[string]any) *Maker { return m.maker(schema, false) }

func (m *Makers) maker(schema map[string]any, arguments bool) *Maker {
	text, err := exact.Write(schema)
	if err != nil {
		return nil
	}
	key := makerKey{string(text), arguments}
	made, met := m.known[key]
	if !met {
		made, _ = newMaker(schema, nil, arguments) // nil with the error
		if len(m.known) == maxKnown {
			m.known = nil
		}
		if m.known == nil {
			m.known = map[makerKey]*Maker{}
		}
		m.known[key] = made
	}
	return made
}
