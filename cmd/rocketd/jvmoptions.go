package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"rocketd/compat"
	"rocketd/remoting"
)

// jvmOptions are what the options of a JVM tell a server: -Dtls.server.mode=enforcing, -Duser.home=/data and so on. The
// official scripts hand the words of JAVA_OPT and JAVA_OPT_EXT to the JVM, which reads JAVA_TOOL_OPTIONS itself.
type jvmOptions struct {
	home string             // user.home: where a store or a KV configuration lies that no file names; "" = not set
	zone string             // user.timezone; "" = not set
	tls  []string           // settings of TLS, as KEY=VALUE
	keys *compat.Properties // keys of the configuration file that the others stand for
	idle []string           // properties of RocketMQ that change nothing here
}

// propertyKeys are the system properties that servers of 4.9.8 read and the keys of a configuration file that say the
// same.
var propertyKeys = map[string]string{
	"rocketmq.home.dir":                                       "rocketmqHome",
	"rocketmq.namesrv.addr":                                   "namesrvAddr",
	"rocketmq.acl.plain.file":                                 "aclPlainFile",
	"rocketmq.broker.diskSpaceWarningLevelRatio":              "diskSpaceWarningLevelRatio",
	"rocketmq.broker.diskSpaceCleanForciblyRatio":             "diskSpaceCleanForciblyRatio",
	"com.rocketmq.remoting.frameMaxLength":                    "frameMaxLength",
	"com.rocketmq.remoting.socket.backlog":                    "serverSocketBacklog",
	"com.rocketmq.remoting.client.connect.timeout":            "connectTimeoutMillis",
	"com.rocketmq.remoting.client.channel.maxIdleTimeSeconds": "clientChannelMaxIdleTimeSeconds",
	"com.rocketmq.remoting.client.closeSocketIfTimeout":       "clientCloseSocketIfTimeout",
}

// properties are all that are heeded.
func properties() []string {
	all := append(remoting.TLSKeys(), "user.home", "user.timezone")
	for p := range propertyKeys {
		all = append(all, p)
	}
	slices.Sort(all)
	return all
}

// add takes one property; it is false when a server would not heed it.
func (o *jvmOptions) add(name, value string) bool {
	key, known := propertyKeys[name]
	switch {
	case remoting.IsTLSKey(name):
		o.tls = append(o.tls, name+"="+value)
	case name == "user.home":
		o.home = value
	case name == "user.timezone":
		o.zone = value
	case known:
		if strings.HasPrefix(name, "rocketmq.broker.diskSpace") { // a share of one; the key is in percent
			if f, err := strconv.ParseFloat(value, 64); err == nil {
				value = strconv.Itoa(int(100*f + 1e-9))
			}
		}
		o.keys.Set(key, value)
	default:
		return false
	}
	return true
}

// environmentOptions are those of the variables that the official scripts hand to the JVM; a later one wins. Options of the
// JVM alone (-Xmx, -XX) mean nothing to a server without one.
func environmentOptions() jvmOptions {
	o := jvmOptions{keys: new(compat.Properties)}
	for _, variable := range []string{"JAVA_TOOL_OPTIONS", "JAVA_OPT", "JAVA_OPT_EXT"} {
		for _, word := range strings.Fields(os.Getenv(variable)) {
			property, ok := strings.CutPrefix(strings.Trim(word, `"'`), "-D")
			name, value, _ := strings.Cut(property, "=")
			if !ok || o.add(name, strings.Trim(value, `"'`)) {
				continue
			}
			for _, ours := range []string{"rocketmq.", "com.rocketmq.", "tls."} {
				if strings.HasPrefix(name, ours) {
					o.idle = append(o.idle, name)
				}
			}
		}
	}
	return o
}

// flagOptions are those that -D sets.
func flagOptions(c *cli.Context) (jvmOptions, error) {
	o := jvmOptions{keys: new(compat.Properties)}
	for _, p := range c.StringSlice("D") {
		name, value, ok := strings.Cut(p, "=")
		if !ok || !o.add(name, value) {
			return o, &usageError{fmt.Sprintf("-D%s: must be KEY=VALUE with one of the system properties that are heeded%s: %s", name,
				perhaps(name, properties()), strings.Join(properties(), ", "))}
		}
	}
	return o, nil
}

// perhaps names the word of a list that was likely meant.
func perhaps(word string, known []string) string {
	if near := compat.Nearest(word, known); near != "" {
		return " (perhaps " + near + ")"
	}
	return ""
}

// bind writes the keys that cfg has to it; the error names the property.
func (o jvmOptions) bind(cfg any) error {
	if _, err := compat.BindProperties(o.keys, cfg); err != nil {
		return fmt.Errorf("option of the JVM that stands for a configuration key: %w", err)
	}
	return nil
}

var offsetZone = regexp.MustCompile(`^GMT([+-])(\d{1,2}):?(\d{2})?$`)

// location is the time zone that deleteWhen and the days of the statistics go by; nil = that of the machine. A name is
// one of the zone database, or an offset as Java writes it: GMT+8, GMT+08:00.
func (o jvmOptions) location() (*time.Location, error) {
	if o.zone == "" {
		return nil, nil
	}
	if m := offsetZone.FindStringSubmatch(o.zone); m != nil {
		hours, _ := strconv.Atoi(m[2])
		minutes, _ := strconv.Atoi(m[3])
		if hours < 24 && minutes < 60 {
			seconds := 60 * (60*hours + minutes)
			if m[1] == "-" {
				seconds = -seconds
			}
			return time.FixedZone(o.zone, seconds), nil
		}
	}
	l, err := time.LoadLocation(o.zone)
	if err != nil {
		return nil, fmt.Errorf("user.timezone=%s: %w", o.zone, err)
	}
	return l, nil
}

// heed does what the options of a command ask of the process itself. It is called once, before servers are made.
func heed(c *cli.Context, log *slog.Logger) error {
	options, err := flagOptions(c)
	if err != nil {
		return err
	}
	return errors.Join(environmentOptions().heed(log), options.heed(log))
}

// heed makes the options' time zone the local one, and tells of properties that are passed over.
func (o jvmOptions) heed(log *slog.Logger) error {
	if len(o.idle) > 0 {
		log.Warn("system properties in JAVA_OPT, JAVA_OPT_EXT or JAVA_TOOL_OPTIONS that have no effect here", "properties", o.idle)
	}
	zone, err := o.location()
	if err != nil || zone == nil {
		return err
	}
	time.Local = zone
	log.Info("time zone", "user.timezone", o.zone)
	return nil
}
