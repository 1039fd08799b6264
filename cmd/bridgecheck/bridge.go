package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/bridge"
	"github.com/bridgecheck/bridgecheck/bridge/caller"
	"github.com/bridgecheck/bridgecheck/bridge/fault"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/wholefile"
)

// bridgeFlags is where the settings of a bridge come from: its configuration file, then the environment, then flags.
type bridgeFlags struct {
	config  string
	check   bool
	explain bool
	stdio   bool
}

func newBridge() *cobra.Command {
	f := &bridgeFlags{}
	cmd := &cobra.Command{
		Use:   "bridge",
		Short: "Serve the reference bridge alone",
		Example: `  bridgecheck bridge --drupal https://example.org --listen 127.0.0.1:8081
  bridgecheck bridge --config bridge.yaml --check-config`,
		Long: `bridge serves a Drupal site's JSON-RPC methods as MCP tools: GET /mcp/tools/list, GET
/mcp/tools/describe and POST /mcp/tools/invoke, and MCP itself at /mcp. Callers authenticate with
the credentials that they have on the site. With --stdio it serves MCP on stdin and stdout instead,
as the account of DRUPAL_USER and DRUPAL_PASSWORD.

Every setting is a flag, a key of the configuration file (with _ for -) and, where one is named, an
environment variable. A flag overrides the environment, and that overrides the file. The key types
of the file has rules for custom field types. SIGHUP makes the bridge read all settings again; MCP
sessions stay open, and if a setting is wrong nothing changes.

Secrets have no flag. They come from the environment, or from files that the configuration names as
NAME_file and the environment as ENV_FILE:
` + secrets(),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.serve(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.config, "config", "", "YAML `file` of settings")
	flags.BoolVar(&f.check, "check-config", false, "report whether the settings are valid, and serve nothing")
	flags.BoolVar(&f.explain, "check", false, "ask the site as the account of DRUPAL_USER and DRUPAL_PASSWORD which tools it would be shown, print why each other method is none, and serve nothing")
	flags.BoolVar(&f.stdio, "stdio", false, "serve MCP on stdin and stdout, as the account of DRUPAL_USER and DRUPAL_PASSWORD")
	for _, s := range bridge.Settings() {
		if s.Secret {
			continue
		}
		if s.Kind == "bool" { // which needs no value
			flags.Bool(s.Flag(), false, s.Usage())
		} else {
			flags.Var(&settingValue{kind: s.Kind}, s.Flag(), s.Usage())
		}
	}
	return cmd
}

// secrets lists the settings that have no flag.
func secrets() string {
	var b strings.Builder
	for _, s := range bridge.Settings() {
		if s.Secret {
			fmt.Fprintf(&b, "  %-18s %s (%s)\n", s.Name, s.Help, s.Env)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// settingValue is the text of a setting that a flag sets; its kind is what help shows.
type settingValue struct{ text, kind string }

func (v *settingValue) String() string     { return v.text }
func (v *settingValue) Set(s string) error { v.text = s; return nil }
func (v *settingValue) Type() string       { return v.kind }

// options reads all that is set, wherever it is set.
func (f *bridgeFlags) options(cmd *cobra.Command) (bridge.Options, error) {
	var o bridge.Options
	if f.config != "" {
		var err error
		if o, err = bridge.LoadConfig(f.config); err != nil {
			return o, usageError(err)
		}
	}
	if err := o.FromEnv(os.Getenv); err != nil {
		return o, usageError(err)
	}
	for _, s := range bridge.Settings() {
		flag := cmd.Flags().Lookup(s.Flag())
		if flag == nil || !flag.Changed {
			continue
		}
		if err := s.Set(&o, flag.Value.String()); err != nil {
			return o, usageError(err)
		}
	}
	if o.Drupal == "" {
		return o, usagef("which site? give its address by --drupal, DRUPAL_URL or the configuration, for example --drupal http://127.0.0.1:8080")
	}
	if file := os.Getenv("BRIDGE_CLOCK"); file != "" {
		o.Now = func() time.Time { return time.Now().Add(ahead(file)) }
	}
	o.Logger = slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	if err := o.Check(); err != nil {
		return o, usageError(err)
	}
	if store, err := url.Parse(cmd.Flag("shared").Value.String()); err == nil && store.User != nil {
		o.Logger.Warn("the credentials of the shared store stand in the command line, which other users of this machine can read: set BRIDGE_SHARED, or shared in the configuration, in place of --shared")
	}
	return o, nil
}

// ahead is how far the clock of a run is ahead of the machine's, in a file of seconds; 0 where it holds no number.
func ahead(file string) time.Duration {
	text, _ := wholefile.Read(file, 64)
	seconds, _ := strconv.ParseFloat(strings.TrimSpace(string(text)), 64)
	return time.Duration(seconds * float64(time.Second))
}

func (f *bridgeFlags) serve(cmd *cobra.Command) error {
	addProcessor()
	o, err := f.options(cmd)
	if err != nil {
		return err
	}
	if f.check {
		o.Warn(o.Logger)
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "the settings are valid")
		return err
	}
	b, err := bridge.New(o)
	if err != nil {
		return usageError(err)
	}
	defer b.Close()
	if f.explain {
		return explain(cmd, b, o.Drupal)
	}
	if f.stdio {
		password, err := settings.SecretFromEnv("DRUPAL_PASSWORD")
		if err != nil {
			return err
		}
		return b.ServeStdio(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout(), os.Getenv("DRUPAL_USER"), caller.Secret(password))
	}
	server, err := o.Server(b)
	if err != nil {
		return usageError(err)
	}
	addr := cmp.Or(o.Listen, "127.0.0.1:8081")
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return cannotListen("listen", addr, err)
	}
	if o.AdminListen != "" {
		admin, err := net.Listen("tcp", o.AdminListen)
		if err != nil {
			return cannotListen("admin-listen", o.AdminListen, err)
		}
		stopAdmin, err := o.ServeAdmin(b, admin)
		if err != nil {
			return usageError(err)
		}
		defer stopAdmin() // after the bridge has drained
		if _, err := fmt.Fprintf(cmd.ErrOrStderr(), "health, metrics and administration on http://%s\n", admin.Addr()); err != nil {
			return err
		}
	}
	stop := f.reloadOnHangup(cmd, b, o.Logger)
	defer stop()
	scheme := "http"
	if server.TLSConfig != nil {
		scheme = "https"
	}
	if err := sayListening(cmd, scheme+"://"+l.Addr().String()); err != nil {
		return err
	}
	return bridge.Serve(cmd.Context(), server, l)
}

// addProcessor lets one goroutine more run than there are processors, where the environment does not say how many: while
// long documents are checked the system then divides the processors, which lets short requests go first, and they need not
// wait for Go's scheduler to look for them.
var addProcessor = sync.OnceFunc(func() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + 1)
	}
})

// explain prints what an account would be shown, method by method. A site without a tool for it is exit code 1.
func explain(cmd *cobra.Command, b *bridge.Bridge, site string) error {
	user := os.Getenv("DRUPAL_USER")
	password, err := settings.SecretFromEnv("DRUPAL_PASSWORD")
	if err != nil {
		return err
	}
	x, err := b.Explain(cmd.Context(), user, caller.Secret(password))
	who := cmp.Or(user, "an anonymous caller")
	switch {
	case fault.Is(err, fault.AuthRequired), fault.Is(err, fault.AccessDenied):
		if user != "" && password == "" {
			return usagef("the site %s does not show %s its methods (%s); DRUPAL_PASSWORD is not set", site, who, err)
		}
		return usagef("the site %s does not show %s its methods (%s); set DRUPAL_USER and DRUPAL_PASSWORD to an account that may use JSON-RPC: Drupal refuses a wrong password as it does an account without the permission", site, who, err)
	case fault.Is(err, fault.UpstreamError):
		return &notReadyError{reason: fmt.Sprintf("the site %s responds, but gives no list of methods: %s", site, err)}
	case err != nil:
		return &engine.UnreachableError{URL: site, Reason: err}
	}
	w := newTable(cmd.OutOrStdout())
	w.row("METHOD", "TOOL", "WHY NOT")
	tools := 0
	for _, m := range x.Methods {
		w.row(m.Method, m.Tool, m.Why)
		if m.Tool != "" {
			tools++
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	outcome := fmt.Sprintf("%s may run %d methods, of which %d are tools", who, len(x.Methods), tools)
	if x.Nothing != "" {
		outcome = x.Nothing
	} else if !x.MayDiscover {
		outcome += "; it may not discover them, so that list and describe refuse it"
	}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), outcome); err != nil || tools > 0 {
		return err
	}
	return exitCode(1)
}

// reloadOnHangup reads all settings again on every SIGHUP until stop is called.
func (f *bridgeFlags) reloadOnHangup(cmd *cobra.Command, b *bridge.Bridge, log *slog.Logger) (stop func()) {
	ctx, cancel := context.WithCancel(cmd.Context())
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	go func() {
		defer signal.Stop(hangup)
		for {
			select {
			case <-hangup:
			case <-ctx.Done():
				return
			}
			o, err := f.options(cmd)
			if err == nil {
				err = b.Reload(o)
			}
			if err != nil {
				log.Error("the settings stay as they were", "error", err)
				continue
			}
			log.Info("the settings were read again")
		}
	}()
	return cancel
}
