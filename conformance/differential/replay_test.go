//go:build conformance

package differential

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"rocketd/conformance/wire"
)

const (
	// The longest recorded pause that is kept: the delay levels 1 and 2 need some.
	longestPause = 2500 * time.Millisecond
	// What an answer may take beyond its recorded time.
	beyond = 10 * time.Second
	// A pull that the recorded server held longer than this, in vain, asks this one to hold it for a second only.
	longestHold = 6 * time.Second
)

// replay sends a recording's requests to a server: over one connection for each recorded one, in recorded order, and
// not before the answers that the client had seen by then have come. What the recording says of its own server is
// replaced by what is true of this one:
//
//   - addresses, by the endpoints' addresses;
//   - names of topics, groups and clients, when the recording is replayed again, so that each time is the first;
//   - message ids and log offsets that were answered, by those that this server answered;
//   - times that a request asks about, by the same distance from now.
type replay struct {
	addrs   map[string]string // endpoint → this server's address
	pause   time.Duration     // the longest pause that is kept
	suffix  string            // of names; "" = they are kept
	hurried bool              // replayed without the recorded pauses

	answers map[*entry]*entry // request → recorded answer
	shift   int64             // ms from then to now
	conns   map[connKey]*wire.Conn
	pending map[requestKey]sentRequest
	ids     map[string]string // recorded message id → this server's
	offsets map[string]string // recorded log offset → this server's
	// recorded offset in the half messages' queue → this server's
	halfOffsets map[string]string
	hosts       map[string]string // recorded address → this server's
	back        *callbacks        // what the client says to the server's requests
	commits     map[string]string // queue of a group → the offset that a oneway committed last
	fresh       map[queue]int64   // queue → the end that it reaches when all answered sends are dispatched
	notices     map[connKey]notices
	compared    int
	asked       int // the code of the request whose answer is compared
	diffs       []difference
}

type connKey struct {
	endpoint string
	conn     int
}

// queue names a queue of the one broker.
type queue struct{ topic, queueId string }

type requestKey struct {
	connKey
	opaque int32
}

type sentRequest struct {
	e       *entry
	request *wire.Frame
	pending *wire.Pending
}

// notices counts the broker's calls of a connection: recorded and seen.
type notices struct{ recorded, seen map[string]int }

// difference is one fact in which the answer to the request of a line differs. The same fact of the same line is the
// same difference, whatever the values were.
type difference struct {
	line int
	what string // the fact
	how  string // the values
}

// A name in it is the recorded one, at whatever attempt.
func (d difference) key() string {
	return fmt.Sprintf("%d %s", d.line, renamed.ReplaceAllString(d.what, "$1"))
}

var renamed = regexp.MustCompile(`\b(J4|J5|JB|Go|no-such-topic|no-such-group)again\d+`)

// recordedNames finds the topics and groups of a recording by their beginnings.
var recordedNames = regexp.MustCompile(`\b(J4|J5|JB|Go|no-such-topic|no-such-group)\b`)

func newReplay(addrs map[string]string, attempt int) *replay {
	r := &replay{addrs: addrs, pause: longestPause, conns: map[connKey]*wire.Conn{}, pending: map[requestKey]sentRequest{},
		ids: map[string]string{}, offsets: map[string]string{}, halfOffsets: map[string]string{}, commits: map[string]string{}, fresh: map[queue]int64{}, notices: map[connKey]notices{}}
	if attempt > 1 {
		r.suffix = "again" + strconv.Itoa(attempt)
	}
	return r
}

// local replaces what the recording says of its own server in a text.
func (r *replay) local(s string) string {
	if r.suffix != "" {
		s = recordedNames.ReplaceAllString(s, "${1}"+r.suffix)
	}
	for old, now := range r.hosts {
		s = strings.ReplaceAll(s, old, now)
	}
	return s
}

func (r *replay) run(entries []*entry) error {
	defer func() {
		for _, c := range r.conns {
			c.Close()
		}
	}()
	r.hosts = recordedAddresses(entries, r.addrs)
	r.answers = answersOf(entries)
	var err error
	if r.back, err = callbacksOf(entries); err != nil {
		return err
	}
	var last int64
	for _, e := range entries {
		key := connKey{e.Endpoint, e.Conn}
		if e.Kind != "" {
			if last == 0 {
				r.shift = time.Now().UnixMilli() - e.T
			} else {
				<-time.After(min(max(0, time.Duration(e.T-last)*time.Millisecond), r.pause)) // the recorded client's pause
			}
			last = e.T
		}
		switch {
		case e.Event == "close" && r.conns[key] != nil:
			r.hangUp(key)
		case e.Kind == "" || r.addrs[e.Endpoint] == "":
		case e.fromClient() && !e.isResponse():
			if err := r.send(key, e); err != nil {
				return fmt.Errorf("line %d: %w", e.line, err)
			}
		case !e.fromClient() && e.isResponse():
			r.await(key, e)
		case !e.fromClient():
			f, err := e.frame()
			if err != nil {
				return err
			}
			r.noticesOf(key).recorded[r.notice(f)]++
			if f.Code == checkTransactionState {
				r.learnCheck(key, f)
			}
		}
	}
	for key := range r.conns {
		r.hangUp(key)
	}
	return nil
}

func (r *replay) send(key connKey, e *entry) error {
	c := r.conns[key]
	if c == nil {
		var err error
		if c, err = wire.Dial(r.addrs[e.Endpoint], func(f *wire.Frame) *wire.Frame { return r.back.next(f.Code) }); err != nil {
			return err
		}
		r.conns[key] = c
	}
	f, err := e.frame()
	if err != nil {
		return err
	}
	if f.Ext["Signature"] != "" {
		sign := signer(f)
		r.adapt(f)
		sign()
	} else {
		r.adapt(f)
	}
	if among("11 12 29 30 31", itoa(f.Code)) {
		r.awaitDispatch()
	}
	if a := r.answers[e]; a != nil && a.Code == 19 && a.T-e.T > longestHold.Milliseconds() {
		f.Set("suspendTimeoutMillis", "1000")
		if r.hurried { // a held pull is looked at every five seconds: do not hold it at all
			const suspend = 2
			if flag, err := strconv.Atoi(f.Ext["sysFlag"]); err == nil {
				f.Set("sysFlag", strconv.Itoa(flag&^suspend))
			}
		}
	}
	if e.Kind == "oneway" && f.Code == 15 {
		r.commits[queueOfGroup(f)] = f.Ext["commitOffset"]
	}
	p, err := c.Send(f)
	if err != nil {
		if r.answers[e] != nil {
			r.add(e, "not sent", err.Error())
		}
		return nil
	}
	if e.Kind == "request" {
		r.pending[requestKey{key, e.Opaque}] = sentRequest{e, f, p}
	}
	return nil
}

// timeFields are the fields, by request code, that hold a time to be moved to now. An end of a range is moved an hour
// further: what is sent now is stored a little later than it was then.
var timeFields = map[int]map[string]int64{
	29: {"timestamp": 0},
	12: {"beginTimestamp": 0, "endTimestamp": time.Hour.Milliseconds()},
}

// placeFields are the fields, by request code, that hold a place in the commit log.
var placeFields = map[int]string{33: "offset", 36: "offset", 37: "commitLogOffset"}

const dayOfRecording = 24 * 60 * 60 * 1000

func (r *replay) adapt(f *wire.Frame) {
	for k, v := range f.Ext {
		if r.hurried && f.Code == 12 && k == "beginTimestamp" {
			f.Ext[k] = "0" // the message is sent sooner than it was
			continue
		}
		if more, ok := timeFields[f.Code][k]; ok {
			if t, err := strconv.ParseInt(v, 10, 64); err == nil && abs(t+r.shift-time.Now().UnixMilli()) < dayOfRecording {
				f.Ext[k] = strconv.FormatInt(t+r.shift+more, 10)
			}
			continue
		}
		if place := placeFields[f.Code]; place == k && r.offsets[v] != "" {
			f.Ext[k] = r.offsets[v]
			continue
		}
		if k == "tranStateTableOffset" && r.halfOffsets[v] != "" {
			f.Ext[k] = r.halfOffsets[v]
			continue
		}
		if now := r.ids[v]; now != "" {
			v = now
		}
		f.Ext[k] = r.local(v)
	}
	if len(f.Body) > 0 && (f.Body[0] == '{' || f.Body[0] == '[') {
		f.Body = []byte(r.local(string(f.Body)))
	}
}

// answersOf finds the recorded answers.
func answersOf(entries []*entry) map[*entry]*entry {
	out, open := map[*entry]*entry{}, map[requestKey]*entry{}
	for _, e := range entries {
		k := requestKey{connKey{e.Endpoint, e.Conn}, e.Opaque}
		switch {
		case e.fromClient() && e.Kind == "request":
			open[k] = e
		case e.Dir == "s2c" && e.isResponse() && open[k] != nil:
			out[open[k]] = e
			delete(open, k)
		}
	}
	return out
}

func queueOfGroup(f *wire.Frame) string {
	return f.Ext["topic"] + "@" + f.Ext["consumerGroup"] + " " + f.Ext["queueId"]
}

func (r *replay) await(key connKey, e *entry) {
	k := requestKey{key, e.Opaque}
	s, ok := r.pending[k]
	if !ok {
		return
	}
	delete(r.pending, k)
	r.compared++
	took := time.Duration(e.T-s.e.T) * time.Millisecond
	limit := beyond + took*3/2
	outdated := s.request.Code == 11 && (e.Code == 25 || e.Code == 27)
	if outdated {
		limit = silence
	}
	live, err := s.pending.Wait(limit)
	switch {
	case outdated && errors.Is(err, os.ErrDeadlineExceeded):
		// The recorded pull overtook the heartbeat before it and was refused; this one did not, and is held.
	case errors.Is(err, os.ErrDeadlineExceeded):
		r.add(s.e, "no answer", "recorded one after "+took.String())
	case err != nil:
		r.add(s.e, err.Error(), "")
	default:
		want, err := e.frame()
		if err != nil {
			r.add(s.e, "bad recording", err.Error())
			return
		}
		r.learn(want, live)
		if isHalf(s.request) {
			r.halfOffsets[want.Ext["queueOffset"]] = live.Ext["queueOffset"]
		}
		r.sent(s.request, live)
		r.compare(s, want, live)
	}
}

// sent notes where an answered send went.
func (r *replay) sent(request, live *wire.Frame) {
	if live.Code != 0 || !among("10 310 320", itoa(request.Code)) || isDelayed(request) || isHalf(request) {
		return
	}
	topic := request.Ext["b"] + request.Ext["topic"]
	offset, err := strconv.ParseInt(live.Ext["queueOffset"], 10, 64)
	if err != nil {
		return
	}
	messages := int64(1 + strings.Count(live.Ext["msgId"], ","))
	q := queue{topic, live.Ext["queueId"]}
	r.fresh[q] = max(r.fresh[q], offset+messages)
}

func isDelayed(send *wire.Frame) bool {
	return strings.Contains(send.Ext["i"]+send.Ext["properties"], "DELAY\x01")
}

func isHalf(send *wire.Frame) bool {
	return strings.Contains(send.Ext["i"]+send.Ext["properties"], "TRAN_MSG\x01true")
}

// awaitDispatch waits until consumers can see what was sent. A client takes longer to start than a replay, and so the
// recorded one found everything in its queues.
func (r *replay) awaitDispatch() {
	if len(r.fresh) == 0 {
		return
	}
	c, err := wire.Dial(r.addrs["broker"], nil)
	if err != nil {
		return
	}
	defer c.Close()
	every := time.NewTicker(5 * time.Millisecond)
	defer every.Stop()
	for q, end := range r.fresh {
		for until := time.Now().Add(beyond); time.Now().Before(until); <-every.C {
			f, err := c.Call(wire.Request(30, "topic", q.topic, "queueId", q.queueId), beyond)
			if err != nil {
				return
			}
			if n, err := strconv.ParseInt(f.Ext["offset"], 10, 64); err == nil && n >= end {
				break
			}
		}
	}
	clear(r.fresh)
}

func (r *replay) add(e *entry, what, how string) {
	r.diffs = append(r.diffs, difference{e.line, fmt.Sprintf("request %d: %s", e.Code, what), how})
}

// learn keeps which of this server's ids and log offsets stand for the recorded ones.
func (r *replay) learn(want, live *wire.Frame) {
	if a, b := want.Ext["msgId"], live.Ext["msgId"]; a != "" && b != "" {
		r.ids[a] = b
		olds, nows := strings.Split(a, ","), strings.Split(b, ",")
		for i := 0; i < min(len(olds), len(nows)); i++ {
			r.ids[olds[i]] = nows[i]
			r.learnOffset(phyOffset(olds[i]), phyOffset(nows[i]))
		}
	}
	olds, err := wire.Messages(want.Body)
	if err != nil || len(olds) == 0 {
		return
	}
	nows, err := wire.Messages(live.Body)
	if err != nil {
		return
	}
	for _, o := range olds {
		for _, n := range nows {
			if r.local(o.Topic) == n.Topic && o.QueueId == n.QueueId && o.QueueOffset == n.QueueOffset {
				r.learnOffset(o.PhyOffset, n.PhyOffset)
				r.ids[o.MsgId()] = n.MsgId()
			}
		}
	}
}

func (r *replay) learnOffset(old, now int64) {
	if old >= 0 && now >= 0 {
		r.offsets[strconv.FormatInt(old, 10)] = strconv.FormatInt(now, 10)
	}
}

// phyOffset takes the log offset out of a message id; -1 when it is none.
func phyOffset(id string) int64 {
	if len(id) < 16 {
		return -1
	}
	n, err := strconv.ParseInt(id[len(id)-16:], 16, 64)
	if err != nil {
		return -1
	}
	return n
}

// recordedAddresses finds which addresses the recorded servers had, and which stand for them here. A broker's address
// is in every route.
func recordedAddresses(entries []*entry, addrs map[string]string) map[string]string {
	out := map[string]string{}
	route := regexp.MustCompile(`127\.0\.0\.2:\d+`)
	for _, e := range entries {
		f, err := e.frame()
		addr := addrs[strings.Replace(e.Endpoint, "namesrv", "broker", 1)]
		if err != nil || addr == "" || !strings.HasSuffix(e.Endpoint, "namesrv") || !e.isResponse() || *e.ReqCode != 105 {
			continue
		}
		for _, a := range route.FindAllString(string(f.Body), -1) {
			out[a] = addr
		}
	}
	return out
}

func (r *replay) noticesOf(key connKey) notices {
	n, ok := r.notices[key]
	if !ok {
		n = notices{map[string]int{}, map[string]int{}}
		r.notices[key] = n
	}
	return n
}

// hangUp closes a connection as the recorded client did and holds the server's calls against the recorded ones: each
// kind that came then must have come now. How often says nothing; it depends on how the changes of a group fall together.
// A client that closed before its heartbeat was answered did not wait for what that would bring either.
func (r *replay) hangUp(key connKey) {
	c := r.conns[key]
	n := r.noticesOf(key)
	for _, f := range c.Requests() {
		n.seen[r.notice(f)]++
	}
	for what := range n.recorded {
		if n.seen[what] == 0 {
			r.diffs = append(r.diffs, difference{0, "connection " + strconv.Itoa(key.conn) + " was not told " + what, fmt.Sprint(n.seen)})
		}
	}
	for what := range n.seen {
		if n.recorded[what] == 0 && !r.leftBehind(key, 34) {
			r.diffs = append(r.diffs, difference{0, "connection " + strconv.Itoa(key.conn) + " was told " + what, ""})
		}
	}
	c.Close()
	delete(r.conns, key)
}

// leftBehind tells whether a request of a code was recorded on a connection without its answer.
func (r *replay) leftBehind(key connKey, code int) bool {
	for k, s := range r.pending {
		if k.connKey == key && int(s.request.Code) == code {
			return true
		}
	}
	return false
}

func abs(n int64) int64 { return max(n, -n) }
