// Command rocketd is a RocketMQ name server and broker in one binary. It has no logic of its own: flags,
// signals, logs and exit codes.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
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
		args = append([]string{args[0], c}, args[1:]...)
	}
	if len(args) == 3 && (args[1] == "broker" || args[1] == "namesrv") && slices.Contains([]string{"--version", "-v", "version"}, args[2]) {
		return []string{args[0], args[2]}
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

// usage turns what the flag parser complains of into a usageError. The parser prints nothing itself: the message alone
// says more than the whole help text with it.
func usage(c *cli.Context, err error, isCommand bool) error {
	if isCommand && c.Command != nil && c.Command.Name != "" {
		return complaint(c.Command.Flags, err, "rocketd "+c.Command.Name)
	}
	return complaint(append(c.App.Flags, cli.HelpFlag, cli.VersionFlag), err, "rocketd")
}

// complaint is an error of the flag parser, with the flag that was likely meant.
func complaint(flags []cli.Flag, err error, command string) error {
	text := err.Error()
	if flag, ok := strings.CutPrefix(text, "flag provided but not defined: "); ok {
		flag = strings.TrimLeft(flag, "-")
		var names []string
		for _, f := range flags {
			names = append(names, f.Names()...)
		}
		if strings.HasPrefix(flag, "X") {
			text += ", an option of the JVM: there is none here"
		} else {
			text += perhaps(flag, names)
		}
	}
	return &usageError{fmt.Sprintf("%s (see `%s --help`)", text, command)}
}

// unknownCommand refuses a word that is none of the commands of c, with the one that was likely meant.
func unknownCommand(c *cli.Context, commands []*cli.Command, command string) error {
	var names []string
	for _, known := range commands {
		names = append(names, known.Names()...)
	}
	word := c.Args().First()
	return &usageError{fmt.Sprintf("unknown command %q%s (see `%s --help`)", word, perhaps(word, names), command)}
}
