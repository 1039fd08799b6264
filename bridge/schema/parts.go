package schema

import (
	"fmt"
	"slices"
)

// object checks what a schema says of an object and its members.
func (e *evaluation) object(p *plan, at uint32, n node, marks []bool) {
	if p.properties == nil && p.patterns == nil && p.additional == nil && p.names == nil && p.required == nil &&
		p.dependents == nil && p.minMembers == nil && p.maxMembers == nil {
		return
	}
	count, met := 0, 0
	for i, member := at+1, -1; i < n.next && !e.stop; i = e.ix.nodes[i+1].next {
		member++
		name := e.ix.nodes[i]
		if name.absent {
			continue
		}
		count++
		if !e.spend(1 + int(name.to-name.from)/16) {
			return
		}
		text := e.ix.text(i)
		if p.isRequired[string(text)] {
			met++
		}
		if e.member(p, i, text) && marks != nil {
			marks[member] = true
		}
		if d, ok := p.dependents[string(text)]; ok {
			e.require(at, d.required, "dependencies", string(text))
			if d.plan != nil {
				e.within(d.plan, at, marks, false)
			}
		}
	}
	if met < len(p.isRequired) {
		e.require(at, p.required, "required", "")
	}
	e.count(at, count, p.minMembers, p.maxMembers, "Properties", "members")
}

// member checks one member; it reports whether the schema says anything of it.
func (e *evaluation) member(p *plan, i uint32, name []byte) (evaluated bool) {
	e.path = append(e.path, pathStep{name: i})
	defer func() { e.path = e.path[:len(e.path)-1] }()
	if property, ok := p.properties[string(name)]; ok {
		evaluated = true
		e.apply(property, i+1, nil)
	}
	for _, matching := range p.patterns {
		if !e.spend(matching.price(len(name))) {
			return
		}
		if matching.re.Match(name) {
			evaluated = true
			e.apply(matching.plan, i+1, nil)
		}
	}
	if !evaluated && p.additional != nil {
		evaluated = true
		if p.additional.never {
			e.fail(i+1, "additionalProperties", "no such member")
		} else {
			e.apply(p.additional, i+1, nil)
		}
	}
	if p.names != nil {
		e.apply(p.names, i, nil)
	}
	return evaluated
}

// require checks that members are there. because is the member that asks for them, "" for required.
func (e *evaluation) require(at uint32, names []string, keyword, because string) {
	for _, name := range names {
		if e.stop || !e.spend(int(e.ix.nodes[at].next-at)) {
			return
		}
		switch there := e.ix.member(at, name) > 0; {
		case there:
		case because == "":
			e.fail(at, keyword, "a value", name)
		default:
			e.fail(at, keyword, name+" beside it")
		}
	}
}

func (e *evaluation) count(at uint32, n int, least, most *int, keyword, what string) {
	if least != nil && n < *least {
		e.fail(at, "min"+keyword, fmt.Sprintf("at least %d %s", *least, what))
	}
	if most != nil && n > *most {
		e.fail(at, "max"+keyword, fmt.Sprintf("at most %d %s", *most, what))
	}
}

// array checks what a schema says of an array and its items.
func (e *evaluation) array(p *plan, at uint32, n node, marks []bool) {
	if p.items == nil && p.rest == nil && p.contains == nil && !p.unique && p.minItems == nil && p.maxItems == nil {
		return
	}
	count, matched := 0, 0
	for i := at + 1; i < n.next && !e.stop; i = e.ix.nodes[i].next {
		item := p.rest
		if count < len(p.items) {
			item = p.items[count]
		}
		e.path = append(e.path, pathStep{item: count})
		evaluated := item != nil
		switch {
		case item == nil:
		case item.never:
			e.fail(i, "additionalItems", "no further items")
		default:
			e.apply(item, i, nil)
		}
		if p.contains != nil && e.silently(p.contains, i, nil) {
			matched++
			evaluated = evaluated || p.evaluates
		}
		if evaluated && marks != nil {
			marks[count] = true
		}
		e.path = e.path[:len(e.path)-1]
		count++
		if !e.spend(1) {
			return
		}
	}
	if e.stop {
		return
	}
	if p.contains != nil && matched < p.minContains {
		e.fail(at, "contains", "an item as the schema's contains asks")
	}
	if p.contains != nil && p.maxContains != nil && matched > *p.maxContains {
		e.fail(at, "maxContains", fmt.Sprintf("at most %d items as the schema's contains asks", *p.maxContains))
	}
	e.count(at, count, p.minItems, p.maxItems, "Items", "items")
	if p.unique && count > 1 {
		e.unique(at, n, count)
	}
}

// unique checks that all items differ, by their hashes.
func (e *evaluation) unique(at uint32, n node, count int) {
	if !e.spend(e.size(at) + 8*count) {
		return
	}
	hashes := make([]uint64, 0, count)
	for i := at + 1; i < n.next; i = e.ix.nodes[i].next {
		hashes = append(hashes, e.ix.hash(i, e.seed))
	}
	slices.Sort(hashes)
	if len(slices.Compact(hashes)) < count {
		e.fail(at, "uniqueItems", "items that all differ")
	}
}

// combine checks the schemas that apply to the same value.
func (e *evaluation) combine(p *plan, at uint32, marks []bool) {
	for _, same := range p.same {
		if e.within(same, at, marks, false); e.stop {
			return
		}
	}
	if len(p.any) > 0 {
		matches := false
		for _, alternative := range p.any {
			if e.within(alternative, at, marks, true) {
				if matches = true; marks == nil {
					break
				}
			}
			if e.stop {
				return
			}
		}
		if !matches {
			e.fail(at, "anyOf", "a value that fits one of the alternatives")
		}
	}
	if len(p.one) > 0 {
		matches := 0
		for _, alternative := range p.one {
			if e.within(alternative, at, marks, true) {
				matches++
			}
			if e.stop {
				return
			}
		}
		if matches != 1 {
			e.fail(at, "oneOf", "a value that fits exactly one of the alternatives")
		}
	}
	if p.not != nil && e.silently(p.not, at, nil) {
		e.fail(at, "not", "a value that does not fit the excluded schema")
	}
	if p.cond != nil {
		next := p.orElse
		if e.within(p.cond, at, marks, true) {
			next = p.then
		}
		if next != nil && !e.stop {
			e.within(next, at, marks, false)
		}
	}
}

// applyRest checks what no other keyword has evaluated.
func (e *evaluation) applyRest(p *plan, at uint32, n node, marks []bool) {
	part := 0
	for i := at + 1; i < n.next && !e.stop; part++ {
		var rest *plan
		value, step := i, pathStep{item: part}
		if rest = p.restItems; n.kind == isObject {
			rest, value, step = p.restMembers, i+1, pathStep{name: i}
		}
		if rest != nil && !marks[part] && !e.ix.nodes[i].absent {
			e.path = append(e.path, step)
			e.apply(rest, value, nil)
			e.path = e.path[:len(e.path)-1]
			marks[part] = true
		}
		i = e.ix.nodes[value].next
	}
}
