package inspect

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"

	"rocketd/store/consumequeue"
	"rocketd/store/segment"
	"rocketd/store/vfs"
)

// brokenChain is a place in a file of consumequeue_ext where no unit stands, though none is the last.
type brokenChain struct {
	name string
	at   int64
}

// checkUnits follows the units of every queue, as the official broker does at its start.
func (v *verify) checkUnits() error {
	root := v.d.path("consumequeue_ext")
	topics, err := v.d.list(root)
	if err != nil {
		return err
	}
	for n, topic := range topics {
		v.d.progress("verify consumequeue_ext", int64(n), int64(len(topics)))
		if !topic.IsDir() {
			continue
		}
		queues, err := v.d.list(path.Join(root, topic.Name()))
		if err != nil {
			return err
		}
		for _, q := range queues {
			id, err := strconv.ParseInt(q.Name(), 10, 32)
			if err != nil || !q.IsDir() {
				continue
			}
			if err := v.checkQueueUnits(path.Join(root, topic.Name(), q.Name()), topic.Name(), int32(id)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verify) checkQueueUnits(dir, topic string, queueId int32) error {
	entries, err := v.d.list(dir)
	if err != nil {
		return err
	}
	size := v.d.extendedSize(dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue // expired meanwhile
		}
		if err != nil {
			return err
		}
		f := Finding{Kind: UnitFile, File: v.d.short(name), Topic: topic, QueueId: &queueId}
		start, ok := segment.ParseName(e.Name())
		switch {
		case !ok || size > 0 && start%size != 0:
			f.Text = fmt.Sprintf("it is no file of units of %d bytes; no official broker starts with it", size)
		case info.Size() != size:
			f.Text = fmt.Sprintf("it has %d bytes, not %d; no official broker starts with it", info.Size(), size)
		default:
			if err := v.followUnits(name, f, size); err != nil {
				return err
			}
			continue
		}
		v.report.add(f)
		v.damage.queues = v.addQueue(topic, queueId)
	}
	return nil
}

// addQueue is the queues to be made anew with one more.
func (v *verify) addQueue(topic string, queueId int32) []*queue {
	q := v.d.queues.find(topic, queueId)
	for _, have := range v.damage.queues {
		if have == q {
			q = nil
		}
	}
	if q == nil {
		return v.damage.queues
	}
	return append(v.damage.queues, q)
}

// followUnits follows the units of one file.
func (v *verify) followUnits(name string, f Finding, size int64) error {
	in, err := v.d.fs.OpenRead(name)
	if err != nil {
		return err
	}
	defer in.Close()
	buf := make([]byte, min(size, 64<<10))
	for at := int64(0); at+2 <= size; {
		b := buf[:min(int64(len(buf)), size-at)]
		if err := readFull(in, name, b, at); err != nil {
			return err
		}
		for len(b) >= minUnit || len(b) >= 2 && at+int64(len(b)) == size {
			unit := consumequeue.UnitSize(b)
			if unit == 0 || b[0] == 0xff && b[1] == 0xff {
				return nil
			}
			if unit < 0 || at+int64(unit) > size-4 {
				if v.d.running {
					return nil
				}
				f.Kind, f.Offset = UnitChain, at
				f.Text = "no unit stands behind the one before; the official broker may not start with it"
				v.report.add(f)
				v.damage.chains = append(v.damage.chains, brokenChain{name, at})
				return nil
			}
			at, b = at+int64(unit), b[min(unit, len(b)):]
		}
	}
	return nil
}

// endChains ends the chains of units where they break. Entries that lead further behind find their units all the same.
func (p *repair) endChains(v *verify) {
	for _, c := range v.damage.chains {
		there, err := v.d.exists(c.name)
		if err == nil && !there {
			continue // its queue was made anew
		}
		p.step(Step{What: "end the units", File: v.d.short(c.name), Text: fmt.Sprintf("at offset %d, where the next one is damaged", c.at)}, func() error {
			return p.write(c.name, func(f vfs.File) error {
				_, err := f.WriteAt([]byte{0xff, 0xff}, c.at)
				return err
			})
		})
	}
}

// dropUnits removes the units of a queue that was made anew: its entries have their tagsCode themselves.
func (p *repair) dropUnits(v *verify, q *queue) error {
	dir := path.Join(v.d.path("consumequeue_ext"), q.topic, strconv.Itoa(int(q.queueId)))
	there, err := v.d.exists(dir)
	if err != nil || !there {
		return err
	}
	return errors.Join(p.o.FS.RemoveAll(dir), p.o.FS.SyncDir(path.Dir(dir)))
}
