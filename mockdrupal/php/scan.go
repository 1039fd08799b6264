package php

// Member is one member of a JSON object as it was written.
type Member struct {
	Name string
	Raw  []byte
}

// Members returns the members of a JSON object in the order in which they were written, repeated ones too, each value
// byte for byte; nil when the document is no object. The document must be one that Decode reads.
func Members(doc []byte) []Member {
	d := decoder{data: doc}
	if d.space(); !d.take('{') {
		return nil
	}
	members := make([]Member, 0, usualMembers)
	for {
		if d.space(); d.take('}') || d.at >= len(doc) {
			return members
		}
		name, err := d.text()
		if err != nil {
			return members
		}
		d.space()
		d.take(':')
		members = append(members, Member{Name: name, Raw: d.raw()})
		d.space()
		d.take(',')
	}
}

// Elements returns the elements of a JSON array, each byte for byte; nil when the document is no array. The document
// must be one that Decode reads.
func Elements(doc []byte) [][]byte {
	d := decoder{data: doc}
	if d.space(); !d.take('[') {
		return nil
	}
	var elements [][]byte
	for {
		if d.space(); d.take(']') || d.at >= len(doc) {
			return elements
		}
		element := d.raw()
		if len(element) == 0 {
			return elements
		}
		elements = append(elements, element)
		d.space()
		d.take(',')
	}
}

// raw passes over one value of a valid document and returns its bytes.
func (d *decoder) raw() []byte {
	d.space()
	start, depth := d.at, 0
	for d.at < len(d.data) {
		switch d.data[d.at] {
		case '"':
			d.skipText()
		case '{', '[':
			depth++
			d.at++
		case '}', ']':
			if depth == 0 {
				return d.data[start:d.at]
			}
			depth--
			d.at++
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return d.data[start:d.at]
			}
			d.at++
		default:
			d.at++
			continue
		}
		if depth == 0 {
			return d.data[start:d.at]
		}
	}
	return d.data[start:]
}

func (d *decoder) skipText() {
	for d.at++; d.at < len(d.data); d.at++ {
		switch d.data[d.at] {
		case '\\':
			d.at++
		case '"':
			d.at++
			return
		}
	}
}
