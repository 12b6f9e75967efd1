// Command rocketd is a RocketMQ name server and broker in one binary. It has no logic of its own: flags,
// signals, logs and exit codes.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
)

// Exit codes.
const (
	exitOK    = 0
	exitError = 1 // could not start, or could not stop in order; the message says why and what to do
	exitUsage = 2 // unknown command or flag
)

func main() { os.Exit(run(os.Args, os.Stdout, os.Stderr)) }

// run is main without the process: it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	app := newApp(stdout, stderr, time.Now())
	err := app.Run(flagsFirst(app, apart(named(args))))
	if err == nil {
		return exitOK
	}
	if text := err.Error(); text != "" {
		fmt.Fprintf(stderr, "rocketd: %s\n", text)
	}
	var known *exit
	if errors.As(err, &known) {
		return known.code
	}
	var usage *usageError
	if errors.As(err, &usage) {
		return exitUsage
	}
	return exitError
}

// named puts in the command that the program's name stands for: started as mqbroker or mqnamesrv it takes the
// flags of these, so that units and scripts written for them go on working.
func named(args []string) []string {
	if len(args) == 0 {
		return []string{"rocketd"}
	}
	command := map[string]string{"mqbroker": "broker", "mqnamesrv": "namesrv"}
	if len(args) > 1 && len(args) < 4 && args[1] == "help" { // for those who type it so
		return append(append([]string{args[0]}, args[2:]...), "--help")
	}
	name := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if c, ok := command[name]; ok {
		if len(args) == 2 && (args[1] == "--version" || args[1] == "-v" || args[1] == "version") {
			return args
		}
		return append([]string{args[0], c}, args[1:]...)
	}
	return args
}

// apart puts a space behind -D, which the JVM takes without one.
func apart(args []string) (parted []string) {
	for _, a := range args {
		if property, ok := strings.CutPrefix(a, "-D"); ok && property != "" {
			parted = append(parted, "-D", property)
		} else {
			parted = append(parted, a)
		}
	}
	return parted
}

// flagsFirst puts the flags of a command below another before its arguments, where alone the parser looks for them:
// `rocketd store dump DIR --limit 5` is what people type.
func flagsFirst(app *cli.App, args []string) []string {
	if len(args) < 3 {
		return args
	}
	above := app.Command(args[1])
	if above == nil || len(above.Subcommands) == 0 {
		return args
	}
	var command *cli.Command
	for _, c := range above.Subcommands {
		if c.HasName(args[2]) {
			command = c
		}
	}
	if command == nil || len(command.Subcommands) > 0 { // the commands below that have no arguments
		return args
	}
	valued := map[string]bool{}
	for _, f := range command.Flags {
		if _, plain := f.(*cli.BoolFlag); !plain {
			for _, name := range f.Names() {
				valued[name] = true
			}
		}
	}
	flags, words := args[:3:3], []string{}
	for rest := args[3:]; len(rest) > 0; rest = rest[1:] {
		name := strings.TrimLeft(rest[0], "-")
		switch {
		case rest[0] == "--":
			return append(append(flags, words...), rest[1:]...)
		case name == rest[0] || name == "":
			words = append(words, rest[0])
		case valued[name] && len(rest) > 1:
			flags = append(flags, rest[0], rest[1])
			rest = rest[1:]
		default:
			flags = append(flags, rest[0])
		}
	}
	return append(flags, words...)
}

// usageError is a command line that makes no sense.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

// usage turns what the flag parser complains of into a usageError. The parser prints nothing itself: the
// message alone says more than the whole help text with it.
func usage(c *cli.Context, err error, isCommand bool) error {
	help := "rocketd --help"
	if isCommand && c.Command != nil && c.Command.Name != "" {
		help = "rocketd " + c.Command.Name + " --help"
	}
	return &usageError{fmt.Sprintf("%v (see `%s`)", err, help)}
}
