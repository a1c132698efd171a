package main

import (
	"cmp"
	"context"
	"net"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/samekey/samekey/cmd/samekey/internal/ui"
)

const uiLong = `Serves a page on 127.0.0.1. The page shows the requests of a table by state and time, and for
each request a timeline of attempts, phases and jobs. It also lists what waits for people. Its
buttons do what other commands do, such as redrive; each button asks first.

The printed link contains a token. Whoever has the link can do what your credentials can
do on the table. Ctrl-C stops the page. See docs/use/ui.md.`

func newUI(env environment) *cobra.Command {
	var addr string
	var newest int
	cmd := &cobra.Command{
		Use:   "ui [FLAGS]",
		Short: "Show a table's requests in the browser",
		Long:  uiLong,
		Args:  takes(0, 0),
	}
	op := newOperator(env, cmd.Flags())
	op.registerKeys(cmd.Flags())
	cmd.Flags().StringVar(&addr, "addr", "127.0.0.1:0", "`ADDRESS` of the page: 127.0.0.1 and a port; port 0 takes any free port")
	cmd.Flags().IntVar(&newest, "newest", ui.DefaultNewest, "maximum number of requests on the page; those that wait for people come first, then the newest")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		port, err := loopbackPort(addr)
		if err != nil {
			return err
		}
		if newest < 1 {
			return wrongCallf("--newest must be above 0")
		}
		if err := op.open(cmd.Context()); err != nil {
			return err
		}
		source, err := ui.NewTable(op.client, op.table, ui.TableOptions{By: operatorName(env), Place: op.place, Namespace: op.namespace, Seal: op.sealer})
		if err != nil {
			return err
		}
		return servePage(cmd.Context(), env, port, newest, source)
	}
	return exitCodes(cmd, map[int]string{exitDone: "ended by a signal"})
}

func operatorName(env environment) string {
	return cmp.Or(env.getenv("USER"), env.getenv("USERNAME"))
}

func servePage(ctx context.Context, env environment, port, newest int, source ui.Source) error {
	server, err := ui.Listen(ctx, port, newest, source)
	if err != nil {
		return err
	}
	if err := env.say("%s", server.URL()); err != nil {
		return err
	}
	return server.Serve(ctx)
}

// loopbackPort returns the port of an address on 127.0.0.1. It refuses any other address,
// because the table would be visible on a network.
func loopbackPort(addr string) (int, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil || host != "127.0.0.1" {
		return 0, wrongCallf("--addr %s: give an address on 127.0.0.1, such as 127.0.0.1:3004; to open the page from another machine, use an SSH tunnel", addr)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return 0, wrongCallf("--addr %s: %s is not a port", addr, port)
	}
	return int(n), nil
}
