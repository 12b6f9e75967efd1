//go:build conformance

package badinput

import (
	"regexp"
	"strings"
)

// difference is where rocketd's answer is not the official one, with the reason why it is better. COMPATIBILITY.md has a line
// for each reason.
type difference struct {
	server string
	code   int    // 0 = every
	cases  string // a pattern of the whole case name
	got    string // a pattern of the whole answer, as answer.String writes it
	of     string // a pattern of the official answer; "" = any
	why    string
}

var differences = []difference{
	{"broker", 0, ".* (missing|empty|no number).*|no header.*", "1\t\"header field \\w+( is missing|: .* is not an? \\w+)\"\t-\tkept", "1\t.*kept",
		"the remark names the field; the official one says that a group, client or statistics item \"null\" does not exist"},
	{"namesrv", 101, "(namespace|key) missing.*", "0\t.*", "", textEmpty},
	{"namesrv", 219, "(no header|namespace missing).*", "0\t.*", "", textEmpty},
	{"namesrv", 103, "(brokerName|brokerAddr|clusterName|haServerAddr) missing.*", "1\t\"header field \\w+ is missing\"\t-\tkept", "", "a broker " +
		"without a name, an address or a cluster would stand in routes that no client can use"},
	{"namesrv", 322, "body array", "1\t.*kept", "", otherShape},
	{"broker", 46, "body (array|null)", "1\t.*kept", "", otherShape},
	{"broker", 200, "body null", "1\t.*kept", "", otherShape},
	{"broker", 11, "maxMsgNums largest int", "0\t\"FOUND\".*kept", "", tooMany},
	{"broker", 12, "maxNum (negative|largest int)", "22\t.*kept", "", tooMany},
	{"broker", 17, "(read|write)QueueNums (negative|largest int)", "1\t.*kept", "", "a topic of less than none, or of 2,147,483,647 queues is of no use, " +
		"and clients that are told of it run out of memory"},
	{"broker", 204, "right.*|body .*", "1\t\"the producer group.BadInputGroup. not exist\"\t-\tkept", "", "a producer group ends with its last " +
		"producer; the official server keeps its name for ever"},
	{"broker", 308, ".*", "0\t\"\"\t-\tkept", "1\t\"<exception>\".*", "the official handler takes the group out of " +
		"each key of its offsets, and ends in an exception from when on one was committed for a group without a name"},
	{"broker", 314, "(src|dest)Group missing.*", "1\t.*kept", "", "the official server writes offsets of a group \"null\""},
	{"broker", 321, "queueId (negative|largest int)", "1\t\"-?\\d+@BadInput is not exist!\"\t-\tkept", "", "questions for a queue's offsets do not " +
		"make the queue"},
	{"broker", 17, "attributes (unknown|long)", "1\t.*kept", "", "attributes of topics are of 5.x: what a 5.3.3 broker refuses is refused"},
	{"broker", 325, ".*", "(1|17)\t.*kept", "1\t\"The specified topic is blank.\".*", "fields by their long names are read as in 310, where the official server " +
		"reads them too"},
}

const (
	textEmpty  = "a text that is absent is an empty one, here as everywhere: what was put without a namespace is found without one"
	otherShape = "a body that is no object is refused, not ignored"
	tooMany    = "more than there can be means all, less than one none; the official server ends in an exception"
)

// ofLater are the codes that 5.x clients send and no 4.9 server knows: there is no official answer, and any will do that keeps the
// connection.
var ofLater = map[int]bool{351: true, 361: true, 370: true,
	400: true, 401: true, 402: true, 200050: true, 200051: true, 200052: true, 200053: true, 200054: true, 200055: true, 200056: true, 200151: true}

// binaryLost tells whether a request's code does not fit the binary header: its low half asks for something else.
func binaryLost(c badCase) bool { return c.code > 1<<15 && strings.HasSuffix(c.name, "binary") }

// laterChanges are what requests of these codes change in the tables: what a group pops moves its offset, and comes again in a
// retry topic, a pop that makes nothing invisible up to the dead letters.
var laterChanges = regexp.MustCompile(`rmq_sys_ROCKETD_POP_LOG|%RETRY%BadInput\w*_BadInput|%DLQ%BadInputPop|offset BadInput@BadInput`)

// findDifference returns the index of the difference that a case's answer is.
func findDifference(differences []difference, c badCase, got, official answer) (int, bool) {
	server := c.server
	if server == "fast" { // the same handlers
		server = "broker"
	}
	for n, d := range differences {
		if d.server == server && (d.code == 0 || d.code == c.code) &&
			regexp.MustCompile("^(?:"+d.cases+")$").MatchString(c.name) && regexp.MustCompile("^(?:"+d.got+")$").MatchString(got.String()) &&
			(d.of == "" || regexp.MustCompile("^(?:"+d.of+")$").MatchString(official.String())) {
			return n, true
		}
	}
	return 0, false
}
