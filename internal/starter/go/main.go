// A bridge: it offers the JSON-RPC methods of a Drupal site as tools, over three HTTP endpoints.
package main

import (
	"cmp"
	"log"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

func main() {
	site, err := url.Parse(os.Getenv("DRUPAL_URL"))
	if err != nil || site.Scheme != "http" && site.Scheme != "https" || site.Host == "" || site.User != nil {
		log.Fatal("DRUPAL_URL has to be the URL of the site, such as https://example.org, without user and password")
	}
	timeout := time.Duration(number("BRIDGE_UPSTREAM_TIMEOUT", 10)) * time.Second
	server := &http.Server{
		Addr:              cmp.Or(os.Getenv("BRIDGE_LISTEN"), "127.0.0.1:8081"),
		Handler:           &Bridge{newSite(site.String(), timeout), number("BRIDGE_PAGE_SIZE", 50)},
		ReadHeaderTimeout: 10 * time.Second, // http/slow-client
		ReadTimeout:       time.Minute,
		IdleTimeout:       3 * time.Minute, // longer than proxies keep theirs, which would send on a connection that closes
	}
	log.Fatal(server.ListenAndServe())
}

func number(name string, otherwise int) int {
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		log.Fatalf("%s has to be a number above 0, it is %q", name, text)
	}
	return n
}
