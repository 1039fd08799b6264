package mockdrupal

import (
	"net/http"

	"bridgecheck/fixtures"
	"bridgecheck/mockdrupal/php"
)

// loginRoutes are Drupal's own routes for signing in and out by cookie.
func loginRoutes() []route {
	return []route{
		{name: RouteLogin, path: "/user/login", verbs: []string{"GET", "POST"}, schemes: cookieOnly, handle: (*exchange).login},
		{name: RouteLogout, path: "/user/logout", verbs: []string{"GET", "POST"}, schemes: cookieOnly, handle: (*exchange).logout},
		{name: RouteSession, path: "/session/token", verbs: []string{"GET"}, schemes: cookieOnly, handle: (*exchange).sessionToken},
		{name: RouteSession, path: "/user/login_status", verbs: []string{"GET"}, schemes: cookieOnly, handle: (*exchange).loginStatus},
	}
}

// bad is a 400 with a message.
func (x *exchange) bad(message string) *Answer {
	return x.refuse(refusal{http.StatusBadRequest, "Client error", message})
}

// login is POST /user/login?_format=json. Without a format it is the page with the form.
func (x *exchange) login(map[string]string) *Answer {
	if x.rejected != nil {
		return x.rejected
	}
	if x.verb != http.MethodPost || x.format() != "json" {
		return page(http.StatusOK, "Log in | "+x.state.site.Title)
	}
	if x.caller.scheme != "" {
		return x.denied("This route can only be accessed by anonymous users.")
	}
	doc, err := php.Decode(x.body)
	if err != nil {
		return x.unexpected()
	}
	credentials, _ := doc.(*php.Array)
	if credentials == nil {
		credentials = &php.Array{}
	}
	name, pass := credentials.Member("name"), credentials.Member("pass")
	switch {
	case name == nil && pass == nil:
		return x.bad("Missing credentials.")
	case name == nil:
		return x.bad("Missing credentials.name.")
	case pass == nil:
		return x.bad("Missing credentials.pass.")
	}
	u := x.state.account(php.ToString(name))
	switch {
	case u != nil && u.Blocked:
		return x.bad("The user has not been activated or is blocked.")
	case u == nil || !samePassword(u, php.ToString(pass)):
		return x.bad("Sorry, unrecognized username or password.")
	}
	return x.loggedIn(u)
}

func (x *exchange) loggedIn(u *fixtures.User) *Answer {
	value, opened := x.d.session.start(u.Name)
	user := php.Map(php.Pair{Name: "uid", Value: php.ToString(int64(u.UID))})
	if x.state.site.Holds(u, "administer users") {
		roles := php.List(fixtures.AuthenticatedRole)
		for _, r := range u.Roles {
			roles.Append(r)
		}
		user.Set(php.KeyOf("roles"), roles)
	}
	user.Set(php.KeyOf("name"), u.Name)
	a := jsonAnswer(http.StatusOK, php.Map(
		php.Pair{Name: "current_user", Value: user},
		php.Pair{Name: "csrf_token", Value: opened.csrf},
		php.Pair{Name: "logout_token", Value: opened.logout},
	))
	cookie := http.Cookie{Name: sessionCookie(x.r.Host), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	a.header.Set("Set-Cookie", cookie.String())
	return a
}

// logout is POST /user/logout?_format=json&token=…; by GET it is a person's link, which needs no token.
func (x *exchange) logout(map[string]string) *Answer {
	open := x.d.session.find(x.r)
	if x.rejected != nil {
		return x.rejected
	}
	if x.caller.scheme == "" {
		return x.denied("This route can only be accessed by authenticated users.")
	}
	if x.verb != http.MethodPost {
		x.d.session.end(open)
		return redirectTo(x.base() + "/")
	}
	switch token, _, has := x.query("token"); {
	case !has:
		return x.denied("'csrf_token' URL query argument is missing.")
	case token != open.logout:
		return x.denied("'csrf_token' URL query argument is invalid.")
	}
	x.d.session.end(open)
	return newAnswer(http.StatusNoContent, "", nil)
}

// sessionToken is the CSRF token of the session; an anonymous caller gets one that opens nothing.
func (x *exchange) sessionToken(map[string]string) *Answer {
	token := randomToken()
	if open := x.d.session.find(x.r); open != nil {
		token = open.csrf
	}
	return newAnswer(http.StatusOK, typeText, []byte(token))
}

func (x *exchange) loginStatus(map[string]string) *Answer {
	status := "0"
	if x.caller.scheme != "" {
		status = "1"
	}
	return newAnswer(http.StatusOK, typeJSON, []byte(status))
}
