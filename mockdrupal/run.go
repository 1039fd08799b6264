package mockdrupal

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/journal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// counters count runs, by method id. They outlive a change of the site.
type counters struct {
	mu   sync.Mutex
	runs map[string]int64
}

func (c *counters) add(id string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runs == nil {
		c.runs = map[string]int64{}
	}
	c.runs[id]++
	return c.runs[id]
}

func (c *counters) get(id string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[id]
}

// Runs returns how often the method with this id ran on this mock.
func (d *Drupal) Runs(id string) int64 { return d.counts.get(id) }

// run executes one call; nil for a notification that succeeded.
func (x *request) run(c *rpcCall) *rpcResponse {
	r := x.execute(c)
	if c.id == nil && r.err == nil {
		return nil
	}
	return &r
}

// execute is the module's Handler: access, then the method. A denial and a JsonRpcException lose the id, any other
// exception keeps it.
func (x *request) execute(c *rpcCall) rpcResponse {
	if permission := x.state.lacks(x.caller, c.method); permission != "" {
		return failure(nil, invalidRequest("Access Denied: "+permissionRequired(permission)))
	}
	if x.protocol != nil && x.protocol.Run[c.method.ID] != nil {
		result, e := x.protocol.Run[c.method.ID](&Visit{x: x, call: c}, c.arguments)
		if e != nil {
			return c.thrown(e)
		}
		return rpcResponse{id: c.id, result: result, method: c.method}
	}
	result, problem := x.perform(c)
	switch {
	case problem != nil && (c.method.Behaviour.Kind == fixtures.Throw || problem == byNameOnly):
		return failure(c.id, problem)
	case problem != nil:
		return failure(nil, problem)
	case result == nil && (x.state.site.NullFails || x.d.options.JSONRPC == Line2) && c.id != nil:
		return failure(c.id, internalError(`Drupal\jsonrpc\JsonRpcObject\Response::setCacheability(): Argument #1 ($cacheability) must be of type `+
			`Drupal\Core\Cache\CacheableDependencyInterface, null given, called in /work/realdrupal/site/modules/contrib/jsonrpc/src/JsonRpcObject/Response.php on line 81`))
	}
	return rpcResponse{id: c.id, result: result, headers: c.method.ResponseHeaders, method: c.method}
}

// perform runs the method's behaviour on the call's arguments.
func (x *request) perform(c *rpcCall) (php.Value, *rpcError) {
	m := c.method
	var runs int64
	if x.protocol == nil { // else it is no method of the site
		runs = x.d.counts.add(m.ID)
		x.Note(func(e *journal.Entry) {
			if c.journal < len(e.Calls) { // else a batch that is an object, before a protocol
				e.Calls[c.journal].Ran = true
			}
		})
	}
	if m.Behaviour.Sleep > 0 || x.d.clock.isFrozen(m.ID) {
		if err := x.d.clock.sleep(x.Request.Context(), m.ID, m.Behaviour.Sleep); err != nil {
			x.Done = true
			return nil, nil
		}
	}
	b := &m.Behaviour
	switch b.Kind {
	case fixtures.Echo:
		if c.raw == nil {
			return php.Literal("{}"), nil
		}
		return php.Literal(c.raw), nil
	case fixtures.Value:
		return literal(b.Value), nil
	case fixtures.Fail:
		return nil, &rpcError{int64(b.Error.Code), b.Error.Message, literal(b.Error.Data)}
	case fixtures.Throw:
		return nil, internalError(b.Text)
	case fixtures.Count:
		return runs, nil
	case fixtures.Runs:
		return x.d.counts.get(b.Method), nil
	case fixtures.WhoAmI:
		return php.Map(php.Pair{Name: "uid", Value: int64(x.caller.user.UID)}, php.Pair{Name: "name", Value: x.caller.name()}), nil
	default:
		return x.compute(c, b)
	}
}

// literal is a result that the fixture contains; null is PHP's NULL.
func literal(raw fixtures.Raw) php.Value {
	if text := strings.TrimSpace(string(raw)); text == "" || text == "null" {
		return nil
	}
	return php.Literal(raw)
}

// byNameOnly is what the module's parameter bag says of every integer key: it never knows that a method's parameters are by
// position.
var byNameOnly = internalError("The parameters are by-name. String key required.")

// compute is for the behaviours that look at their arguments.
func (x *request) compute(c *rpcCall, b *fixtures.Behaviour) (php.Value, *rpcError) {
	arguments := c.arguments
	if c.method.ByPosition && len(c.method.Params) > 0 {
		return nil, byNameOnly
	}
	switch b.Kind {
	case fixtures.Lookup:
		return x.state.lookup(b, arguments)
	case fixtures.Get:
		return x.state.get(b, arguments)
	case fixtures.Entity:
		if c.unchecked {
			return php.Map(php.Pair{Name: "raw", Value: arguments.Member(b.By)}), nil
		}
		return arguments.Member(b.By), nil // the parameter factory loaded it
	case fixtures.Pick:
		result := &php.Array{}
		if more, err := php.Decode(b.Value); err == nil {
			if members, ok := more.(*php.Array); ok {
				result = members
			}
		}
		for _, name := range b.Fields {
			result.Set(php.KeyOf(name), arguments.Member(name))
		}
		return result, nil
	case fixtures.Types:
		types := &php.Array{}
		for _, p := range c.method.parameters() {
			v, _ := arguments.Get(p.key)
			types.Set(p.key, php.Map(php.Pair{Name: "type", Value: php.DebugType(v)}, php.Pair{Name: "value", Value: v}))
		}
		return types, nil
	case fixtures.Concat:
		return b.Text + php.ToString(arguments.Member(b.By)), nil
	}
	return nil, internalError("The behaviour " + string(b.Kind) + " is not known to the mock.")
}

// items returns a content list as PHP values.
func (s *snapshot) items(list string) []*php.Array {
	var items []*php.Array
	for _, raw := range s.site.Content[list] {
		if v, err := php.Decode(raw); err == nil {
			if a, ok := v.(*php.Array); ok {
				items = append(items, a)
			}
		}
	}
	return items
}

func (s *snapshot) lookup(b *fixtures.Behaviour, arguments *php.Array) (php.Value, *rpcError) {
	items := s.items(b.List)
	if words := arguments.Member(b.By); b.By != "" && words != nil {
		items = slices.DeleteFunc(items, func(item *php.Array) bool {
			return !strings.Contains(strings.ToLower(php.ToString(item.Member(b.Match))), strings.ToLower(php.ToString(words)))
		})
	}
	if page := arguments.Member(b.Page); b.Page != "" && php.Truthy(page) {
		switch page := page.(type) {
		case *php.Array:
			items = paged(items, page)
		case string:
			return nil, internalError("Cannot access offset of type string on string")
		}
	}
	found := &php.Array{}
	for _, item := range items {
		found.Append(fields(item, b.Fields))
	}
	return found, nil
}

// paged cuts items to {offset, limit} as SQLite does, where a negative limit is none; without a limit the rest is
// taken.
func paged(items []*php.Array, page *php.Array) []*php.Array {
	items = items[min(max(php.ToInt(page.Member("offset")), 0), int64(len(items))):]
	if limit := page.Member("limit"); limit != nil && php.ToInt(limit) >= 0 {
		items = items[:min(php.ToInt(limit), int64(len(items)))]
	}
	return items
}

func fields(item *php.Array, names []string) *php.Array {
	if len(names) == 0 {
		return item
	}
	cut := &php.Array{}
	for _, name := range names {
		cut.Set(php.KeyOf(name), item.Member(name))
	}
	return cut
}

// refusedItem is the member of an item that get refuses: why.
const refusedItem = "refused"

func (s *snapshot) get(b *fixtures.Behaviour, arguments *php.Array) (php.Value, *rpcError) {
	argument := arguments.Member(b.By)
	want, text := php.ToString(argument), b.Text
	switch argument.(type) {
	case *php.Array:
		return nil, internalError("Illegal offset type")
	case string, int64: // Drupal finds nothing by other types
		for _, item := range s.items(b.List) {
			if php.ToString(item.Member(b.Match)) != want {
				continue
			}
			if refused, ok := item.Member(refusedItem).(string); ok {
				text = refused
				break
			}
			if b.Field != "" {
				return item.Member(b.Field), nil
			}
			return fields(item, b.Fields), nil
		}
	}
	return nil, invalidParams(strings.ReplaceAll(cmp.Or(text, "Invalid method parameter(s)."), "{"+b.By+"}", want))
}

// contentEntities are the content entity types that every Drupal site of this kind has, with their tables; a content list
// of the same name adds its own.
var contentEntities = map[string]string{"node": "node", "user": "users", "block_content": "block_content", "file": "file_managed",
	"menu_link_content": "menu_link_content", "taxonomy_term": "taxonomy_term_data", "media": "media", "path_alias": "path_alias",
	"consumer": "consumer", "oauth2_token": "oauth2_token"}

// configEntities are those that are stored in configuration, where every query is possible.
var configEntities = []string{"node_type", "user_role", "block", "menu", "taxonomy_vocabulary", "media_type", "view", "date_format", "filter_format",
	"entity_view_mode", "entity_form_mode", "field_config", "field_storage_config", "action", "image_style"}

// loadEntity is the module's EntityParameterFactory, upon Drupal's entity repository.
func (s *snapshot) loadEntity(core Core, reference *php.Array) (php.Value, *rpcError) {
	kind, uuid := php.ToString(reference.Member("type")), reference.Member("uuid")
	list, listed := s.site.Content[kind]
	table, isContent := contentEntities[kind]
	isConfig := slices.Contains(configEntities, kind)
	switch {
	case core.BundleTypes && strings.Contains(kind, ":"):
		return nil, internalError("Bundle entity types are not supported directly.")
	case !listed && !isContent && !isConfig:
		return nil, internalError(`The "` + kind + `" entity type does not exist.`)
	case uuid == nil && !isConfig:
		return nil, internalError("Query condition '" + cmp.Or(table, kind) + ".uuid IN ()' cannot be empty.")
	}
	for _, raw := range list {
		item, err := php.Decode(raw)
		if err != nil {
			continue
		}
		if e, ok := item.(*php.Array); ok && php.ToString(e.Member("uuid")) == php.ToString(uuid) {
			return php.Map(php.Pair{Name: "label", Value: e.Member("label")}, php.Pair{Name: "id", Value: e.Member("id")}), nil
		}
	}
	return nil, invalidParams("The requested entity could not be found.")
}
