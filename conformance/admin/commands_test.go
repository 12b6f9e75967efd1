//go:build conformance

package admin

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rocketd/conformance/target"
)

// The files of a scenario, in the order in which each leaves its traces for the next.
var scenario = []string{
	"topics", "clients", "messages", "groups", "brokers", "settings", "offsets", "sending", "transactions", "exports", "cleanup",
}

const (
	tools4 = "mqadmin-4.9.8"
	tools5 = "mqadmin-5.5.0"
)

// difference is a step at which rocketd does not print what the official server prints.
type difference struct {
	reason string
	lines  []string // what is printed instead; nil: anything else
}

const (
	blackList = "4.9.8 has a list of keys that nobody may change, and rocketd follows it; the official server of these tests is 4.9.7"
)

var differs = map[string]difference{
	"settings: updateNamesrvConfig -k kvConfigPath -v /tmp/elsewhere | servers": {blackList, []string{
		"org.apache.rocketmq.tools.command.SubCommandException: UpdateNamesrvConfigCommand command failed",
		"Caused by: org.apache.rocketmq.client.exception.MQClientException: CODE: 16 DESC: Can not update config in black list.",
		"For more information, please visit the url, http://rocketmq.apache.org/docs/faq/",
	}},
	"settings: updateBrokerConfig -b {a} -k brokerConfigPath -v /tmp/elsewhere": {blackList, []string{
		"org.apache.rocketmq.tools.command.SubCommandException: UpdateBrokerConfigSubCommand command failed",
		"Caused by: org.apache.rocketmq.client.exception.MQBrokerException: CODE: 16 DESC: Can not update config in black list. BROKER: {a}",
		"For more information, please visit the url, http://rocketmq.apache.org/docs/faq/",
	}},
}

// Every subcommand of mqadmin 4.9.8.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	startRun(t, target.Client4).play(t, tools4, scenario, differs)
}

// TestEveryCommand: the transcripts have a step for each subcommand that the tool says it has.
func TestEveryCommand(t *testing.T) {
	seen := map[string]bool{}
	var listed []string
	for _, file := range scenario {
		script, err := readTranscript(filepath.Join("testdata", tools4, file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range script.steps {
			for _, a := range s.args {
				seen[a] = true
			}
			if slices.Equal(s.args, []string{"@help"}) {
				for _, l := range s.want[1 : len(s.want)-1] {
					name, _, _ := strings.Cut(l, " ")
					listed = append(listed, name)
				}
			}
		}
	}
	if len(listed) < 50 {
		t.Fatalf("the tool lists %d subcommands: %v", len(listed), listed)
	}
	for _, name := range listed {
		if !seen[name] {
			t.Errorf("no step for mqadmin %s", name)
		}
	}
}

// The same by the tools of 5.5.0, as far as they ask for what a 4.9 server has.
func TestTranscripts5(t *testing.T) {
	t.Parallel()
	startRun(t, target.Client5).play(t, tools5, scenario, differs5)
}

const refusedFAQ = "For more information, please visit the url, https://rocketmq.apache.org/docs/bestPractice/06FAQ"

var differs5 = map[string]difference{
	"settings: updateNamesrvConfig -k kvConfigPath -v /tmp/elsewhere | servers": {blackList, []string{
		"org.apache.rocketmq.tools.command.SubCommandException: UpdateNamesrvConfigCommand command failed",
		"Caused by: org.apache.rocketmq.client.exception.MQClientException: CODE: 16 DESC: Can not update config in black list.",
		refusedFAQ,
	}},
	"settings: updateBrokerConfig -b {a} -k brokerConfigPath -v /tmp/elsewhere": {blackList, []string{
		"org.apache.rocketmq.tools.command.SubCommandException: UpdateBrokerConfigSubCommand command failed",
		"Caused by: org.apache.rocketmq.client.exception.MQBrokerException: CODE: 16 DESC: Can not update config in black list. BROKER: {a}",
		refusedFAQ,
	}},
}
