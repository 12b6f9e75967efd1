package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"rocketd/broker"
	"rocketd/compat"
)

// broker is `rocketd broker`, also mqbroker.
func (p *process) broker() *cli.Command {
	return &cli.Command{
		Name:      "broker",
		Usage:     "start a broker, as mqbroker does",
		UsageText: "rocketd broker [-c broker.conf] [-n a:9876;b:9876] [--profile secure]",
		Description: "Listens on listenPort (10911) and listenPort-2 (10909). The store lies in storePathRootDir, by default\n" +
			"store in the home directory; a store of the official broker is taken over as it is. What a flag says goes before the\n" +
			"configuration file, and that before the environment. Stop it with SIGTERM.",
		Flags: []cli.Flag{
			configFileFlag("broker"), namesrvAddrFlag(), printFlag(), propertyFlag(), profileFlag(),
			importantFlag(),
		},
		HideHelpCommand: true,
		OnUsageError:    usage,
		Action:          p.runBroker,
	}
}

func (p *process) runBroker(c *cli.Context) error {
	if err := noArguments(c); err != nil {
		return err
	}
	cfg, err := brokerConfig(c)
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
		b, err := broker.New(cfg, broker.Options{Log: log})
		if err != nil {
			return nil, err
		}
		s := brokerService(b)
		s.notes = notes
		if c.String("configFile") != "" {
			s.reload = func() error {
				cfg, err := brokerConfig(c)
				if err != nil {
					return err
				}
				return b.Reload(cfg)
			}
		}
		return []service{s}, nil
	})
}

// brokerService is the service of a broker.
func brokerService(b *broker.Broker) service {
	return service{name: "broker " + b.Config().BrokerName, start: b.Start, close: b.Close, about: b.About}
}

// unsaid is storePathRootDir while no file has said where the store is: no path can have this character.
const unsaid = "\x00"

// defaultConfig reads the configuration file, "" = none, over the defaults. The user's home is only asked for when
// the file does not say where the store is.
func defaultConfig(file string, set func(*broker.Config) error, options ...jvmOptions) (broker.Config, error) {
	cfg := broker.DefaultConfig(unsaid)
	if set != nil {
		if err := set(&cfg); err != nil {
			return cfg, err
		}
	}
	cfg, err := broker.ReadConfig(file, cfg)
	if err != nil || cfg.StorePathRootDir != unsaid { // an empty path is refused later: nobody means the home by it
		return cfg, err
	}
	home, err := homeDir("storePathRootDir", options...)
	cfg.StorePathRootDir = filepath.Join(home, "store")
	return cfg, err
}

// brokerConfig is the configuration of flags, file and environment.
func brokerConfig(c *cli.Context) (broker.Config, error) {
	secure, err := isSecure(c)
	if err != nil {
		return broker.Config{}, err
	}
	environment := environmentOptions()
	options, err := flagOptions(c)
	if err != nil {
		return broker.Config{}, err
	}
	cfg, err := defaultConfig(c.String("configFile"), func(cfg *broker.Config) error {
		if secure {
			secureBroker(cfg)
		}
		cfg.TLS.SetOptions(environment.tls)
		cfg.RocketmqHome = os.Getenv("ROCKETMQ_HOME")
		cfg.NamesrvAddr = os.Getenv("NAMESRV_ADDR")
		return environment.bind(cfg)
	}, environment, options)
	if err != nil {
		return cfg, err
	}
	cfg.TLS.SetOptions(options.tls)
	if err := options.bind(&cfg); err != nil {
		return cfg, err
	}
	if c.IsSet("namesrvAddr") {
		cfg.NamesrvAddr = c.String("namesrvAddr")
		if err := broker.CheckNamesrvAddr(cfg.NamesrvAddr); err != nil {
			return cfg, &usageError{"-n " + err.Error()}
		}
	}
	if secure {
		err = finishBroker(&cfg, environment, options)
	}
	return cfg, err
}

// secureFiles makes the files of the profile, if it is asked for, and returns what there is to say of them.
func secureFiles(c *cli.Context, cfg *broker.Config) ([]string, error) {
	if secure, err := isSecure(c); err != nil || !secure {
		return nil, err
	}
	return firstUse(cfg.AclFolder(), cfg.TLS, cfg.AdminAllowedNetworks, true, hostNames(cfg.BrokerIP1, os.Getenv("BROKER_IP1")))
}

// importantFlag is -m of mqbroker.
func importantFlag() cli.Flag {
	return &cli.BoolFlag{Name: "printImportantConfig", Aliases: []string{"m"}, Usage: "print the important config items, say what is wrong with the configuration, and exit"}
}

// printOnly tells whether the configuration is to be printed, and no broker to be started.
func printOnly(c *cli.Context) bool {
	return c.Bool("printConfigItem") || c.Bool("printImportantConfig")
}

// printBroker prints a broker's configuration and tells what is wrong with it.
func (p *process) printBroker(c *cli.Context, cfg broker.Config) error {
	effective, err := cfg.Effective()
	if err != nil {
		return err
	}
	items := effective.Items()
	if !c.Bool("printConfigItem") {
		items = effective.ImportantItems()
	}
	if err := p.print(items); err != nil {
		return err
	}
	return cfg.Review(p.logger())
}

// print prints configuration items, one a line.
func (p *process) print(items []compat.KeyValue) error {
	for _, kv := range items {
		if _, err := fmt.Fprintf(p.stdout, "%s=%s\n", kv.Key, kv.Value); err != nil {
			return err
		}
	}
	return nil
}
