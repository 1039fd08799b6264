package callpage

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/fault"
	"github.com/bridgecheck/bridgecheck/mockdrupal/patch"
)

// siteView is what stands behind the bridge, as far as it can be changed.
type siteView struct {
	Armed   []fault.Armed
	Kinds   []fault.Kind
	Methods []part
	Roles   []roleView
	Problem string     // why the last change was refused; "": it was made
	Given   url.Values // of that change
}

// part of the site is there or not; the patch changes that.
type part struct {
	ID, Name string
	There    bool
	Patch    patch.Patch
}

type roleView struct {
	Name        string
	Accounts    []string
	Held        int
	Permissions []part
}

func (s *server) site() *siteView {
	if s.Site == nil {
		return nil
	}
	v := &siteView{Armed: s.Site.Faults(), Kinds: fault.Kinds()}
	if s.Mock == nil {
		return v
	}
	site, permissions := s.Mock.Site(), map[string]bool{fixtures.UseJSONRPC: true}
	for i, m := range s.methods { // of the start: one that is gone can come back
		one := patch.Selection{Methods: []string{m.ID}}
		p := part{ID: fmt.Sprintf("method-%d", i), Name: m.ID, Patch: patch.Patch{Enable: one}}
		if _, p.There = site.Method(m.ID); p.There {
			p.Patch = patch.Patch{Disable: one}
		}
		v.Methods = append(v.Methods, p)
		for _, needed := range m.Access {
			permissions[needed] = true
		}
	}
	roles := slices.Clone(site.Roles)
	for _, always := range []string{fixtures.AuthenticatedRole, fixtures.AnonymousRole} {
		if !slices.ContainsFunc(roles, func(r fixtures.Role) bool { return r.ID == always }) {
			roles = append(roles, fixtures.Role{ID: always})
		}
	}
	for _, role := range roles {
		for _, held := range role.Permissions {
			permissions[held] = true
		}
	}
	for i, role := range roles {
		r := roleView{Name: role.ID, Held: len(role.Permissions)}
		for _, u := range site.Users {
			if slices.Contains(u.Roles, role.ID) {
				r.Accounts = append(r.Accounts, u.Name)
			}
		}
		for j, name := range slices.Sorted(maps.Keys(permissions)) {
			p := part{ID: fmt.Sprintf("permission-%d-%d", i, j), Name: name, There: slices.Contains(role.Permissions, name)}
			change := patch.Role{Grant: []string{name}}
			if p.There {
				change = patch.Role{Revoke: []string{name}}
			}
			p.Patch.Roles = map[string]patch.Role{role.ID: change}
			r.Permissions = append(r.Permissions, p)
		}
		v.Roles = append(v.Roles, r)
	}
	return v
}

// change arms or disarms a fault, or changes the site, as a form of the page says. It waits for no call: a call may hang on a fault.
func (s *server) change(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxCall)
	if err := s.changeSite(r); err != nil {
		v := s.view(r)
		if v.Behind != nil {
			v.Behind.Problem, v.Behind.Given = err.Error(), r.PostForm
		}
		s.write(w, "page", v)
		return
	}
	http.Redirect(w, r, "./?"+r.URL.RawQuery, http.StatusSeeOther)
}

func (s *server) changeSite(r *http.Request) error {
	if s.Site == nil {
		return errors.New("the site behind the bridge is not seen, and takes no change")
	}
	if err := r.ParseForm(); err != nil {
		return err
	}
	form := r.PostForm
	switch {
	case form.Has("disarm"):
		if id, err := strconv.ParseInt(form.Get("disarm"), 10, 64); err != nil || !s.Site.Disarm(id) {
			return errors.New("the fault is over already")
		}
		return nil
	case form.Has("patch") && s.Mock != nil:
		var p patch.Patch
		if err := strict(form.Get("patch"), &p); err != nil {
			return fmt.Errorf("the change of the site: %w", err)
		}
		return s.Mock.Patch(p)
	}
	f := fault.Fault{}
	if err := json.Unmarshal([]byte(cmp.Or(strings.TrimSpace(form.Get("more")), "{}")), &f); err != nil {
		return fmt.Errorf(`what else the fault has is JSON, such as {"delay": "1s"}: %w`, err)
	}
	f.Kind, f.Method = cmp.Or(form.Get("kind"), f.Kind), cmp.Or(form.Get("only"), f.Method)
	_, err := s.Site.ArmNumbered(f)
	return err
}

// strict reads JSON in which every member is known.
func strict(text string, v any) error {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// The journal is looked at so often; a page that opens it starts with so many entries.
const (
	lookEvery   = 200 * time.Millisecond
	shownBefore = 100
)

// stream sends the entries of the journal as events until the page is gone: each when it arrives, and again when it has ended.
func (s *server) stream(w http.ResponseWriter, r *http.Request) {
	if s.Site == nil {
		http.Error(w, "the site behind the bridge is not seen", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	after, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil {
		after = max(0, s.Site.Journal().Last()-shownBefore)
	}
	ended := map[int64]bool{} // of those sent
	out := http.NewResponseController(w)
	for tick := time.NewTicker(lookEvery); ; {
		var b bytes.Buffer
		gapless := true
		for _, e := range s.Site.Journal().Entries(after) {
			now := !e.End.IsZero()
			if before, sent := ended[e.Seq]; !sent || before != now {
				ended[e.Seq] = now
				var line bytes.Buffer
				if err := s.pages.ExecuteTemplate(&line, "entry", e); err != nil {
					return
				}
				fmt.Fprintf(&b, "id: %d\ndata: %s\n\n", e.Seq, strings.ReplaceAll(line.String(), "\n", "\ndata: "))
			}
			if gapless = gapless && now; gapless {
				after = e.Seq
				delete(ended, e.Seq)
			}
		}
		if _, err := w.Write(b.Bytes()); err != nil || out.Flush() != nil {
			return
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			tick.Stop()
			return
		}
	}
}
