package main

import (
	"log/slog"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"bridgecheck/bridge"
)

// bridgeEnvironment says which flag of `bridge` each variable stands in for, so that the command is a bridge that
// `run --exec` can start. A bare number is seconds where the flag is a duration.
var bridgeEnvironment = []struct{ variable, flag string }{
	{"DRUPAL_URL", "drupal"},
	{"BRIDGE_LISTEN", "listen"},
	{"BRIDGE_PAGE_SIZE", "page-size"},
	{"BRIDGE_DISCOVERY_TTL", "discovery-ttl"},
	{"BRIDGE_PERMISSION_TTL", "permission-ttl"},
	{"BRIDGE_UPSTREAM_TIMEOUT", "upstream-timeout"},
}

func newBridge() *cobra.Command {
	var (
		addr string
		o    bridge.Options
	)
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Serve the reference bridge alone",
		Long: `bridge serves a Drupal site's JSON-RPC methods as MCP tools: GET /mcp/tools/list, GET /mcp/tools/describe
and POST /mcp/tools/invoke. Callers sign in with the credentials that they have on the site.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd, os.Getenv); err != nil {
				return err
			}
			if o.Drupal == "" {
				return usagef("which site? give its address by --drupal or DRUPAL_URL, for example --drupal http://127.0.0.1:8080")
			}
			o.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
			b, err := bridge.New(o)
			if err != nil {
				return usageError(err)
			}
			defer b.Close()
			l, err := net.Listen("tcp", addr)
			if err != nil {
				return cannotListen("listen", addr, err)
			}
			server := &http.Server{Handler: b, ReadHeaderTimeout: 10 * time.Second}
			go server.Serve(l) // ends with Shutdown or Close
			return serveUntilInterrupted(cmd, server, "http://"+l.Addr().String())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Drupal, "drupal", "", "base `URL` of the site (DRUPAL_URL)")
	flags.StringVar(&addr, "listen", "127.0.0.1:8081", "`HOST:PORT` to listen on; port 0 takes a free one (BRIDGE_LISTEN)")
	flags.IntVar(&o.PageSize, "page-size", 0, "tools on a page of the list; 0: 50 (BRIDGE_PAGE_SIZE)")
	flags.DurationVar(&o.DiscoveryTTL, "discovery-ttl", 0, "how long the site's tools are taken to be the same; 0: 300s (BRIDGE_DISCOVERY_TTL)")
	flags.DurationVar(&o.PermissionTTL, "permission-ttl", 0, "how long a caller's permissions are; 0: 60s (BRIDGE_PERMISSION_TTL)")
	flags.DurationVar(&o.UpstreamTimeout, "upstream-timeout", 0, "for one request to the site; 0: 30s (BRIDGE_UPSTREAM_TIMEOUT)")
	return cmd
}

// fromEnvironment gives the flags that were not set on the command line the values of their variables.
func fromEnvironment(cmd *cobra.Command, getenv func(string) string) error {
	for _, e := range bridgeEnvironment {
		value := getenv(e.variable)
		flag := cmd.Flags().Lookup(e.flag)
		if value == "" || flag.Changed {
			continue
		}
		if _, err := strconv.Atoi(value); err == nil && flag.Value.Type() == "duration" {
			value += "s"
		}
		if err := flag.Value.Set(value); err != nil {
			return usagef("%s is %q, which --%s does not take: %v", e.variable, getenv(e.variable), e.flag, err)
		}
	}
	return nil
}
