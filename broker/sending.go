package broker

import (
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"rocketd/protocol"
	"rocketd/protocol/header"
	"rocketd/protocol/message"
	"rocketd/remoting"
	"rocketd/store"
)

// sending is one send in hand: from the request to its answer. Owned by its run.
type sending struct {
	call *remoting.Call
	req  *header.SendMessageRequest

	queueId int32 // that the client asked for, or chosen for it; answered even when the message goes elsewhere
	flush   bool  // the answer waits for the disk
	created bool  // the answer waits for topics.json

	realTopic string // of a message that waits until it is due
	due       int64  // ms; 0: it does not wait

	msg     message.Message
	batch   []message.Message // elements of a batch
	members []*message.Message
	put     store.Put
	idEnd   int // where its message id ends in the run's ids

	left   atomic.Int32 // conditions that the answer waits for
	late   atomic.Bool  // the flush did not come in time
	lost   error        // topics.json could not be written; set before its condition counts as met
	answer header.SendMessageResponse
}

// sendRun is the sends of one connection that came together. It is recycled when the last is answered.
type sendRun struct {
	b    *Broker
	env  *sendEnv
	all  []*sending // reused; the first used are in hand
	used int
	puts []*store.Put
	owed []*sending // parallel to puts

	// text holds the properties of the run's messages. They are strings that share its bytes: the store
	// copies what it appends, so nothing points here once Put has returned.
	text []byte
	ids  []byte // message ids, made into one string

	created bool         // a topic was: its table is to be saved
	left    atomic.Int32 // callbacks still to come
}

var sendRuns = sync.Pool{New: func() any { return new(sendRun) }}

// Bounds of what a recycled run may keep.
const (
	keepText  = 64 << 10
	keepBatch = 64
)

// next returns a cleared sending.
func (r *sendRun) next(call *remoting.Call, req *header.SendMessageRequest) *sending {
	if r.used == len(r.all) {
		r.all = append(r.all, new(sending))
	}
	s := r.all[r.used]
	r.used++
	s.call, s.req = call, req
	s.queueId, s.flush, s.created = 0, false, false
	s.realTopic, s.due = "", 0
	s.late.Store(false)
	s.lost = nil
	return s
}

// release gives the run back. Nothing of it may be used afterwards.
func (r *sendRun) release() {
	for _, s := range r.all[:r.used] {
		s.call, s.req, s.msg, s.put, s.answer = nil, nil, message.Message{}, store.Put{}, header.SendMessageResponse{}
		clear(s.batch)
		s.batch, s.members = s.batch[:0], s.members[:0]
		if cap(s.batch) > keepBatch {
			s.batch, s.members = nil, nil
		}
	}
	clear(r.puts)
	clear(r.owed)
	r.puts, r.owed, r.used, r.env = r.puts[:0], r.owed[:0], 0, nil
	r.text, r.ids, r.created = r.text[:0], r.ids[:0], false
	if cap(r.text) > keepText {
		r.text = nil
	}
	if cap(r.ids) > keepText {
		r.ids = nil
	}
	sendRuns.Put(r)
}

// textFrom is what was appended to text since at, as a string that shares its bytes. Later appends may move the
// buffer; the string then keeps the old one.
func (r *sendRun) textFrom(at int) string {
	t := r.text[at:]
	return unsafe.String(unsafe.SliceData(t), len(t))
}

// sendText is what the send path needs to know of a properties text.
type sendText struct {
	wait  string // values; "" = absent
	delay string
	tran  string
	timer timerText
}

// appendSendText appends the properties that the client sent, as they are stored: readable entries only, WAIT
// left out when dropWait is set, CLUSTER the broker's. The official broker parses the text into a map and writes it
// anew; of two entries with one name both stay here and readers take the last, as that map does.
func appendSendText(dst []byte, text, cluster string, dropWait bool) ([]byte, sendText) {
	var t sendText
	for text != "" {
		entry := text
		if i := strings.IndexByte(text, '\x02'); i >= 0 {
			entry, text = text[:i], text[i+1:]
		} else {
			text = ""
		}
		i := strings.IndexByte(entry, '\x01')
		if i <= 0 || i == len(entry)-1 {
			continue
		}
		switch entry[:i] {
		case message.PropertyWaitStoreMsgOK:
			t.wait = entry[i+1:]
			if dropWait {
				continue
			}
		case message.PropertyDelayTimeLevel:
			t.delay = entry[i+1:]
		case message.PropertyTransactionPrepared:
			t.tran = entry[i+1:]
		case message.PropertyCluster:
			continue
		default:
			t.timer.note(entry[:i], entry[i+1:])
		}
		dst = append(dst, entry...)
		dst = append(dst, '\x02')
	}
	dst = append(dst, message.PropertyCluster...)
	dst = append(dst, '\x01')
	return append(dst, cluster...), t
}

// waits tells whether the answer is to wait for the disk: true unless WAIT says otherwise.
func (t sendText) waits() bool { return t.wait == "" || strings.EqualFold(t.wait, "true") }

// transaction tells whether the message is a half message.
func (t sendText) transaction() bool { return strings.EqualFold(t.tran, "true") }

// sendEnv is what the send path takes from the configuration; made anew when that changes.
type sendEnv struct {
	cfg    *Config
	fields []protocol.Field // MSG_REGION and TRACE_ON of every answer
}

// sendEnv returns the values for the configuration in force.
func (b *Broker) sendEnv() *sendEnv {
	cfg := b.config()
	if e := b.path.env.Load(); e != nil && e.cfg == cfg {
		return e
	}
	trace := "false"
	if cfg.TraceOn {
		trace = "true"
	}
	e := &sendEnv{cfg: cfg, fields: []protocol.Field{
		{Key: message.PropertyMsgRegion, Value: cfg.RegionId},
		{Key: message.PropertyTraceSwitch, Value: trace},
	}}
	b.path.env.Store(e)
	return e
}
