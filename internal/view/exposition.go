package view

import (
	"fmt"
	"slices"
	"strings"
)

// An Exposition is metrics in Prometheus's text format. The zero Exposition has none.
type Exposition struct {
	names []string // in the order in which they were added
	heads map[string]string
	lines map[string][]string
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// Gauge adds a value of a gauge with labels, as names and values.
func (e *Exposition) Gauge(name, help string, value any, labels ...string) {
	e.add("gauge", name, help, value, labels)
}

// Counter adds a value of a counter, likewise.
func (e *Exposition) Counter(name, help string, value any, labels ...string) {
	e.add("counter", name, help, value, labels)
}

func (e *Exposition) add(kind, name, help string, value any, labels []string) {
	if e.heads == nil {
		e.heads, e.lines = make(map[string]string), make(map[string][]string)
	}
	if e.heads[name] == "" {
		e.names, e.heads[name] = append(e.names, name), fmt.Sprintf("# HELP %s %s\n# TYPE %[1]s %[3]s\n", name, help, kind)
	}
	var pairs []string
	for i := 0; i < len(labels); i += 2 {
		pairs = append(pairs, fmt.Sprintf(`%s="%s"`, labels[i], escape.Replace(Printable(labels[i+1]))))
	}
	of := ""
	if len(pairs) > 0 {
		of = "{" + strings.Join(pairs, ",") + "}"
	}
	e.lines[name] = append(e.lines[name], fmt.Sprintf("%s%s %v\n", name, of, value))
}

// String returns the text, of each metric the values in the order of their labels.
func (e *Exposition) String() string {
	var b strings.Builder
	for _, name := range e.names {
		slices.Sort(e.lines[name])
		b.WriteString(e.heads[name] + strings.Join(e.lines[name], ""))
	}
	return b.String()
}
