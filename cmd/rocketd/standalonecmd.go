package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"rocketd/broker"
	"rocketd/namesrv"
)

// standalone is `rocketd standalone`: everything in one process, nothing to configure.
func (p *process) standalone() *cli.Command {
	return &cli.Command{
		Name:      "standalone",
		Usage:     "start a name server and a broker in one process",
		UsageText: "rocketd standalone [--data DIR] [-c broker.conf]",
		Description: "The name server listens on 9876, the broker on 10911 and 10909. Messages and configuration lie in ./data.\n" +
			"Clients need the address HOST:9876 and nothing else. Stop it with SIGTERM or Ctrl-C.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data", Value: "data", Usage: "`DIR` for messages and configuration"},
			&cli.IntFlag{Name: "namesrvPort", Value: 9876, Usage: "`PORT` of the name server"},
			&cli.IntFlag{Name: "listenPort", Value: 10911, Usage: "`PORT` of the broker; it also uses PORT-2, and PORT+1 is reserved"},
			configFileFlag("broker"),
			&cli.StringFlag{Name: "namesrvAddr", Aliases: []string{"n"}, Usage: "further name servers to register at, `LIST` like 'a:9876;b:9876'"},
		},
		HideHelpCommand: true,
		OnUsageError:    usage,
		Action:          p.runStandalone,
	}
}

func (p *process) runStandalone(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	data, err := filepath.Abs(c.String("data"))
	if err != nil {
		return err
	}
	cfg := broker.DefaultConfig(data)
	if cfg, err = broker.ReadConfig(c.String("configFile"), cfg); err != nil {
		return err
	}
	if c.IsSet("listenPort") {
		cfg.ListenPort = c.Int("listenPort")
	}
	if c.IsSet("data") {
		cfg.StorePathRootDir = data
	}
	more := cfg.NamesrvAddr // of the file
	if c.IsSet("namesrvAddr") {
		more = c.String("namesrvAddr")
	}
	cfg.NamesrvAddr = fmt.Sprintf("127.0.0.1:%d", c.Int("namesrvPort"))
	if more != "" {
		cfg.NamesrvAddr += ";" + more
	}
	ns := namesrv.DefaultConfig(data)
	ns.ListenPort = c.Int("namesrvPort")

	footprint()
	log := p.logger()
	return p.serve(log, func() ([]service, error) {
		n, err := nameServer(ns, log.With("server", "namesrv"))
		if err != nil {
			return nil, err
		}
		b, err := broker.New(cfg, broker.Options{Log: log.With("server", "broker")})
		if err != nil {
			return nil, err
		}
		return []service{n, {name: "broker " + b.Config().BrokerName, start: b.Start, close: b.Close, about: b.About}}, nil
	})
}
