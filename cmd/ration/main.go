// Command ration is the operator's tool. It has one command:
//
//	ration explain [-provider NAME] [-at TIME] [-json] [FILE]
//
// reads an HTTP response as curl -i prints it and says what ration concludes from it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

// Exit statuses.
const (
	exitDone     = 0
	exitFailed   = 1 // the response could not be read
	exitBadInput = 2 // the arguments are wrong
)

const usage = `usage: ration explain [-provider NAME] [-at TIME] [-json] [FILE]

Reads an HTTP response as "curl -i" prints it, from FILE or standard input, and
says what ration concludes from it: whether it is a refusal and why, what is left,
when the next request can be sent, and whom that concerns.

  -provider NAME  the API that sent it; "list" lists the names (default generic)
  -at TIME        when it arrived, as 2026-01-15T12:00:00Z (default its Date, or now)
  -json           print one JSON object
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

// An errUsage is an error in the arguments.
type errUsage struct{ error }

func usagef(format string, args ...any) error { return errUsage{fmt.Errorf(format, args...)} }

// run runs the command and returns its exit status.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	err := command(args, in, out)
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return exitDone
	}
	fmt.Fprintln(errs, "ration: "+strings.TrimPrefix(err.Error(), "ration: "))
	if _, bad := errors.AsType[errUsage](err); bad {
		return exitBadInput
	}
	return exitFailed
}

func command(args []string, in io.Reader, out io.Writer) error {
	if len(args) == 0 {
		return usagef(`name a command: there is "explain"; "ration -h" says more`)
	}
	switch args[0] {
	case "explain":
		return explain(args[1:], in, out)
	case "-h", "-help", "--help", "help":
		return flag.ErrHelp
	}
	return usagef(`there is no command %q: there is "explain"`, args[0])
}
