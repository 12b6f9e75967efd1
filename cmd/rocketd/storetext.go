package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"rocketd/store/inspect"
)

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// at is a time in ms, for reading.
func at(ms int64) string {
	if ms <= 0 {
		return "-"
	}
	return time.UnixMilli(ms).Format("2006-01-02T15:04:05.000Z07:00")
}

func state(running, clean bool) string {
	switch {
	case running:
		return "a broker is running on it"
	case clean:
		return "stopped in order"
	default:
		return "not stopped in order: the broker was killed, or the machine lost power"
	}
}

// report prints what Verify found.
func (s *storeCommand) report(r *inspect.Report) {
	s.printf("%s: %s\n", r.Dir, state(r.Running, r.CleanStop))
	s.printf("log offsets %d to %d: %d records, %d queues, %d keys\n", r.MinPhyOffset, r.MaxPhyOffset, r.Records, r.Queues, r.Keys)
	for _, f := range r.Findings {
		s.printf("FINDING %s\n", f)
	}
	if more := r.Total() - len(r.Findings); more > 0 {
		s.printf("and %d more of these\n", more)
	}
	for _, n := range r.Notes {
		s.printf("note: %s\n", n)
	}
	if r.Clean() {
		s.printf("clean\n")
		return
	}
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(r.Counts)) {
		kinds = append(kinds, fmt.Sprintf("%s %d", kind, r.Counts[kind]))
	}
	s.printf("%s: %s\n", counted(r.Total(), "finding"), strings.Join(kinds, ", "))
}

func (s *storeCommand) info() error {
	i, err := s.dir.Info()
	if err != nil {
		return err
	}
	if s.json {
		return s.print(i)
	}
	s.bar.clear()
	w := tabwriter.NewWriter(s.p.stdout, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	line("store\t%s", i.Dir)
	line("state\t%s", state(i.Running, i.CleanStop))
	line("commit log\t%s", i.Log.Dir)
	line("  log offsets\t%d to %d", i.Log.MinPhyOffset, i.Log.MaxPhyOffset)
	line("  records stored\t%s to %s", at(i.Log.FirstTimestamp), at(i.Log.LastTimestamp))
	line("  file size\t%d", i.Log.FileSize)
	for _, f := range i.Log.Files {
		line("  file %s\t%d bytes\tfirst record %s\tmodified %s", f.Name, f.Size, at(f.FirstTimestamp), at(f.Modified))
	}
	c := i.Checkpoint
	if !c.There {
		line("checkpoint\tnone")
	} else {
		line("checkpoint\tlog %s\tqueues %s\tindex %s", at(c.PhysicMsgTimestamp), at(c.LogicsMsgTimestamp), at(c.IndexMsgTimestamp))
		if c.Dispatched >= 0 {
			line("  rocketd's part\tall durable up to log offset %d", c.Dispatched)
		} else {
			line("  rocketd's part\tnone: the official broker wrote last")
		}
	}
	if i.RecoveryFrom != nil {
		line("next start\trecovers from log offset %d on", *i.RecoveryFrom)
	}
	queues := 0
	for _, t := range i.Topics {
		queues += len(t.Queues)
	}
	line("queues\t%s, %s, files of %d bytes", counted(len(i.Topics), "topic"), counted(queues, "queue"), i.QueueFile)
	for _, t := range i.Topics {
		for _, q := range t.Queues {
			line("  %s %d\toffsets %d to %d\tlog offsets %d to %d\t%s", t.Topic, q.QueueId, q.MinOffset, q.MaxOffset, q.MinPhyOffset, q.MaxPhyOffset, counted(q.Files, "file"))
		}
	}
	size := fmt.Sprintf("%d hash slots, %d entries a file", i.Index.HashSlots, i.Index.MaxEntries)
	if i.Index.HashSlots == 0 {
		size = "hash slots unknown; give broker.conf with -c"
	}
	line("index\t%s, %s", counted(len(i.Index.Files), "file"), size)
	for _, f := range i.Index.Files {
		line("  %s\t%d entries\tlog offsets %d to %d\t%s to %s", f.Name, f.Entries, f.BeginPhyOffset, f.EndPhyOffset, at(f.BeginTimestamp), at(f.EndTimestamp))
	}
	if e := i.Extended; e.Files > 0 {
		line("consumequeue_ext\t%s, %s", counted(e.Queues, "queue"), counted(e.Files, "file"))
	}
	for _, a := range i.Aside {
		text := "PUT ASIDE by a recovery; repair --restore stores them again"
		if a.Restored {
			text = "stored again"
		}
		line("%s\t%s, %s\t%s to %s\t%s", a.Dir, counted(a.Files, "file"), counted(int(a.Messages), "message"), at(a.FirstTimestamp), at(a.LastTimestamp), text)
	}
	line("config\t%s", counted(len(i.Config), "file"))
	for _, f := range i.Config {
		text := fmt.Sprintf("%d %s", f.Count, f.What)
		if f.Error != "" {
			text = "DAMAGED: " + f.Error
		}
		line("  %s\t%s\t%d bytes\tbak %s", f.Name, text, f.Size, f.Bak)
	}
	return w.Flush()
}

// query is the choice that the flags make.
func (s *storeCommand) query() (q inspect.Query, err error) {
	c := s.c
	q = inspect.Query{
		Topic: c.String("topic"), QueueId: int32(c.Int64("queue")), Key: c.String("key"), From: c.Int64("from"), To: c.Int64("to"),
		QueueFrom: c.Int64("queue-from"), QueueTo: c.Int64("queue-to"), Limit: c.Int64("limit"),
	}
	for name, into := range map[string]*int64{"since": &q.Since, "until": &q.Until} {
		text := c.String(name)
		if text == "" {
			continue
		}
		if *into, err = strconv.ParseInt(text, 10, 64); err == nil {
			continue
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return q, &usageError{fmt.Sprintf("--%s %s is neither a time like 2006-01-02T15:04:05Z nor ms since 1970", name, text)}
		}
		*into = t.UnixMilli()
	}
	return q, nil
}

func (s *storeCommand) dump() (err error) {
	q, err := s.query()
	if err != nil {
		return err
	}
	printed := int64(0)
	defer func() {
		if printed == 0 && err == nil {
			fmt.Fprintln(s.p.stderr, "rocketd: nothing matches")
		}
		if printed == q.Limit && !s.c.IsSet("limit") {
			fmt.Fprintf(s.p.stderr, "rocketd: this ends after %d; --limit N prints more\n", printed)
		}
	}()
	lines := json.NewEncoder(s.p.stdout)
	lines.SetEscapeHTML(false)
	put := func(v any, text func() string) error {
		s.bar.clear()
		printed++
		if s.json {
			return lines.Encode(v)
		}
		_, err := fmt.Fprintln(s.p.stdout, text())
		return err
	}
	switch what := s.c.String("what"); what {
	case "records":
		return s.dir.Records(q, s.c.Bool("scan"), s.c.Bool("body"),
			func(r *inspect.Record) error { return put(r, func() string { return recordText(r) }) },
			func(text string) {
				s.bar.clear()
				fmt.Fprintf(s.p.stderr, "rocketd: DAMAGE: %s\n", text)
			})
	case "queue":
		if q.Topic == "" || q.QueueId < 0 {
			return &usageError{"--what queue needs --topic and --queue"}
		}
		return s.dir.QueueEntries(q, func(e *inspect.QueueEntry) error {
			return put(e, func() string {
				if e.Blank {
					return fmt.Sprintf("%d\tblank", e.QueueOffset)
				}
				text := fmt.Sprintf("%d\tlog offset %d\tsize %d\ttagsCode %d", e.QueueOffset, e.PhyOffset, e.Size, e.TagsCode)
				if u := e.Unit; u != nil && u.Damage != "" {
					text += fmt.Sprintf("\tunit at %d: %s", u.Offset, u.Damage)
				} else if u != nil {
					text += fmt.Sprintf("\tunit at %d: tagsCode %d, stored %s, bit map %x", u.Offset, u.TagsCode, at(u.StoreTimestamp), u.BitMap)
				}
				return text
			})
		})
	case "index":
		if (q.Key == "") != (q.Topic == "") {
			return &usageError{"--what index takes --topic and --key together: what is hashed is both"}
		}
		return s.dir.IndexEntries(q, func(e *inspect.IndexEntry) error {
			return put(e, func() string {
				return fmt.Sprintf("%s\tentry %d\thash %d\tlog offset %d\t%s\tprevious %d", e.File, e.Entry, e.KeyHash, e.PhyOffset, at(e.Timestamp), e.Previous)
			})
		})
	default:
		return &usageError{fmt.Sprintf("--what %s is none of records, queue, index", what)}
	}
}

func recordText(r *inspect.Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "log offset %d, %d bytes (%s at %d)\n", r.PhyOffset, r.Size, r.File, r.FileOffset)
	fmt.Fprintf(&b, "  %s, queue %d, offset %d, msgId %s\n", r.Topic, r.QueueId, r.QueueOffset, r.OffsetMsgId)
	fmt.Fprintf(&b, "  born %s at %s, stored %s at %s\n", at(r.BornTimestamp), r.BornHost, at(r.StoreTimestamp), r.StoreHost)
	fmt.Fprintf(&b, "  flag %d, sysFlag %#x, reconsumeTimes %d, preparedTransactionOffset %d\n", r.Flag, r.SysFlag, r.ReconsumeTimes, r.PreparedTransactionOffset)
	for _, name := range slices.Sorted(maps.Keys(r.Properties)) {
		fmt.Fprintf(&b, "  %s=%s\n", name, r.Properties[name])
	}
	fmt.Fprintf(&b, "  body %d bytes, CRC %#x", r.BodySize, r.BodyCRC)
	if r.Damage != "" {
		fmt.Fprintf(&b, "\n  DAMAGE: %s", r.Damage)
	}
	if r.Body != nil {
		fmt.Fprintf(&b, "\n  %q", *r.Body)
	} else if r.BodyBase64 != nil {
		fmt.Fprintf(&b, "\n  %x", r.BodyBase64)
	}
	return b.String()
}
