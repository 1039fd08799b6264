package mockdrupal

import (
	"cmp"
	"net/http"
	"strconv"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/mockdrupal/exchange"
	"github.com/bridgecheck/bridgecheck/mockdrupal/php"
)

// loginAddresses are Drupal's own routes for logging in and out by cookie.
func loginAddresses() []address {
	return []address{
		{path: "/user/login", verbs: []string{"GET", "POST"}, schemes: globalSchemes, handle: ifAllowed((*request).login)},
		{path: "/user/logout", verbs: []string{"GET", "POST"}, schemes: globalSchemes, handle: ifAllowed((*request).logout)},
		{path: "/session/token", verbs: []string{"GET"}, schemes: globalSchemes, handle: ifAllowed((*request).sessionToken)},
		{path: "/user/login_status", verbs: []string{"GET"}, schemes: globalSchemes, handle: ifAllowed((*request).loginStatus)},
	}
}

// ifAllowed refuses callers whose kind of credentials the route does not accept.
func ifAllowed(handle func(*request) *Response) func(*request, map[string]string) *Response {
	return func(x *request, _ map[string]string) *Response {
		if x.rejected != nil {
			return x.rejected
		}
		return handle(x)
	}
}

// bad is a 400 with a message.
func (x *request) bad(message string) *Response {
	return x.refuse(refusal{http.StatusBadRequest, "Client error", message})
}

const wrongCredentials = "Sorry, unrecognized username or password."

// login is POST /user/login?_format=json. Without a format it is the page with the form.
func (x *request) login() *Response {
	if format, _ := x.format(); x.Verb != http.MethodPost || format != "json" {
		if x.caller.scheme != "" { // as Drupal's AccessDeniedSubscriber has it
			return redirectTo(x.base() + "/user/" + strconv.Itoa(x.caller.user.UID))
		}
		return exchange.Page(http.StatusOK, "Log in | "+x.state.site.Title)
	}
	if x.caller.scheme != "" {
		return x.denied("This route can only be accessed by anonymous users.")
	}
	doc, err := php.Decode(x.Body)
	if err != nil {
		return x.unexpected()
	}
	sent, _ := doc.(*php.Array)
	sent = cmp.Or(sent, &php.Array{})
	name, pass := sent.Member("name"), sent.Member("pass")
	switch {
	case name == nil && pass == nil:
		return x.bad("Missing credentials.")
	case name == nil:
		return x.bad("Missing credentials.name.")
	case pass == nil:
		return x.bad("Missing credentials.pass.")
	}
	now, flood := x.d.Now(), &x.d.flood
	address, account := attempt{loginAddress, "", clientAddress(x.Request)}, attempt{event: loginUser}
	u := x.state.account(php.ToString(name))
	if u != nil {
		account.account, account.address = u.Name, address.address
	}
	switch {
	case flood.locked(address, now):
		return x.denied("Access is blocked because of IP based flood prevention.")
	case u != nil && !u.Blocked && flood.locked(account, now):
		return x.denied("Too many failed login attempts from your IP address. This IP address is temporarily blocked.")
	case u != nil && u.Blocked:
		return x.bad("The user has not been activated or is blocked.")
	case u != nil && samePassword(u, php.ToString(pass)):
		flood.succeeded(account)
		return x.loggedIn(u)
	case u != nil:
		flood.failed(account, now)
	}
	flood.failed(address, now)
	return x.bad(wrongCredentials)
}

func (x *request) loggedIn(u *fixtures.User) *Response {
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
	a := exchange.JSON(http.StatusOK, php.Map(
		php.Pair{Name: "current_user", Value: user},
		php.Pair{Name: "csrf_token", Value: opened.csrf},
		php.Pair{Name: "logout_token", Value: opened.logout},
	))
	cookie := http.Cookie{Name: sessionCookie(x.Request.Host), Value: value, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode}
	a.Header.Set("Set-Cookie", cookie.String())
	return a
}

// logout is POST /user/logout?_format=json&token=…; by GET it is a link on a page, which needs no token.
func (x *request) logout() *Response {
	open := x.d.session.find(x.Request)
	if x.caller.scheme == "" {
		return x.denied("This route can only be accessed by authenticated users.")
	}
	if x.Verb != http.MethodPost {
		x.d.session.end(open)
		return redirectTo(x.base() + "/")
	}
	switch token, _, has := x.Query("token"); {
	case !has:
		return x.denied("'csrf_token' URL query argument is missing.")
	case open == nil || token != open.logout:
		return x.denied("'csrf_token' URL query argument is invalid.")
	}
	x.d.session.end(open)
	return exchange.NewResponse(http.StatusNoContent, "", nil)
}

// sessionToken is the CSRF token of the session; an anonymous caller gets one that belongs to no session.
func (x *request) sessionToken() *Response {
	token := randomToken()
	if open := x.d.session.find(x.Request); open != nil {
		token = open.csrf
	}
	return exchange.NewResponse(http.StatusOK, exchange.TextType, []byte(token))
}

func (x *request) loginStatus() *Response {
	status := "0"
	if x.caller.scheme != "" {
		status = "1"
	}
	return exchange.NewResponse(http.StatusOK, exchange.TextType, []byte(status))
}
