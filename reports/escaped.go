package reports

import (
	"encoding/json"
	"reflect"

	"github.com/bridgecheck/bridgecheck/internal/terminal"
)

// Escaped is a copy of r in which every text, whoever wrote it, is escaped by terminal.Escape: no control or format
// character, and no command of a CI system, is left in any member, also in one that is added later. What a format writes of
// the copy needs the escapes of that format only. JSON values keep their value as JSON.
func (r *Report) Escaped() *Report {
	c := *r
	escapeIn(reflect.ValueOf(&c).Elem())
	c.groups = r.Groups() // of the texts as they came: escaped ones have other lengths
	escapeIn(reflect.ValueOf(&c.groups).Elem())
	return &c
}

// Escaped is a copy of c as Report.Escaped makes one.
func (c *Comparison) Escaped() *Comparison {
	d := *c
	escapeIn(reflect.ValueOf(&d).Elem())
	return &d
}

var rawType = reflect.TypeFor[json.RawMessage]()

// escapeIn escapes the texts in v, which can be set, and copies what they would share with others.
func escapeIn(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(terminal.Escape(v.String()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				escapeIn(v.Field(i))
			}
		}
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return
		}
		inner := reflect.New(v.Elem().Type())
		inner.Elem().Set(v.Elem())
		escapeIn(inner.Elem())
		if v.Kind() == reflect.Pointer {
			v.Set(inner)
		} else {
			v.Set(inner.Elem())
		}
	case reflect.Slice:
		switch {
		case v.Type() == rawType:
			v.SetBytes(terminal.JSON(v.Bytes()))
		case v.Type().Elem().Kind() == reflect.Uint8, v.IsNil(): // Message.Whole is sent, and shown nowhere
		default:
			c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
			reflect.Copy(c, v)
			for i := range c.Len() {
				escapeIn(c.Index(i))
			}
			v.Set(c)
		}
	case reflect.Map:
		if v.IsNil() {
			return
		}
		c := reflect.MakeMapWithSize(v.Type(), v.Len())
		for entry := v.MapRange(); entry.Next(); {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.Set(entry.Key())
			value.Set(entry.Value())
			escapeIn(key)
			escapeIn(value)
			c.SetMapIndex(key, value)
		}
		v.Set(c)
	}
}
