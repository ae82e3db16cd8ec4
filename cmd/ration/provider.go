package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration/provider/presets"
)

func providerCommand() *cli.Command {
	return &cli.Command{
		Name: "provider", Usage: "what is known of the limits of APIs", ArgsUsage: "[NAME]",
		Description: `Lists the APIs of which something is known, or says of one what it allows, whom a
refusal is about, and where that is published.

  ration provider
  ration provider github`,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(_ context.Context, c *cli.Command) error {
			type view struct {
				Name   string   `json:"name"`
				Limits []string `json:"limits"`
				Scope  string   `json:"scope,omitempty"`
				Note   string   `json:"note,omitempty"`
				Source string   `json:"source,omitempty"`
				AsOf   string   `json:"as_of,omitempty"`
			}
			names := presets.Names()
			switch c.NArg() {
			case 0:
			case 1:
				names = []string{c.Args().First()}
			default:
				return usagef("name one API, or none for all")
			}
			var all []view
			for _, name := range names {
				p, err := presets.Named(name)
				if err != nil {
					return errUsage{err}
				}
				v := view{Name: name, Limits: []string{}, Scope: string(p.Scope), Note: p.Note, Source: p.Source, AsOf: p.AsOf}
				for _, l := range p.Limits {
					v.Limits = append(v.Limits, l.String())
				}
				all = append(all, v)
			}
			out := c.Root().Writer
			switch {
			case c.Bool("json"):
				return printJSON(out, all)
			case c.NArg() == 0:
				w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
				for _, v := range all {
					limits := cmp.Or(strings.Join(v.Limits, " "), "by plan, or announced")
					if len(v.Limits) > 2 {
						limits = fmt.Sprintf("%s %s and %d more", v.Limits[0], v.Limits[1], len(v.Limits)-2)
					}
					fmt.Fprintf(w, "%s\t%s\t%s\n", v.Name, cmp.Or(v.Scope, "-"), limits)
				}
				return w.Flush()
			}
			v := all[0]
			for _, row := range [][2]string{
				{"limits", cmp.Or(strings.Join(v.Limits, "\n"), "none that hold for every caller: by plan, or announced by responses")},
				{"a refusal is about", cmp.Or(v.Scope, "what the response says")}, {"note", v.Note},
				{"source", strings.TrimSuffix(v.Source+", "+v.AsOf, ", ")},
			} {
				if row[1] == "" {
					continue
				}
				fmt.Fprintf(out, "%s:\n", row[0])
				for line := range strings.SplitSeq(row[1], "\n") {
					for _, part := range wrap(line, 76) {
						fmt.Fprintf(out, "    %s\n", part)
					}
				}
			}
			return nil
		},
	}
}
