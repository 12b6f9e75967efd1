package main

import (
	"fmt"
	"net/netip"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"rocketd/broker"
	"rocketd/protocol"
	"rocketd/remoting/acl"
	"rocketd/remoting/acl/admin"
)

// exitDenied is the exit code of `rocketd admin acl check` when the answer is no.
const exitDenied = 1

// admin is `rocketd admin`: what an administrator asks of files, without a broker.
func (p *process) admin() *cli.Command {
	check := &cli.Command{
		Name: "check", Usage: "say whether an account may do something, and why",
		UsageText: "rocketd admin acl check --access-key KEY [--op PUB|SUB --topic TOPIC] [--group GROUP] [flags]",
		Description: "Reads the ACL files that a broker reads (below rocketmqHome of -c, --home or ROCKETMQ_HOME) and decides as it would, for a\n" +
			"request whose signature is right. Exit code 0: allowed; 1: denied; 2: the files can't be read.",
		HideHelpCommand: true, OnUsageError: usageOf("rocketd admin acl check"),
		Flags: []cli.Flag{
			configFileFlag("broker"),
			&cli.StringFlag{Name: "home", Usage: "`DIR` with conf/plain_acl.yml and conf/acl"},
			&cli.StringFlag{Name: "access-key", Aliases: []string{"k"}, Usage: "`KEY` of the account"},
			&cli.StringFlag{Name: "op", Value: "PUB", Usage: "`OP` that is wanted of the topic: PUB or SUB"},
			&cli.StringFlag{Name: "topic", Aliases: []string{"t"}, Usage: "`TOPIC` that is sent to or subscribed"},
			&cli.StringFlag{Name: "group", Aliases: []string{"g"}, Usage: "consumer `GROUP` (SUB)"},
			&cli.StringFlag{Name: "address", Aliases: []string{"a"}, Usage: "`IP` that the request comes from; without it no white list of addresses matches"},
			&cli.IntFlag{Name: "code", DefaultText: "none", Usage: "request `CODE`, for those that need an administrator, or an address in adminAllowedNetworks of -c"},
		},
		Action: p.checkACL,
	}
	group := &cli.Command{
		Name: "acl", Usage: "access control", UsageText: "rocketd admin acl check [flags]", HideHelpCommand: true,
		OnUsageError: usage, Subcommands: []*cli.Command{check}, Action: wantsCommand("rocketd admin acl"),
	}
	return &cli.Command{
		Name: "admin", Usage: "questions of an administrator", UsageText: "rocketd admin acl check [flags]", HideHelpCommand: true,
		OnUsageError: usage, Subcommands: []*cli.Command{group}, Action: wantsCommand("rocketd admin"),
	}
}

// checkACL is the action of `rocketd admin acl check`.
func (p *process) checkACL(c *cli.Context) error {
	if c.Args().Present() {
		return &usageError{fmt.Sprintf("unexpected argument %q (see `rocketd admin acl check --help`)", c.Args().First())}
	}
	wanted, from, err := aclQuestion(c)
	if err != nil {
		return err
	}
	folder, networks, err := aclFolder(c)
	if err != nil {
		return err
	}
	code := protocol.RequestCode(c.Int("code"))
	if admin.KindOf(code) == admin.Change && from.IsValid() {
		in, err := admin.Has(networks, from)
		if err != nil {
			return &exit{exitUnreadable, err}
		}
		if !in {
			if _, err := fmt.Fprintf(p.stdout, "denied: %v is refused from %v: adminAllowedNetworks (%s) does not have this address\n", code, from, networks); err != nil {
				return err
			}
			return &exit{code: exitDenied}
		}
	}
	rules, err := acl.Load(folder)
	if err != nil {
		return &exit{exitUnreadable, fmt.Errorf("ACL file: %w", err)}
	}
	d := rules.Ask(c.String("access-key"), from, code, wanted)
	word := "denied"
	if d.Allowed() {
		word = "allowed"
	}
	if _, err := fmt.Fprintf(p.stdout, "%s: %s\n", word, d.Explain()); err != nil {
		return err
	}
	if !d.Allowed() {
		return &exit{code: exitDenied}
	}
	return nil
}

// aclQuestion is what the flags ask for.
func aclQuestion(c *cli.Context) (wanted []acl.Resource, from netip.Addr, err error) {
	need, known := acl.ParsePermission(strings.ToUpper(c.String("op")))
	if !known || need != acl.Pub && need != acl.Sub {
		return nil, from, &usageError{fmt.Sprintf("--op %q: must be PUB or SUB", c.String("op"))}
	}
	if a := c.String("address"); a != "" {
		if from, err = netip.ParseAddr(a); err != nil {
			return nil, from, &usageError{fmt.Sprintf("--address %q: must be an IP address", a)}
		}
	}
	if t := c.String("topic"); t != "" {
		wanted = append(wanted, acl.TopicResource(t, need))
	}
	if g := c.String("group"); g != "" {
		wanted = append(wanted, acl.Resource{Name: g, Group: true, Need: acl.Sub})
	}
	if c.String("access-key") == "" && !from.IsValid() {
		return nil, from, &usageError{"--access-key or --address must say who asks"}
	}
	return wanted, from, nil
}

// aclFolder is where the broker of the flags has its ACL files, and its adminAllowedNetworks.
func aclFolder(c *cli.Context) (folder acl.Folder, networks string, err error) {
	cfg, err := defaultConfig(c.String("configFile"), func(cfg *broker.Config) error {
		cfg.RocketmqHome = os.Getenv("ROCKETMQ_HOME")
		return environmentOptions().bind(cfg)
	})
	if err != nil {
		return folder, "", err
	}
	if c.IsSet("home") {
		cfg.RocketmqHome = c.String("home")
	}
	if cfg.RocketmqHome == "" {
		return folder, "", &usageError{"--home (or rocketmqHome in the file of -c, or ROCKETMQ_HOME) must say where conf/plain_acl.yml lies"}
	}
	folder = cfg.AclFolder()
	if _, err := os.Stat(folder.Home); err != nil {
		return folder, "", &exit{exitUnreadable, err}
	}
	return folder, cfg.AdminAllowedNetworks, nil
}
