package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"github.com/urfave/cli/v2"

	"rocketd/broker"
	"rocketd/namesrv"
)

// standalone is `rocketd standalone`: everything in one process, nothing to configure.
func (p *process) standalone() *cli.Command {
	return &cli.Command{
		Name:      "standalone",
		Usage:     "start a name server and a broker in one process",
		UsageText: "rocketd standalone [--data DIR] [-c broker.conf] [--profile secure]",
		Description: "The name server listens on 9876, the broker on 10911 and 10909. Messages and configuration lie in ./data.\n" +
			"Clients need the address HOST:9876 and nothing else. Stop it with SIGTERM or Ctrl-C.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "data", Value: "data", Usage: "`DIR` for messages and configuration"},
			&cli.IntFlag{Name: "namesrvPort", Value: 9876, Usage: "`PORT` of the name server"},
			&cli.IntFlag{Name: "listenPort", Value: 10911, Usage: "`PORT` of the broker; it also uses PORT-2, and PORT+1 is reserved"},
			configFileFlag("broker"),
			propertyFlag(), printFlag(), importantFlag(), profileFlag(),
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
	ns, cfg, err := standaloneConfigs(c)
	if err != nil {
		return err
	}
	if printOnly(c) {
		return p.printBroker(c, cfg)
	}
	footprint()
	log := p.logger()
	if err := heed(c, log); err != nil {
		return err
	}
	return p.serve(log, func() ([]service, error) {
		notes, err := secureFiles(c, &cfg)
		if err != nil {
			return nil, err
		}
		server, n, err := nameServer(ns, log.With("server", "namesrv"))
		if err != nil {
			return nil, err
		}
		b, err := broker.New(cfg, broker.Options{Log: log.With("server", "broker"), StoreKey: "--data"})
		if err != nil {
			return nil, err
		}
		s := brokerService(b)
		s.notes = notes
		if c.String("configFile") != "" {
			s.reload = func() error {
				ns, cfg, err := standaloneConfigs(c)
				if err != nil {
					return err
				}
				return errors.Join(b.Reload(cfg), server.Reload(ns))
			}
		}
		return []service{n, s}, nil
	})
}

// standaloneConfigs are the configurations of flags and file.
func standaloneConfigs(c *cli.Context) (ns namesrv.Config, cfg broker.Config, err error) {
	if c.String("data") == "" {
		return ns, cfg, &usageError{"--data is empty; give a folder for messages and configuration"}
	}
	data, err := filepath.Abs(c.String("data"))
	if err != nil {
		return ns, cfg, err
	}
	options, err := flagOptions(c)
	if err == nil && options.home != "" {
		err = &usageError{"-Duser.home: --data says where messages and configuration lie"}
	}
	if err != nil {
		return ns, cfg, err
	}
	secure, err := isSecure(c)
	if err != nil {
		return ns, cfg, err
	}
	environment := environmentOptions()
	if cfg, err = standaloneBroker(c, data, secure, environment, options); err != nil {
		return ns, cfg, err
	}
	if ns, err = standaloneNamesrv(c, data, secure, cfg, environment, options); err != nil {
		return ns, cfg, err
	}
	more := cfg.NamesrvAddr
	cfg.NamesrvAddr = net.JoinHostPort(reachable(cfg.BindAddress), strconv.Itoa(ns.ListenPort))
	if more != "" {
		cfg.NamesrvAddr += ";" + more
	}
	return ns, cfg, nil
}

// standaloneBroker is the configuration of the broker; its name servers are those beside the one of this process.
func standaloneBroker(c *cli.Context, data string, secure bool, environment, options jvmOptions) (broker.Config, error) {
	cfg := broker.DefaultConfig(data)
	if secure {
		secureBroker(&cfg)
	}
	cfg.RocketmqHome = os.Getenv("ROCKETMQ_HOME")
	cfg.TLS.SetOptions(environment.tls)
	if err := environment.bind(&cfg); err != nil {
		return cfg, err
	}
	cfg.NamesrvAddr = "" // what the environment says is meant for brokers without a name server of their own
	cfg, err := broker.ReadConfig(c.String("configFile"), cfg)
	if err != nil {
		return cfg, err
	}
	cfg.TLS.SetOptions(options.tls)
	if err := options.bind(&cfg); err != nil {
		return cfg, err
	}
	if c.IsSet("listenPort") {
		cfg.ListenPort = c.Int("listenPort")
	}
	if c.IsSet("data") {
		cfg.StorePathRootDir = data
	}
	if c.IsSet("namesrvAddr") {
		cfg.NamesrvAddr = c.String("namesrvAddr")
		if err := broker.CheckNamesrvAddr(cfg.NamesrvAddr); err != nil {
			return cfg, &usageError{"-n " + err.Error()}
		}
	}
	for _, name := range []string{"namesrvPort", "listenPort"} {
		if port := c.Int(name); port < 1 || port > 65535 {
			return cfg, &usageError{fmt.Sprintf("--%s %d is no port from 1 to 65535", name, port)}
		}
	}
	cfg.PortHint = "--listenPort"
	if secure {
		if cfg.RocketmqHome == "" {
			cfg.RocketmqHome = data
		}
		err = finishBroker(&cfg)
	}
	return cfg, err
}

// standaloneNamesrv is the configuration of the name server beside a broker, whose accounts, TLS and address it has.
func standaloneNamesrv(c *cli.Context, data string, secure bool, cfg broker.Config, environment, options jvmOptions) (namesrv.Config, error) {
	ns := namesrv.DefaultConfig(data)
	if err := errors.Join(environment.bind(&ns), options.bind(&ns)); err != nil {
		return ns, err
	}
	ns.SurfaceConfig, ns.RocketmqHome, ns.AclPlainFile = cfg.SurfaceConfig, cfg.RocketmqHome, cfg.AclPlainFile
	if secure {
		secureNamesrv(&ns)
		ns.AdminAllowedNetworks = cfg.AdminAllowedNetworks
	}
	ns, err := namesrv.ReadUpdates(ns)
	if err != nil {
		return ns, err
	}
	ns.TLS = cfg.TLS
	ns.ListenPort, ns.BindAddress, ns.PortHint = c.Int("namesrvPort"), cfg.BindAddress, "--namesrvPort"
	return ns, nil
}

// reachable is the address by which this machine reaches a server that is bound to the given one.
func reachable(bound string) string {
	if ip := net.ParseIP(bound); bound == "" || ip != nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return bound
}
