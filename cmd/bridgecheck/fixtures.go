package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bridgecheck/bridgecheck/fixtures"
	"github.com/bridgecheck/bridgecheck/internal/engine"
	"github.com/bridgecheck/bridgecheck/internal/exact"
	"github.com/bridgecheck/bridgecheck/internal/settings"
	"github.com/bridgecheck/bridgecheck/internal/terminal"
	"github.com/bridgecheck/bridgecheck/mockdrupal/drupalmodule"
	"github.com/bridgecheck/bridgecheck/mockdrupal/published"
	"github.com/bridgecheck/bridgecheck/suites/check"
	"github.com/bridgecheck/bridgecheck/suites/client"
	"github.com/bridgecheck/bridgecheck/suites/input/generate"
	"github.com/bridgecheck/bridgecheck/suites/input/jsonschema"
)

// openSite returns the site of a file or folder, or a built-in one by its name; a file goes first.
func openSite(name string) (*fixtures.Site, error) {
	_, err := os.Stat(name)
	var site *fixtures.Site
	switch {
	case err == nil, strings.ContainsAny(name, `/\.`):
		site, err = fixtures.Load(name)
	default:
		site, err = fixtures.Builtin(name)
	}
	if err != nil {
		return nil, usageError(err)
	}
	return site, nil
}

func newFixtures() *cobra.Command {
	cmd := &cobra.Command{Use: "fixtures", Short: "List, validate and export sites", Example: "  bridgecheck fixtures export default -o site.yaml"}
	cmd.AddCommand(
		&cobra.Command{
			Use:     "list",
			Short:   "List the built-in sites",
			Example: `  bridgecheck fixtures list`,
			RunE: func(cmd *cobra.Command, _ []string) error {
				for _, name := range fixtures.Names() {
					fmt.Fprintln(cmd.OutOrStdout(), name)
				}
				return nil
			},
		},
		&cobra.Command{
			Use:     "validate FILE|NAME",
			Short:   "Check a site file, and say what is wrong and where",
			Example: `  bridgecheck fixtures validate site.yaml`,
			Args:    oneArgument("a site file or the name of a built-in site"),
			RunE: func(cmd *cobra.Command, args []string) error {
				site, err := openSite(args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid: %d users, %d methods, %d of them tools\n",
					args[0], len(site.Users), len(site.Methods), len(site.Exposed()))
				return err
			},
		},
		newExport(),
		newImport(),
		newSiteSchema(),
	)
	return cmd
}

func newExport() *cobra.Command {
	var output, drupalModule string
	o := drupalmodule.Options{}
	cmd := &cobra.Command{
		Use:   "export FILE|NAME",
		Short: "Print a site as YAML, or write it out as a Drupal module",
		Example: `  bridgecheck fixtures export default -o site.yaml
  bridgecheck fixtures export default --drupal-module web/modules/custom/bridgecheck_fixtures`,
		Long: `export prints a site as YAML, to start a site of your own from.

With --drupal-module it writes a Drupal module that gives a real Drupal the site's methods with
their behaviours, its roles, accounts, permissions and entities. It is for test sites: it does
nothing unless settings.php has $settings['bridgecheck_fixtures'] = TRUE. docs/my-drupal.md says how
to use it.`,
		Args: oneArgument("a site file or the name of a built-in site"),
		RunE: func(cmd *cobra.Command, args []string) error {
			site, err := openSite(args[0])
			if err != nil {
				return err
			}
			if drupalModule != "" {
				return exportModule(cmd, drupalModule, site, o)
			}
			if cmd.Flags().Changed("jsonrpc") {
				return usagef("--jsonrpc says for which jsonrpc module --drupal-module DIR writes; give that too")
			}
			data, err := site.YAML()
			if err != nil {
				return err
			}
			return deliver(cmd, output, data)
		},
	}
	addOutput(cmd, &output)
	cmd.Flags().StringVar(&drupalModule, "drupal-module", "", "write a Drupal module into this empty or new `directory`, named "+drupalmodule.Name)
	cmd.Flags().IntVar(&o.JSONRPC, "jsonrpc", 3, "`line` of the jsonrpc module that the Drupal module is for: 2 or 3")
	cmd.MarkFlagsMutuallyExclusive("drupal-module", "output")
	return cmd
}

func exportModule(cmd *cobra.Command, dir string, site *fixtures.Site, o drupalmodule.Options) error {
	if err := drupalmodule.Write(dir, site, o); err != nil {
		return usageError(err)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: the Drupal module %s with %d methods and %d accounts\n", dir, drupalmodule.Name, len(site.Methods), len(site.Users))
	return err
}

// importTime is how long a site may take for its methods.
const importTime = time.Minute

func newImport() *cobra.Command {
	var address, output string
	cmd := &cobra.Command{
		Use:     "import --url SITE",
		Short:   "Print a live site's methods as a site file",
		Example: `  bridgecheck fixtures import --url https://example.org -o site.yaml`,
		Long: `import reads /jsonrpc/methods of a live site as the account of DRUPAL_USER and DRUPAL_PASSWORD, and
prints a site file with these methods, their parameters and schemas. It changes nothing and runs
nothing. What a site does not publish is not known: each method returns an example of its output
schema, or its arguments where it declares none, and asks for no permission. Put behaviours, access
and accounts of your own in their place.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			site, err := importSite(cmd, address)
			if err != nil {
				return err
			}
			data, err := site.YAML()
			if err != nil {
				return err
			}
			if _, err := fixtures.Parse(site.Name, data); err != nil {
				return fmt.Errorf("the site publishes what a site file cannot hold: %w", err)
			}
			if output == "" { // a terminal or a log
				if data, err = terminal.YAML(data); err != nil {
					return err
				}
			}
			return deliver(cmd, output, data)
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "base `URL` of the site")
	addOutput(cmd, &output)
	return cmd
}

func importSite(cmd *cobra.Command, address string) (*fixtures.Site, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, usagef("--url is no http or https address: give for example https://drupal.example.org")
	}
	user := os.Getenv("DRUPAL_USER")
	password, err := settings.SecretFromEnv("DRUPAL_PASSWORD")
	if err != nil {
		return nil, err
	}
	if user == "" {
		return nil, usagef("as which account? set DRUPAL_USER and DRUPAL_PASSWORD")
	}
	client := &http.Client{Timeout: importTime}
	doc, err := published.Read(cmd.Context(), client, base, check.Credentials{User: user, Password: password}.Apply)
	var refused *published.RefusedError
	switch {
	case errors.As(err, &refused):
		return nil, usagef("the site %s does not show %s its methods: %s", base.Redacted(), user, refused)
	case err != nil:
		return nil, &engine.UnreachableError{URL: base.Redacted(), Reason: err}
	}
	return doc.Site(base.Host, user, exampleOf), nil
}

// exampleOf is a value that fits a schema; nil where none is known.
func exampleOf(schema fixtures.Raw) fixtures.Raw {
	parsed, err := exact.Parse(schema)
	if err != nil || jsonschema.Bounded(parsed) != nil {
		return nil
	}
	example := generate.Example(parsed)
	if example == nil {
		return nil
	}
	return client.Encode(example)
}

func newSiteSchema() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of site files, for editors",
		Example: "  bridgecheck fixtures schema -o site.schema.json",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return deliver(cmd, output, fixtures.SiteSchema) },
	}
	addOutput(cmd, &output)
	return cmd
}
