package php

import (
	"encoding/base64"
	"math"
	"regexp"
	"strconv"
	"strings"
)

var leadingNumber = regexp.MustCompile(`^[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?`)

// ToInt returns `(int) $v`: of a text its leading number, cut to an integer, 0 where there is none or it is infinite. What
// is out of range becomes the nearest integer of half the range, so that a little can be added to it.
func ToInt(v Value) int64 {
	switch v := v.(type) {
	case int64:
		return v
	case float64:
		return int64(min(max(v, math.MinInt64/2), math.MaxInt64/2))
	case string:
		f, err := strconv.ParseFloat(leadingNumber.FindString(strings.TrimLeft(v, " \t\n\r\v\f")), 64)
		if err != nil { // no number, or ±Inf
			return 0
		}
		return ToInt(f)
	}
	if Truthy(v) {
		return 1
	}
	return 0
}

// Base64Decode is base64_decode: what is no base64 is left out, and so is a last letter that holds no byte.
func Base64Decode(s string) string {
	clean := strings.Map(func(c rune) rune {
		if c == '+' || c == '/' || c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' {
			return c
		}
		return -1
	}, s)
	if len(clean)%4 == 1 {
		clean = clean[:len(clean)-1]
	}
	decoded, _ := base64.RawStdEncoding.DecodeString(clean) // clean
	return string(decoded)
}
