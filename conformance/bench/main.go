// Command bench measures rocketd and the official server side by side and prints a table of both with the ratios.
//
//	go run ./conformance/bench [-quick] [-rounds N] [-only REGEXP] [-o FILE.md]
//
// A round starts each server three times, alone, on a fresh store (as it is by default, with sync flush, and with a long
// log), and takes all measures of it; the rounds alternate in who comes first, and the table holds the medians. Only the ratios of one run mean something: the load generator shares the
// machine with the server, and what it is worth changes from hour to hour. Server CPU per message is the figure that
// depends least on that.
//
// All load is bounded in time and in number of messages; stores are removed when a server has been measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"time"

	"rocketd/conformance/target"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// settings is what the flags say.
type settings struct {
	rounds int
	phase  time.Duration // how long one load lasts
	log    int64         // bytes of messages in the log that a restart and a cold reader meet
	warm   time.Duration // load before the first measure: the official server compiles itself meanwhile (rocketd gets a quarter)
	only   *regexp.Regexp
	kinds  []target.Kind
	out    string
}

func parse(args []string) (settings, error) {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "fewer and shorter rounds, a shorter log: under eight minutes")
	rounds := flags.Int("rounds", 0, "rounds (default 5, quick 3)")
	only := flags.String("only", "", "take only the measures whose names match `REGEXP`, of: "+strings.Join(steps(), ", "))
	kinds := flags.String("kinds", "rocketd,official", "the servers to measure")
	out := flags.String("o", "", "also write the table as Markdown to `FILE`")
	if err := flags.Parse(args); err != nil {
		return settings{}, err
	}
	s := settings{rounds: 5, phase: 6 * time.Second, warm: 20 * time.Second, log: 2 << 30, out: *out}
	if *quick {
		s.rounds, s.phase, s.warm, s.log = 3, 2500*time.Millisecond, 10*time.Second, 512<<20
	}
	if *rounds > 0 {
		s.rounds = *rounds
	}
	for _, k := range strings.Split(*kinds, ",") {
		if k != string(target.Rocketd) && k != string(target.Official) {
			return settings{}, fmt.Errorf("no server %q", k)
		}
		s.kinds = append(s.kinds, target.Kind(k))
	}
	var err error
	s.only, err = regexp.Compile(*only)
	return s, err
}

func run() error {
	if err := beAttacker(); err != nil {
		return err
	}
	s, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	start := time.Now()
	client, err := buildClient(ctx)
	if err != nil {
		return err
	}
	defer os.Remove(client)
	results := newResults()
	for round := range s.rounds {
		for i := range s.kinds {
			kind := s.kinds[(i+round)%len(s.kinds)]
			fmt.Fprintf(os.Stderr, "round %d of %d: %s\n", round+1, s.rounds, kind)
			if err := measure(ctx, s, kind, client, results); err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
		}
	}
	t := results.table(s, time.Since(start))
	fmt.Print(t.text())
	if s.out != "" {
		return os.WriteFile(s.out, []byte(t.markdown()), 0o644)
	}
	return nil
}
