package caller

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Languages are those that the site has, by Drupal's codes. Without any, callers choose from all languages of ISO 639-1:
// a closed set, so that callers cannot fill the cache with invented languages.
type Languages []string

// ParseLanguages reads language codes, as in pt-br.
func ParseLanguages(list []string) (Languages, error) {
	var languages Languages
	for _, code := range list {
		code = strings.ToLower(code)
		if code == "" || strings.Trim(code, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return nil, fmt.Errorf("%q is no language code, as in pt-br", code)
		}
		languages = append(languages, code)
	}
	return languages, nil
}

const (
	maxLanguage = 256 // bytes of an Accept-Language header that is read
	maxRanges   = 32  // languages in it
)

// Choose returns the one language that an Accept-Language header prefers among those there are; "" where it names none, and
// the site responds in its own.
func (ls Languages) Choose(header string) string {
	if header == "" || len(header) > maxLanguage {
		return ""
	}
	type wanted struct {
		tag     string
		quality float64
	}
	var ranges []wanted
	for part := range strings.SplitSeq(header, ",") {
		tag, parameter, weighted := strings.Cut(part, ";")
		quality := 1.0
		if weighted {
			text, ok := strings.CutPrefix(strings.ToLower(strings.ReplaceAll(parameter, " ", "")), "q=")
			q, err := strconv.ParseFloat(text, 64)
			if !ok || err != nil || !(q > 0 && q <= 1) {
				continue
			}
			quality = q
		}
		if ranges = append(ranges, wanted{strings.ToLower(strings.TrimSpace(tag)), quality}); len(ranges) == maxRanges {
			break
		}
	}
	slices.SortStableFunc(ranges, func(a, b wanted) int {
		switch {
		case a.quality > b.quality:
			return -1
		case a.quality < b.quality:
			return 1
		}
		return 0
	})
	for _, r := range ranges {
		if r.tag == "*" {
			return ""
		}
		if found := ls.lookup(r.tag); found != "" {
			return found
		}
	}
	return ""
}

// lookup finds a tag or the nearest that is more general (RFC 4647 §3.4), then one that is more special.
func (ls Languages) lookup(tag string) string {
	if len(ls) == 0 {
		return general(tag)
	}
	for rest := tag; rest != ""; rest = rest[:max(strings.LastIndexByte(rest, '-'), 0)] {
		if i := slices.Index(ls, rest); i >= 0 {
			return ls[i]
		}
	}
	base, _, _ := strings.Cut(tag, "-")
	for _, have := range ls {
		if strings.HasPrefix(have, base+"-") {
			return have
		}
	}
	return ""
}

// general returns the language without its region, except for those that Drupal distinguishes; "" for anything else.
func general(tag string) string {
	switch base, rest, _ := strings.Cut(tag, "-"); {
	case tag == "pt-br" || tag == "pt-pt" || tag == "zh-hans" || tag == "zh-hant":
		return tag
	case base == "zh" && slices.Contains([]string{"tw", "hk", "mo"}, rest):
		return "zh-hant"
	case base == "zh" && slices.Contains([]string{"cn", "sg"}, rest):
		return "zh-hans"
	case len(base) == 2 && strings.Contains(iso639, " "+base+" "):
		return base
	}
	return ""
}

// iso639 are the codes of ISO 639-1, with a blank on either side of each.
const iso639 = " aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en " +
	"eo es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka kg " +
	"ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng nl nn no " +
	"nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su sv sw ta te tg " +
	"th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu "
