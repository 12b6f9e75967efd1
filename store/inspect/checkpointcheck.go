package inspect

import (
	"fmt"
	"slices"
	"strings"
)

// officialCheckpoint is how many bytes of the checkpoint the official broker writes.
const officialCheckpoint = 24

// checkConfig reads the files of configuration.
func (v *verify) checkConfig() error {
	for _, c := range configFiles {
		state, err := v.d.readConfig(c, c.name, &v.config)
		if err != nil {
			return err
		}
		if state.there && state.err == nil {
			continue
		}
		bak, err := v.d.readConfig(c, c.name+".bak", &v.config)
		if err != nil {
			return err
		}
		good := bak.there && bak.err == nil
		if !state.there && !bak.there {
			continue
		}
		f := Finding{Kind: ConfigFile, File: "config/" + c.name}
		switch {
		case !state.there && good:
			f.Text = fmt.Sprintf("it is missing; its .bak can be read and has %d %s", bak.count, c.what)
		case !state.there:
			f.Text = fmt.Sprintf("it is missing, and of its .bak: %v", bak.err)
		case good:
			f.Text = fmt.Sprintf("%v; its .bak can be read and has %d %s", state.err, bak.count, c.what)
		case bak.there:
			f.Text = fmt.Sprintf("%v, and of its .bak: %v", state.err, bak.err)
		default:
			f.Text = fmt.Sprintf("%v, and there is no .bak", state.err)
		}
		if good {
			v.damage.configs = append(v.damage.configs, c)
		}
		v.report.add(f)
	}
	return nil
}

// checkCheckpoint compares the checkpoint with the log.
func (v *verify) checkCheckpoint() error {
	d := v.d
	add := func(offset int64, text string) {
		v.damage.checkpoint = true
		v.report.add(Finding{Kind: CheckpointFile, File: "checkpoint", Offset: offset, Text: text})
	}
	info, err := d.fs.Stat(d.path("checkpoint"))
	if err != nil {
		if v.scan.found > 0 {
			v.report.note("there is no checkpoint: a start after a crash goes through the whole log")
		}
		return nil
	}
	if info.Size() < officialCheckpoint {
		add(0, fmt.Sprintf("it has %d bytes, the three timestamps alone take %d", info.Size(), officialCheckpoint))
		return nil
	}
	c := d.checkpoint
	newest := v.scan.last
	if v.scan.found == 0 {
		newest = 0
	}
	for i, t := range []int64{c.PhysicMsgTimestamp, c.LogicsMsgTimestamp, c.IndexMsgTimestamp} {
		what := []string{"log", "queues", "index"}[i]
		if t < 0 || t > newest && (v.scan.found > 0 || t > d.o.Clock().UnixMilli()) {
			add(int64(8*i), fmt.Sprintf("it says that the %s was durable up to time %d, the newest record is of %d", what, t, newest))
		}
	}
	if c.Dispatched > v.scan.end {
		add(64, fmt.Sprintf("it says that the log was durable up to offset %d, it ends at %d", c.Dispatched, v.scan.end))
	}
	return nil
}

// checkOffsets notes consumers that are ahead of their queues: what they have consumed was lost.
func (v *verify) checkOffsets() error {
	const most = 20
	ahead := []string{}
	for name, queues := range v.config.offsets {
		topic, group, _ := strings.Cut(name, "@")
		for queueId, offset := range queues {
			q := v.d.queues.find(topic, queueId)
			if q == nil {
				continue
			}
			end := q.check.next
			if q.check.first < 0 {
				_, e, err := v.d.bounds(q)
				if err != nil {
					return err
				}
				end = e
			}
			if offset > end {
				ahead = append(ahead, fmt.Sprintf("group %s stands at %d of %s, queue %d, which ends at %d", group, offset, topic, queueId, end))
			}
		}
	}
	slices.Sort(ahead)
	for i, text := range ahead {
		if i == most {
			v.report.note("%d more groups are ahead of their queues", len(ahead)-most)
			break
		}
		v.report.note("%s", text)
	}
	return nil
}
