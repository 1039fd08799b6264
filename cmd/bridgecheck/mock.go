package main

import (
	"github.com/spf13/cobra"

	"bridgecheck/mockdrupal"
)

func newMock() *cobra.Command {
	var (
		addr, site string
		quirks     []string
	)
	cmd := &cobra.Command{
		Use:   "mock",
		Short: "Serve the mock Drupal alone",
		Long: `mock serves a Drupal site's JSON-RPC face: /jsonrpc, /jsonrpc/methods, users, roles and permissions.
The built-in sites' passwords are NAME-pass: curl -u agent:agent-pass http://127.0.0.1:8080/jsonrpc/methods`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			site, err := openSite(site)
			if err != nil {
				return err
			}
			drupal, err := mockdrupal.New(site, mockdrupal.Options{Quirks: quirks})
			if err != nil {
				return usageError(err)
			}
			server, err := drupal.Listen(addr)
			if err != nil {
				return cannotListen("listen", addr, err)
			}
			defer server.Close()
			if err := sayListening(cmd, server.URL); err != nil {
				return err
			}
			<-cmd.Context().Done()
			return nil
		},
	}
	cmd.Flags().StringVar(&addr, "listen", "127.0.0.1:8080", "`HOST:PORT` to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&site, "site", "default", "site `FILE|NAME`; `bridgecheck fixtures list` lists the built-in ones")
	cmd.Flags().StringSliceVar(&quirks, "quirk", nil, "fault of the recorded site to have, by `name`; repeatable")
	cmd.AddCommand(&cobra.Command{
		Use:   "quirks",
		Short: "List the faults of the recorded site that --quirk turns on",
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := newTable(cmd.OutOrStdout())
			for _, q := range mockdrupal.Quirks() {
				w.row(q.Name, q.Text)
			}
			return w.Flush()
		},
	})
	return cmd
}
