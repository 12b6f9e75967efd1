package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"rocketd/namesrv"
)

// namesrv is `rocketd namesrv`, also mqnamesrv.
func (p *process) namesrv() *cli.Command {
	return &cli.Command{
		Name:      "namesrv",
		Usage:     "start a name server, as mqnamesrv does",
		UsageText: "rocketd namesrv [-c namesrv.conf] [--profile secure]",
		Description: "Listens on listenPort (9876). KV configuration lies in namesrv/kvConfig.json in the home directory, unless\n" +
			"kvConfigPath says otherwise. Stop it with SIGTERM.",
		Flags:           []cli.Flag{configFileFlag("name server"), namesrvAddrFlag(), printFlag(), propertyFlag(), profileFlag()},
		HideHelpCommand: true,
		OnUsageError:    usage,
		Action:          p.runNamesrv,
	}
}

func (p *process) runNamesrv(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	cfg, err := namesrvConfig(c)
	if err != nil {
		return err
	}
	if c.Bool("printConfigItem") {
		if err := p.print(cfg.Items()); err != nil {
			return err
		}
		return cfg.Review(p.logger())
	}
	footprint()
	log := p.logger()
	if err := heed(c, log); err != nil {
		return err
	}
	return p.serve(log, func() ([]service, error) {
		var notes []string
		if c.String("profile") != "" {
			if notes, err = firstUse(cfg.AclFolder(), cfg.TLS, cfg.AdminAllowedNetworks, false, hostNames()); err != nil {
				return nil, err
			}
		}
		n, s, err := nameServer(cfg, log)
		s.notes = notes
		if c.String("configFile") != "" {
			s.reload = func() error {
				cfg, err := namesrvConfig(c)
				if err != nil {
					return err
				}
				return n.Reload(cfg)
			}
		}
		return []service{s}, err
	})
}

// namesrvConfig is the configuration of flags, file and environment.
func namesrvConfig(c *cli.Context) (namesrv.Config, error) {
	environment := environmentOptions()
	options, err := flagOptions(c)
	if err != nil {
		return namesrv.Config{}, err
	}
	home, noHome := homeDir("kvConfigPath", environment, options)
	cfg := namesrv.DefaultConfig(home)
	if noHome != nil {
		cfg.KvConfigPath, cfg.ConfigStorePath = "", ""
	}
	cfg.RocketmqHome = os.Getenv("ROCKETMQ_HOME")
	secure, err := isSecure(c)
	if err != nil {
		return cfg, err
	}
	if secure {
		secureNamesrv(&cfg)
	}
	cfg.TLS.SetOptions(environment.tls)
	if err := environment.bind(&cfg); err != nil {
		return cfg, err
	}
	if path := c.String("configFile"); path != "" {
		if cfg, err = namesrv.ReadConfig(path, cfg); err != nil {
			return cfg, err
		}
	}
	cfg.TLS.SetOptions(options.tls)
	if err := options.bind(&cfg); err != nil {
		return cfg, err
	}
	if cfg.KvConfigPath == "" && noHome != nil {
		return cfg, noHome
	}
	if cfg.ConfigStorePath == "" { // no configuration file and no home: beside the other
		cfg.ConfigStorePath = filepath.Join(filepath.Dir(cfg.KvConfigPath), "namesrv.properties")
	}
	if secure {
		err = finishNamesrv(&cfg, environment, options)
	}
	return cfg, err
}

// nameServer makes a name server and its service.
func nameServer(cfg namesrv.Config, log *slog.Logger) (*namesrv.Server, service, error) {
	s, err := namesrv.New(cfg, log, time.Now)
	if err != nil {
		return nil, service{}, err
	}
	return s, service{name: "namesrv", start: s.Start, close: s.Close, about: s.About}, nil
}
