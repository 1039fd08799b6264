// Package deps pins the libraries until their users stand; it is removed then.
package deps

import (
	_ "github.com/chromedp/chromedp"
	_ "github.com/golang-jwt/jwt/v5"
	_ "github.com/google/shlex"
	_ "github.com/gorilla/mux"
	_ "github.com/maypok86/otter/v2"
	_ "github.com/modelcontextprotocol/go-sdk/mcp"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/ginkgo/v2/extensions/globals"
	_ "github.com/onsi/gomega"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "github.com/spf13/cobra"
	_ "github.com/spf13/cobra/doc"
	_ "github.com/xeipuuv/gojsonschema"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/crypto/bcrypt"
	_ "golang.org/x/sync/errgroup"
	_ "golang.org/x/sync/singleflight"
	_ "golang.org/x/term"
	_ "golang.org/x/time/rate"
	_ "pgregory.net/rapid"
)
