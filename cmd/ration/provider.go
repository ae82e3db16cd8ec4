package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/urfave/cli/v3"

	"github.com/ration-go/ration"
	"github.com/ration-go/ration/internal/testkit/samples"
	"github.com/ration-go/ration/provider"
	"github.com/ration-go/ration/provider/presets"
)

func providerCommand() *cli.Command {
	return &cli.Command{
		Name: "provider", Usage: "what is known of the limits of APIs", ArgsUsage: "[NAME]",
		Description: `Lists the APIs of which something is known, or says of one what it allows, whom a
refusal is about, where that is published, and how its responses are read, with one
of each kind.

  ration provider
  ration provider github`,
		Flags: []cli.Flag{jsonFlag()},
		Action: func(_ context.Context, c *cli.Command) error {
			names := presets.Names()
			switch c.NArg() {
			case 0:
			case 1:
				names = []string{c.Args().First()}
			default:
				return usagef("name one API, or none for all")
			}
			var all []knownAPI
			for _, name := range names {
				known, err := knownOf(name, c.NArg() == 1)
				if err != nil {
					return err
				}
				all = append(all, known)
			}
			out := c.Root().Writer
			switch {
			case c.Bool("json"):
				return printJSON(out, all)
			case c.NArg() == 0:
				return printAPIs(out, all)
			}
			all[0].print(out)
			return nil
		},
	}
}

// A knownAPI is what is known of an API, as -json prints it.
type knownAPI struct {
	Name      string     `json:"name"`
	Limits    []string   `json:"limits"`
	Scope     string     `json:"scope,omitempty"`
	Note      string     `json:"note,omitempty"`
	Source    string     `json:"source,omitempty"`
	AsOf      string     `json:"as_of,omitempty"`
	Responses []response `json:"responses,omitempty"` // one of each kind
}

// A response is one of an API's, and how it is read.
type response struct {
	Title      string        `json:"title"`
	Status     int           `json:"status"`
	Headers    [][2]string   `json:"headers"`
	Body       string        `json:"body,omitempty"`
	Conclusion conclusion    `json:"conclusion"`
	words      func() string // the conclusion
}

// knownOf returns what is known of an API, with responses if they are wanted.
func knownOf(name string, withResponses bool) (knownAPI, error) {
	api, err := presets.Named(name)
	if err != nil {
		return knownAPI{}, errUsage{err}
	}
	known := knownAPI{Name: name, Limits: []string{}, Scope: string(api.Scope), Note: api.Note, Source: api.Source, AsOf: api.AsOf}
	for _, l := range api.Limits {
		known.Limits = append(known.Limits, l.String())
	}
	if withResponses {
		known.Responses, err = responsesOf(name, api)
	}
	return known, err
}

// responsesOf returns the first response of each kind: of each reason of a refusal or a failure, and one
// of a success.
func responsesOf(name string, api *ration.Provider) ([]response, error) {
	type kind struct {
		reason              provider.Reason
		refused, dead, fine bool
	}
	all, err := samples.Of(name)
	if err != nil {
		return nil, err
	}
	seen := make(map[kind]bool)
	var first []response
	for _, s := range all {
		f := api.ReadResponse(s.Response(), s.Now)
		k := kind{f.Reason, f.Refused, f.DeadToken, s.Status < 400}
		if seen[k] {
			continue
		}
		seen[k] = true
		first = append(first, response{s.Title, s.Status, s.Headers, s.Body, concluded(s.Response(), api, f), func() string { return inWords(s.Response(), api, f) }})
	}
	return first, nil
}

// printAPIs prints a table.
func printAPIs(out io.Writer, all []knownAPI) error {
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

// print prints what is known of one API.
func (v knownAPI) print(out io.Writer) {
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
	fmt.Fprintln(out, "responses, and how they are read:")
	for _, r := range v.Responses {
		fmt.Fprintf(out, "\n  %s\n", r.Title)
		lines := []string{fmt.Sprintf("HTTP %d", r.Status)}
		for _, h := range r.Headers {
			lines = append(lines, h[0]+": "+h[1])
		}
		if r.Body != "" {
			lines = append(lines, strings.Join(strings.Fields(r.Body), " "))
		}
		for _, line := range lines {
			fmt.Fprintf(out, "    > %s\n", fit(line, 73))
		}
		for line := range strings.Lines(r.words()) {
			fmt.Fprintf(out, "    %s", line)
		}
	}
}
