package generate

import (
	"sync"

	"github.com/bridgecheck/bridgecheck/internal/exact"
)

// Makers are the makers of the schemas that were met before: the workers of a run, and runs one after the other, meet the
// same. They have no dice until With gives them some. The zero value has met none. It is safe for concurrent use.
type Makers struct {
	mu    sync.Mutex
	known map[makerKey]func() (*Maker, error)
}

type makerKey struct {
	schema    string
	arguments bool
}

// maxKnown bounds how many are remembered. A site has some hundred tools.
const maxKnown = 1000

// ForArguments is a maker of arguments for an inputSchema, the same one each time. A schema for which none can be generated is an
// error, a jsonschema.BeyondError where it is beyond what is tested.
func (m *Makers) ForArguments(schema map[string]any) (*Maker, error) { return m.maker(schema, true) }

// ForResult is ForArguments of results for an outputSchema.
func (m *Makers) ForResult(schema map[string]any) (*Maker, error) { return m.maker(schema, false) }

func (m *Makers) maker(schema map[string]any, arguments bool) (*Maker, error) {
	text, err := exact.Write(schema)
	if err != nil {
		return nil, err
	}
	key := makerKey{string(text), arguments}
	m.mu.Lock()
	made, met := m.known[key]
	if !met {
		made = sync.OnceValues(func() (*Maker, error) { return newMaker(schema, nil, arguments) })
		if len(m.known) == maxKnown {
			m.known = nil
		}
		if m.known == nil {
			m.known = map[makerKey]func() (*Maker, error){}
		}
		m.known[key] = made
	}
	m.mu.Unlock()
	return made()
}
