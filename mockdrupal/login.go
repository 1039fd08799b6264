package mockdrupal

import (
	"net/http"
	"strconv"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// loginRoutes are Drupal's own routes for signing in and out by cookie.
func loginRoutes() []route {
	return []route{
		{name: RouteLogin, path: "/user/login", verbs: []string{"GET", "POST"}, schemes: globalSchemes, handle: ifAllowed((*exchange).login)},
		{name: RouteLogout, path: "/user/logout", verbs: []string{"GET", "POST"}, schemes: globalSchemes, handle: ifAllowed((*exchange).logout)},
		{name: RouteSession, path: "/session/token", verbs: []string{"GET"}, schemes: globalSchemes, handle: ifAllowed((*exchange).sessionToken)},
		{name: RouteSession, path: "/user/login_status", verbs: []string{"GET"}, schemes: globalSchemes, handle: ifAllowed((*exchange).loginStatus)},
	}
}

// ifAllowed refuses callers whose kind of credentials the route does not take.
func ifAllowed(handle func(*exchange) *Answer) func(*exchange, map[string]string) *Answer {
	return func(x *exchange, _ map[string]string) *Answer {
		if x.rejected != nil {
			return x.rejected
		}
		return handle(x)
	}
}

// bad is a 400 with a message.
func (x *exchange) bad(message string) *Answer {
	return x.refuse(refusal{http.StatusBadRequest, "Client error", message})
}

const wrongCredentials = "Sorry, unrecognized username or password."

// login is POST /user/login?_format=json. Without a format it is the page with the form.
func (x *exchange) login() *Answer {
	if format, _ := x.format(); x.verb != http.MethodPost || format != "json" {
		if x.caller.scheme != "" { // as Drupal's AccessDeniedSubscriber has it
			return redirectTo(x.base() + "/user/" + strconv.Itoa(x.caller.user.UID))
		}
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
	case u == nil:
		return x.bad(wrongCredentials)
	case u.Blocked:
		return x.bad("The user has not been activated or is blocked.")
	case x.d.flood.locked(floodLogin, u.Name, x.d.Now()):
		return x.denied("Too many failed login attempts from your IP address. This IP address is temporarily blocked.")
	case !samePassword(u, php.ToString(pass)):
		x.d.flood.failed(floodLogin, u.Name, x.d.Now())
		return x.bad(wrongCredentials)
	}
	x.d.flood.succeeded(floodLogin, u.Name)
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
func (x *exchange) logout() *Answer {
	open := x.d.session.find(x.r)
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
	case open == nil || token != open.logout:
		return x.denied("'csrf_token' URL query argument is invalid.")
	}
	x.d.session.end(open)
	return newAnswer(http.StatusNoContent, "", nil)
}

// sessionToken is the CSRF token of the session; an anonymous caller gets one that opens nothing.
func (x *exchange) sessionToken() *Answer {
	token := randomToken()
	if open := x.d.session.find(x.r); open != nil {
		token = open.csrf
	}
	return newAnswer(http.StatusOK, typeText, []byte(token))
}

func (x *exchange) loginStatus() *Answer {
	status := "0"
	if x.caller.scheme != "" {
		status = "1"
	}
	return newAnswer(http.StatusOK, typeText, []byte(status))
}
