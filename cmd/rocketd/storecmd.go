package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"rocketd/store/inspect"
	"rocketd/store/vfs"
)

// Exit codes of `rocketd store`.
const (
	exitFindings   = 1 // verify: there are findings; repair: some are left
	exitUnreadable = 2 // the store, or a part of it, could not be read
)

// exit is an error that says with which code the process ends. err may be nil: all has been said.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exit) Unwrap() error { return e.err }

// store is `rocketd store`.
func (p *process) store() *cli.Command {
	conf := configFileFlag("broker")
	output := &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "`FORMAT` of what is printed: text or json"}
	limit := func(value int64, usage string) cli.Flag {
		return &cli.Int64Flag{Name: "limit", Value: value, Usage: usage}
	}
	command := func(name, usage, text string, run func(*storeCommand) error, flags ...cli.Flag) *cli.Command {
		return &cli.Command{
			Name: name, Usage: usage, UsageText: "rocketd store " + name + " [flags] DIR", Description: text,
			Flags: append([]cli.Flag{conf, output}, flags...), HideHelpCommand: true, OnUsageError: usageOf("rocketd store " + name),
			Action: func(c *cli.Context) error { return p.runStore(c, run) },
		}
	}
	return &cli.Command{
		Name:      "store",
		Usage:     "look into a store directory, check it, mend it",
		UsageText: "rocketd store info|dump|verify|repair [flags] DIR",
		Description: "DIR is a store of rocketd or of the official broker (storePathRootDir). Only repair writes to it; it wants the\n" +
			"broker stopped. File sizes are taken from the files, or from broker.conf with -c.",
		HideHelpCommand: true,
		OnUsageError:    usage,
		Action:          wantsCommand("rocketd store"),
		Subcommands: []*cli.Command{
			command("info", "show files, bounds, checkpoint, queues, index and configuration", "", (*storeCommand).info),
			command("dump", "print records, queue entries or index entries",
				"Records are found by the queue (with --topic and --queue), by the index (with --topic and --key), else by going\n"+
					"through the log. JSON is one object a line.", (*storeCommand).dump,
				&cli.StringFlag{Name: "what", Value: "records", Usage: "`WHAT` to print: records, queue (entries of --topic and --queue) or index (entries)"},
				&cli.StringFlag{Name: "topic", Aliases: []string{"t"}, Usage: "only of `TOPIC`"},
				&cli.Int64Flag{Name: "queue", Aliases: []string{"q"}, Value: -1, DefaultText: "all", Usage: "only of the queue with this `ID`"},
				&cli.StringFlag{Name: "key", Aliases: []string{"k"}, Usage: "only with this `KEY`, or unique key"},
				&cli.Int64Flag{Name: "from", DefaultText: "the first", Usage: "from log `OFFSET` on"},
				&cli.Int64Flag{Name: "to", DefaultText: "the end", Usage: "before log `OFFSET`"},
				&cli.Int64Flag{Name: "queue-from", DefaultText: "the first", Usage: "from queue `OFFSET` on"},
				&cli.Int64Flag{Name: "queue-to", DefaultText: "the end", Usage: "before queue `OFFSET`"},
				&cli.StringFlag{Name: "since", Usage: "stored at `TIME` or later: 2006-01-02T15:04:05+01:00, or ms since 1970"},
				&cli.StringFlag{Name: "until", Usage: "stored before `TIME`"},
				limit(100, "print at most `N`"),
				&cli.BoolFlag{Name: "body", Usage: "print bodies too, inflated where zlib was used"},
				&cli.BoolFlag{Name: "scan", Usage: "go through the log even where queue or index would lead to the records"}),
			command("verify", "check every record, queue entry and key",
				"Exit code 0: nothing is wrong; 1: there are findings; 2: something could not be read. In a store whose broker was\n"+
					"killed, what the next start mends by itself is told as a note.", (*storeCommand).verify,
				limit(inspect.DefaultFindings, "print at most `N` findings of each kind")),
			command("repair", "mend what verify finds",
				"Cuts a torn tail off the log, makes queues and index with findings anew from it, puts the .bak in the place of\n"+
					"configuration files that can't be read. Make a copy first. Exit code 0: nothing is wrong any more; 1: something\n"+
					"is left; 2: it could not be done.", (*storeCommand).repair,
				&cli.BoolFlag{Name: "dry-run", Usage: "print the steps and change nothing"},
				&cli.BoolFlag{Name: "fill", Usage: "replace damaged records within the log by filler that enters no queue, and missing files by empty ones; " +
					"else they are left, and a recovery that meets them ends the log there"},
				&cli.BoolFlag{Name: "restore", Usage: "store the messages again, as new ones, that a recovery found behind a damaged place and put aside in damaged-OFFSET; " +
					"each once, however often this is run; the folder is called restored-OFFSET then"}),
		},
	}
}

// usageOf is usage for a command below another.
func usageOf(command string) cli.OnUsageErrorFunc {
	return func(c *cli.Context, err error, _ bool) error { return complaint(c.Command.Flags, err, command) }
}

// storeCommand is one run of a command below `rocketd store`.
type storeCommand struct {
	p       *process
	c       *cli.Context
	options inspect.Options
	dir     *inspect.Dir // nil for repair
	json    bool
	bar     *progressLine
}

func (p *process) runStore(c *cli.Context, run func(*storeCommand) error) error {
	s := &storeCommand{p: p, c: c, bar: newProgressLine(p.stderr)}
	if err := s.arguments(); err != nil {
		return err
	}
	s.options.Progress = s.bar.show
	defer s.bar.clear()
	if c.Command.Name != "repair" {
		dir, err := inspect.Open(s.options)
		if err != nil {
			return &exit{exitUnreadable, err}
		}
		if s.dir = dir; dir.Running() {
			s.bar.clear()
			fmt.Fprintf(p.stderr, "rocketd: WARNING: a broker is running on %s; what it writes meanwhile may look like damage\n", s.options.Root)
		}
	}
	err := run(s)
	var known *exit
	var usage *usageError
	if err == nil || errors.As(err, &known) || errors.As(err, &usage) {
		return err
	}
	return &exit{exitUnreadable, err}
}

// arguments reads the directory, -o and -c.
func (s *storeCommand) arguments() error {
	switch s.c.String("output") {
	case "text":
	case "json":
		s.json = true
	default:
		return &usageError{fmt.Sprintf("-o %s is neither text nor json", s.c.String("output"))}
	}
	if s.c.NArg() > 1 {
		return &usageError{fmt.Sprintf("unexpected argument %q (see `rocketd store %s --help`)", s.c.Args().Get(1), s.c.Command.Name)}
	}
	root := s.c.Args().First()
	s.options = inspect.Options{FS: vfs.OS, Root: root}
	if file := s.c.String("configFile"); file != "" {
		cfg, err := defaultConfig(file, nil, environmentOptions())
		if err != nil {
			return &exit{exitUnreadable, err}
		}
		stored := cfg.Config
		if root == "" {
			s.options.Root = stored.StorePathRootDir
		} else if within, ok := strings.CutPrefix(filepath.Clean(stored.StorePathCommitLog), filepath.Clean(stored.StorePathRootDir)+"/"); ok {
			stored.StorePathCommitLog = filepath.Join(root, within) // of the copy that is looked at
		}
		s.options.Config = &stored
	}
	if s.options.Root == "" {
		return &usageError{fmt.Sprintf("which directory? (see `rocketd store %s --help`)", s.c.Command.Name)}
	}
	return nil
}

// print prints a value as indented JSON.
func (s *storeCommand) print(v any) error {
	s.bar.clear()
	e := json.NewEncoder(s.p.stdout)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func (s *storeCommand) printf(format string, args ...any) {
	s.bar.clear()
	fmt.Fprintf(s.p.stdout, format, args...)
}

func (s *storeCommand) verify() error {
	r, err := s.dir.Verify(int(s.c.Int64("limit")))
	if err != nil {
		return err
	}
	if s.json {
		err = s.print(struct {
			Clean bool `json:"clean"`
			*inspect.Report
		}{r.Clean(), r})
	} else {
		s.report(r)
	}
	if err == nil && !r.Clean() {
		err = &exit{code: exitFindings}
	}
	return err
}

func (s *storeCommand) repair() error {
	dry := s.c.Bool("dry-run")
	o := inspect.RepairOptions{DryRun: dry, Fill: s.c.Bool("fill"), Restore: s.c.Bool("restore")}
	if !s.json {
		o.Step = func(step inspect.Step) { s.printf("%s\n", step) }
	}
	r, err := inspect.Repair(s.options, o)
	if r == nil {
		return err
	}
	if s.json {
		if e := s.print(r); e != nil {
			return e
		}
	} else {
		left := r.Left
		if dry {
			s.printf("dry run: %s would be taken, nothing was changed. What was found:\n", counted(len(r.Steps), "step"))
			left = r.Found
		} else {
			s.printf("%s taken. What is left:\n", counted(len(r.Steps), "step"))
		}
		s.report(left)
	}
	if err != nil {
		return err
	}
	if left := r.Left; left != nil && !left.Clean() || dry && !r.Found.Clean() {
		return &exit{code: exitFindings}
	}
	return nil
}
