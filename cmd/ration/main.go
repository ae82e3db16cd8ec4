// Command ration looks at fleets that share a quota, and steers them. "ration -h" lists its commands.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/redis/go-redis/v9/logging"
	"github.com/urfave/cli/v3"
)

// Exit statuses.
const (
	exitDone        = 0
	exitFailed      = 1 // it could not be done, or what was looked at is not as it should be
	exitBadInput    = 2 // the arguments are wrong: nothing was done
	exitInterrupted = 130
)

func main() {
	// What go-redis logs of its own comes back as an error too, and would go across the screen of top.
	logging.Disable()
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// An errUsage is an error in the arguments.
type errUsage struct{ error }

func usagef(format string, args ...any) error { return errUsage{fmt.Errorf(format, args...)} }

// An errStatus is the exit status of a command that was run, which has said itself what is wrong.
type errStatus int

func (errStatus) Error() string { return "the command failed" }

// errFound says that a command has printed what is wrong, and that nothing else is to be said.
var errFound = errors.New("found")

// run runs the command and returns its exit status.
func run(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err := newCommand(in, out, errs).Run(ctx, append([]string{"ration"}, args...))
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errFound):
		return exitFailed
	case errors.As(err, new(errStatus)):
		status, _ := errors.AsType[errStatus](err)
		return int(status)
	case ctx.Err() != nil:
		return exitInterrupted
	}
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "ration: "), "flag: ")
	if dial, is := errors.AsType[*net.OpError](err); is && dial.Op != "listen" {
		text = fmt.Sprintf("Redis does not answer (%v): start it, or name another by -redis", dial)
	}
	fmt.Fprintln(errs, "ration: "+text)
	if _, bad := errors.AsType[errUsage](err); bad {
		return exitBadInput
	}
	return exitFailed
}

const exitHelp = `Exit status: 0 done; 1 it could not be done, or what was looked at is not as it
should be; 2 the arguments are wrong, and nothing was done; 130 interrupted.`

func newCommand(in io.Reader, out, errs io.Writer) *cli.Command {
	root := &cli.Command{
		Name: "ration", Usage: "look at fleets that share a quota, and steer them",
		Description: "Accounts and tokens are named by their labels or digests: no command needs a\nsecret, and none shows one.\n\n" + exitHelp,
		Version:     version(), HideVersion: false,
		Reader: in, Writer: out, ErrWriter: errs,
		EnableShellCompletion: true,
		ConfigureShellCompletionCommand: func(c *cli.Command) {
			c.Hidden, c.Usage = false, "print a completion script: bash, zsh, fish or pwsh"
		},
		ExitErrHandler: func(context.Context, *cli.Command, error) {}, // run says it
		Action: func(_ context.Context, c *cli.Command) error {
			if name := c.Args().First(); name != "" {
				near := cli.SuggestCommand(c.Commands, name)
				if near != "" && near[0] == name[0] {
					return usagef(`there is no command %q: did you mean %q? "ration -h" lists all`, name, near)
				}
				return usagef(`there is no command %q: "ration -h" lists them`, name)
			}
			return usagef(`name a command: "ration -h" lists them`)
		},
		Commands: []*cli.Command{
			statusCommand(), topCommand(), serveCommand(), pauseCommand(), resumeCommand(), forgetCommand(), resetCommand(), logCommand(),
			planCommand(), auditCommand(), doctorCommand(), providerCommand(), explainCommand(), proxyCommand(), takeCommand(),
		},
	}
	for _, c := range append(root.Commands, root) {
		c.HideHelpCommand = c != root
		c.OnUsageError = func(_ context.Context, _ *cli.Command, err error, _ bool) error { return errUsage{err} }
		c.CustomHelpTemplate = helpTemplate
		c.DisableSliceFlagSeparator = true // a limit has commas
	}
	root.CustomRootCommandHelpTemplate = rootTemplate
	return root
}

const rootTemplate = `{{.Name}}: {{.Usage}}

{{range .VisibleCommands}}  ration {{printf "%-12s" .Name}} {{.Usage}}
{{end}}
{{.Description}}

"ration COMMAND -h" says more of each.
`

const helpTemplate = `usage: ration {{.Name}} [FLAG...]{{with .ArgsUsage}} {{.}}{{end}}

{{.Description}}
{{if .VisibleFlags}}
{{range .VisibleFlags}}  {{.}}
{{end}}{{end}}`

// flagText is how a flag is written in a help.
func flagText(f cli.Flag) string {
	doc, is := f.(cli.DocGenerationFlag)
	if !is {
		return ""
	}
	name := "-" + f.Names()[0]
	usage := doc.GetUsage()
	if value, rest, found := strings.Cut(usage, ": "); found && doc.TakesValue() {
		name, usage = name+" "+value, rest
	}
	return fmt.Sprintf("%-18s %s", name, strings.ReplaceAll(usage, "\n", "\n"+strings.Repeat(" ", 21)))
}

func init() { cli.FlagStringer = flagText }

// version returns the module's version.
func version() string {
	if info, found := debug.ReadBuildInfo(); found && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
