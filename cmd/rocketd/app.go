package main

import (
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"
)

// environment is the part of the help that tells of environment variables.
const environment = `
ENVIRONMENT:
   NAMESRV_ADDR        name servers when neither flag nor configuration file names any
   ROCKETMQ_HOME       home directory of an official installation
   JAVA_OPT, JAVA_OPT_EXT, JAVA_TOOL_OPTIONS   of these, -D of what official servers heed: tls.…, user.home, user.timezone,
                       rocketmq.home.dir, rocketmq.namesrv.addr, rocketmq.broker.diskSpaceWarningLevelRatio and others
   BROKER_IP1          address told to clients when the configuration file has no brokerIP1
   ROCKETD_LOG_LEVEL   debug, info (default), warn or error
   GOGC, GOMEMLIMIT    memory of the Go runtime; by default rocketd trades a little CPU for a small footprint
`

// process is what every command needs of the process it runs in.
type process struct {
	stdout, stderr io.Writer
	started        time.Time
}

func newApp(stdout, stderr io.Writer, started time.Time) *cli.App {
	p := &process{stdout, stderr, started}
	cli.VersionPrinter = func(*cli.Context) { fmt.Fprintln(stdout, thisBuild().line()) }
	app := &cli.App{
		Name:      "rocketd",
		Usage:     "RocketMQ name server and broker",
		UsageText: "rocketd COMMAND [flags]",
		Description: "rocketd speaks the remoting protocol and keeps the files of RocketMQ 4.9.8. `rocketd standalone` starts a name\n" +
			"server (9876) and a broker (10911) that clients can use at once. Started under the names mqnamesrv and\n" +
			"mqbroker it takes the flags of these.",
		Version:         thisBuild().Version,
		HideHelpCommand: true,
		Writer:          stdout,
		ErrWriter:       stderr,
		Commands:        []*cli.Command{p.standalone(), p.namesrv(), p.broker(), p.store(), p.admin(), p.version()},
		OnUsageError:    usage,

		DisableSliceFlagSeparator: true,                         // a value of -D may have commas
		ExitErrHandler:            func(*cli.Context, error) {}, // run decides
		Action: func(c *cli.Context) error {
			if c.Args().Present() {
				return unknownCommand(c, c.App.Commands, "rocketd")
			}
			return cli.ShowAppHelp(c)
		},
	}
	app.CustomAppHelpTemplate = cli.AppHelpTemplate + environment
	return app
}

// wantsCommand is the action of a command that has only others below it.
func wantsCommand(name string) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.Args().Present() {
			return unknownCommand(c, c.Command.Subcommands, name)
		}
		return cli.ShowSubcommandHelp(c)
	}
}

// noArguments refuses words behind the flags: they are mostly a flag without its dash.
func noArguments(c *cli.Context) error {
	if c.Args().Present() {
		return &usageError{fmt.Sprintf("unexpected argument %q (see `rocketd %s --help`)", c.Args().First(), c.Command.Name)}
	}
	return nil
}

// Flags of the official start-up classes.
func namesrvAddrFlag() cli.Flag {
	return &cli.StringFlag{Name: "namesrvAddr", Aliases: []string{"n"},
		Usage: "name server `LIST`, eg: '192.168.0.1:9876;192.168.0.2:9876'"}
}

func configFileFlag(whose string) cli.Flag {
	return &cli.StringFlag{Name: "configFile", Aliases: []string{"c"}, Usage: whose + " config properties `FILE`"}
}

// propertyFlag is -D of the JVM; jvmoptions.go has the properties that are heeded.
func propertyFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "D", Usage: "a system property of the official server, eg: -Dtls.server.mode=enforcing; `KEY=VALUE`"}
}

func printFlag() cli.Flag {
	return &cli.BoolFlag{Name: "printConfigItem", Aliases: []string{"p"}, Usage: "print all config items, say what is wrong with them, and exit"}
}
