package main

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync"
	"time"

	"rocketd/conformance/wire"
)

// sqlExpression is the expression of the measure: three properties, numbers and texts. It takes 5 messages of 100.
const sqlExpression = "n BETWEEN 10 AND 19 AND region IN ('hangzhou', 'beijing') AND price > 5.5"

// The messages of the measure: batches of a hundred that differ in their properties.
const (
	sqlQueues   = 4
	sqlBatch    = 100
	sqlBatches  = 500 // of each queue
	sqlMessages = sqlBatch * sqlBatches
)

// measureSQLFilter has consumers read a topic with an expression that takes few of its messages, over and over; the cost is that
// of a message looked at.
func (in *instance) measureSQLFilter(ctx context.Context, s settings, note func(string, float64)) error {
	if err := in.createTopic("sqlfilter", sqlQueues); err != nil {
		return err
	}
	if err := in.sendForFilter(); err != nil {
		return err
	}
	if err := in.awaitDispatch("sqlfilter", sqlQueues); err != nil {
		return err
	}
	if _, err := in.pullFiltered(ctx, s.phase); err != nil { // the official server compiles itself meanwhile
		return err
	}
	r, err := in.pullFiltered(ctx, s.phase)
	if err != nil {
		return err
	}
	note("SQL-filtered pull: server CPU", r.cpuPerMessage())
	note("SQL-filtered pull: throughput", r.perSecond())
	return nil
}

// sendForFilter fills the queues, a few batches at a time.
func (in *instance) sendForFilter() error {
	var elements []byte
	for i := range sqlBatch {
		region := []string{"hangzhou", "shanghai", "beijing", "shenzhen"}[i%4]
		elements = append(elements, wire.Batch(wire.Properties("UNIQ_KEY", markedKey, "WAIT", "true", "TAGS", "TagA", "KEYS", "order-"+strconv.Itoa(i),
			"n", strconv.Itoa(i), "region", region, "price", strconv.Itoa(i)+".25"), make([]byte, 128))...)
	}
	c, err := wire.Dial(in.addr(), nil)
	if err != nil {
		return err
	}
	defer c.Close()
	for range sqlBatches {
		var pending []*wire.Pending
		for q := range sqlQueues {
			f := batchRequest("sqlfilter", q, 1, 0).WithBody(elements)
			p, err := c.Send(f)
			if err != nil {
				return err
			}
			pending = append(pending, p)
		}
		for _, p := range pending {
			f, err := p.Wait(patience)
			if err != nil {
				return err
			}
			if f.Code != 0 {
				return errors.New("batch answered with " + strconv.Itoa(f.Code) + " " + f.Remark)
			}
		}
	}
	return nil
}

// pullFiltered reads all queues at once from their beginning, again and again.
func (in *instance) pullFiltered(ctx context.Context, duration time.Duration) (outcome, error) {
	pullers := make([]*puller, sqlQueues)
	for q := range pullers {
		t, err := newTemplate(pullRequest("sqlfilter", q).Set("subscription", sqlExpression).Set("expressionType", "SQL92"))
		if err != nil {
			return outcome{}, err
		}
		conn, err := net.DialTimeout("tcp", in.addr(), patience)
		if err != nil {
			return outcome{}, err
		}
		defer conn.Close()
		pullers[q] = &puller{conn: conn, t: t, answers: newResponses(conn)}
	}
	return in.watch(func() (outcome, error) {
		ctx, cancel := context.WithTimeout(ctx, duration)
		defer cancel()
		errs, looked := make([]error, len(pullers)), make([]int64, len(pullers))
		var wg sync.WaitGroup
		for q, p := range pullers {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for ctx.Err() == nil && errs[q] == nil {
					before := p.offset
					_, errs[q] = p.next()
					looked[q] += p.offset - before
					if p.offset >= sqlMessages {
						p.offset = 0
					}
				}
			}()
		}
		wg.Wait()
		var o outcome
		for _, n := range looked {
			o.messages += n
		}
		if o.messages == 0 {
			errs = append(errs, errors.New("no message was looked at"))
		}
		return o, errors.Join(errs...)
	})
}
